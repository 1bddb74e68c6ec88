"""A model in a GGUF file on this machine: `llamacpp:PATH.gguf`, without a server to set up.

llama.cpp runs in a child process (`worker`), started by the first request and ended by `aclose` or
with this process, so that a damaged file or a crash raises an error. `OpenAIModel` is the client;
replies are streamed, to report progress and to stop repetitive ones.

The state of the longest common prefix of prompts, such as a document, is reused. Requests are
processed sequentially, because concurrent ones over one document would each process it (six over
1,400 tokens on two cores: 11 s sequentially, 14 to 18 s in four slots).

llama.cpp allocates the memory of the context window at once: 2 GiB for 16,384 tokens of a common 8B
model. A model that does not fit into memory is refused before it is loaded (`header.memory_advice`).

For a file without a chat template llama.cpp would use ChatML, whose marks are not among the tokens of
such a model. So it gets a prompt in plain text (`COMPLETION_TEMPLATE`).
"""

from __future__ import annotations

import asyncio
import re
import secrets
from pathlib import Path

from pearl.documents.document import file_source
from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Constrains, Request
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.llamacpp.header import (
    Header,
    available_bytes,
    has_gpu,
    memory_advice,
    read_header,
)
from pearl.llm.backends.llamacpp.process import FileTokenizer, Worker
from pearl.llm.backends.openai import OpenAIModel, servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.progress import CallProgress, report
from pearl.plugins.extras import require_extra

DESCRIPTION = "a model in a file, by llama.cpp in a child process: llamacpp:PATH.gguf"
MAX_WINDOW = 16_384  # Default maximum context window in tokens
CACHE_MIB = 4_096  # Memory for cached prefix states, in MiB
# Part of llama.cpp's error for a prompt that is longer than the window
TOO_LONG = "exceeds the available context size"

COMPLETION_TEMPLATE = """\
{% for message in messages %}{% if message['role'] == 'assistant' %}### Response:
{% elif message['role'] == 'user' %}### Instruction:
{% endif %}{{ message['content'] }}

{% endfor %}### Response:
"""
"""The prompt of a model without a chat template, in the form of common instruction datasets."""

COMPLETION_STOPS = ["\n### "]
"""The reply of such a model ends where it begins another instruction or answer of its own."""

SMALL_BYTES = 1.5 * 2**30
"""Below it, a file is not asked for plans and checks. One of 1.1 GB (1.5 billion parameters of four bits) writes valid
plans that seek something else, and tells true claims from false ones by chance: docs/figures.md."""

NOTICE = (
    "llamacpp: {} has no chat template, so it may not be trained to follow instructions; it is "
    "prompted with plain text"
)


def create(name: str, settings: ModelSettings) -> LlamaCppModel:
    """Create the model of a file, without starting it."""
    if not name:
        raise UsageError("llamacpp: needs a file", help="for example llamacpp:models/model.gguf")
    require_extra("llamacpp", "a model in a file", "xllamacpp")
    path = Path(name).expanduser()
    header = read_header(path)
    trained = header.trained
    if settings.window and settings.window > trained:
        raise UsageError(
            f"a window of {settings.window:,} tokens is too long for {path}",
            help=f"the model was trained on {trained:,} tokens: --window {trained}",
        )
    window = settings.window or min(trained, MAX_WINDOW)
    return LlamaCppModel(path, settings.timeout_s, window, header)


class LlamaCppModel:
    """One model of one file."""

    reads_prompts = True
    constrains = Constrains(by=frozenset({"grammar", "json"}), max_text=240)

    def __init__(self, path: Path, timeout_s: float, window: int, header: Header) -> None:
        self.name = f"llamacpp:{path}"
        self.identity = f"{self.name} {file_source(path)}"
        self.window: int | None = window
        self._path = path
        self._timeout_s = timeout_s
        self._header = header
        self.is_small = header.n_bytes < SMALL_BYTES
        self.notice = "" if self._header.has_template else NOTICE.format(path.name)
        # It keeps out other users of this machine, who may find the port.
        self._key = secrets.token_hex(16)
        settings = self._settings()
        self._worker = Worker(path, settings)
        self._client: tuple[str, OpenAIModel] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self.tokenizer = FileTokenizer(
            f"the tokenizer of {path.name}", path.stem, self._key, self._worker,
            Worker(path, {**settings, "is_tokenizing": True}),
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"LlamaCppModel({self.name!r})"

    async def complete(self, request: Request) -> Completion:
        """Send one request; the first one starts llama.cpp and loads the model."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a lock belongs to one event loop
            self._loop, self._turn = loop, asyncio.Lock()
        async with self._turn:
            if not self._worker.address:
                self._check_memory()
                report(CallProgress("loading"))
            worker = await self._worker.serving(self._timeout_s)
            client = await self._client_of(worker.address)
            try:
                return await client.complete(request)
            except ModelError as error:
                if TOO_LONG in error.message:
                    raise self._too_long(error) from None
                if error.kind != "transport" or not await worker.has_ended():
                    raise
            worker.stop()
            raise ModelError(
                f"llama.cpp crashed on a request to {self._path}: {worker.last_error()}",
                kind="transport",
                help="the next request restarts it; a smaller --window needs less memory",
            )

    async def aclose(self) -> None:
        """Stop the process; a later request restarts it."""
        client, self._client = self._client, None
        try:
            await self.tokenizer.aclose()
            if client:
                await client[1].aclose()
        finally:
            self._worker.stop()

    async def _client_of(self, address: str) -> OpenAIModel:
        """The client of the process at an address."""
        if self._client and self._client[0] != address:
            await self._client[1].aclose()  # its process has ended
            self._client = None
        if self._client is None:
            assert self.window
            endpoint = Endpoint(f"{address}/v1", self._path.stem, self._key)
            # This llama.cpp is built with llguidance, which emits whole characters only.
            server = servers.load("llguidance")
            client = OpenAIModel(endpoint, self._timeout_s, self.window, server, is_streamed=True)
            self._client = address, client
        return self._client[1]

    def _settings(self) -> dict[str, object]:
        return {
            "path": str(self._path.absolute()),
            "alias": self._path.stem,
            "key": self._key,
            "window": self.window,
            "cache_mib": CACHE_MIB,
            "template": "" if self._header.has_template else COMPLETION_TEMPLATE,
            "stops": [] if self._header.has_template else COMPLETION_STOPS,
        }

    def _check_memory(self) -> None:
        assert self.window
        available = available_bytes()
        lack = None if available is None else memory_advice(self._header, self.window, available)
        if lack is not None and not has_gpu():
            message = f"{self._path} does not fit into memory: {lack[0]}"
            raise ModelError(message, kind="bad_request", help=lack[1])

    def _too_long(self, error: ModelError) -> ModelError:
        found = re.search(r"\((\d+) tokens\)", error.message)
        size = f"{int(found[1]):,} tokens" if found else "more tokens"
        trained = self._header.trained
        help = "shorten the prompt (--nearest 2, --context retrieve), or use a model with a larger window"
        if (self.window or 0) < trained:
            help = (
                f"use --window {trained}, the training window, or shorten the prompt: --nearest 2"
            )
        return ModelError(
            f"the prompt has {size}; the window of {self._path.name} has {self.window:,}",
            kind="bad_request",
            help=help,
        )


ABILITIES = Abilities("PATH.gguf", LlamaCppModel.constrains, "llamacpp", tokenizes=True)
