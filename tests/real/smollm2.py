"""SmolLM2, a small language model: real replies, with every call watched, and a document for it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pearl.documents.document import Document
from pearl.errors import ModelError
from pearl.llm import Completion, Model, Request, Usage
from tests.real.fetch import path
from tests.root import ROOT

HERE = Path(__file__).parent

FILE = path()  # of the user: tests have a home of their own later
IS_THERE = FILE.is_file()

LIBRARY, EXAMPLES = HERE / "ferry.actions", HERE / "examples"
"""As short as prompts can be."""

QUESTION = "Why did the mate stay behind?"

STORY = """\
In March the ferry Aurelia lost her rudder off the northern point. Captain Ines Holm anchored her in \
the bay and sent the mate, Pell, ashore for help. The smith of Skarvik, old Torvald, forged a new pin \
in two nights.

The council paid him forty crowns. The widow Brandt, who owned the slip, asked for nothing but a sack \
of salt. When the ferry sailed again, the mate stayed behind, because he had broken his arm on the rocks.

In May he opened a shop for rope and lamps beside the smithy. The captain wrote to him twice a year, \
always in green ink, and always about the weather. Once she sent a map of the bay on which the rock was \
marked with a red cross and the words: here you learned to walk carefully.

Torvald died in the winter after. His daughter Runa kept the forge and the recipe of the pin, which she \
showed to nobody. She let the shop use the yard, and in return Pell kept her books, since he could count \
and she would not.
"""

DOCUMENT = Document(STORY, "skarvik.txt")


class Watched:
    """A model of which every call is held against the limits of its request, the failed ones too."""

    reads_prompts = True

    def __init__(self, model: Model) -> None:
        self.name, self.identity, self.notice = model.name, model.identity, model.notice
        self.window, self.constrains = model.window, model.constrains
        self.requests: list[Request] = []
        self._model = model

    async def complete(self, request: Request) -> Completion:
        """Ask the model."""
        self.requests.append(request)
        try:
            completion = await self._model.complete(request)
        except ModelError as error:
            self._watch(request, error.usage, error.kind)
            raise
        self._watch(request, completion.usage)
        return completion

    def _watch(self, request: Request, usage: Usage | None, kind: str = "") -> None:
        assert kind != "bad_request", "this prompt goes beyond the window"
        limit = request.max_output_tokens
        assert limit is not None, "a reply that repeats itself would fill the window"
        if usage is not None:
            assert self.window
            assert usage.n_output_tokens <= limit
            assert usage.n_input_tokens + limit <= self.window, "no room for the whole reply"

    async def aclose(self) -> None:
        """Stay: other tests ask it, too."""


@contextmanager
def llama_server() -> Iterator[str]:
    """llama.cpp's own server over SmolLM2, a process of its own; its address, `/v1` included."""
    command = [sys.executable, str(HERE / "llama_server.py"), str(FILE)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout
            yield f"{json.loads(child.stdout.readline())['address']}/v1"
        finally:
            child.kill()
