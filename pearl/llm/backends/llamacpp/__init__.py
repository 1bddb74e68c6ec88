"""A model in a GGUF file on this machine, embedded: `llamacpp:PATH.gguf`; no server to set up.

llama.cpp runs in a child process (`worker`), which is started by the first request and ends with
`aclose` or with this process. So a broken file, too little memory or a crash are errors here, and
no end of the program. It is spoken to as any server is, by `OpenAIModel`; its replies are streamed, so
that every token is told (`pearl.llm.progress`) and a reply that repeats itself is cut off.

**The prefix of a prompt is read once.** The steps of a plan share the document, which stands first
in their prompts; what the model has computed for the longest common prefix is kept and used again
(`Usage.n_cached_tokens`). One request is computed at a time, and the others queue here: requests
over one document at once would each read it for themselves (six over 1,400 tokens on two cores:
11 s in turn, 14 to 18 s in four slots). The states of other documents wait in memory, up to
`CACHE_MIB`, so that documents may alternate.

**The window** is what the user says, or else what the model was trained on, up to `MAX_WINDOW`:
its memory is set aside as a whole, 2 GiB for 16,384 tokens of a common model of 8B weights.

A file without a chat template is spoken to in ChatML, which is llama.cpp's own choice.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from pathlib import Path

from pearl.documents.document import file_source
from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Constrains, Request
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.llamacpp.header import trained_context
from pearl.llm.backends.llamacpp.process import WorkerProcess
from pearl.llm.backends.openai import OpenAIModel, servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.progress import CallProgress, report
from pearl.plugins.extras import require_extra

__all__ = ["DESCRIPTION", "LlamaCppModel", "create"]

DESCRIPTION = "a model in a file, by llama.cpp in a child process: llamacpp:PATH.gguf"

MAX_WINDOW = 16_384
"""Tokens of the window where the user says nothing."""

CACHE_MIB = 4_096
"""Memory for the states of documents that are not being read, in MiB."""

POLL_S = 0.01
"""Seconds between two looks at a worker: what tells an event loop at once belongs to one loop."""

LAST_BREATH_S = 2.0
"""Seconds that a process may take to end after its connections are gone."""


def create(name: str, settings: ModelSettings) -> LlamaCppModel:
    """The model in the file `name`; nothing is started yet.

    Raises:
        UsageError: No file is named, xllamacpp is not installed, or the window is longer than
            what the model was trained on.
        DataError: The file cannot be read, or holds no language model.
    """
    if not name:
        raise UsageError("llamacpp: needs a file", help="for example llamacpp:models/model.gguf")
    require_extra("llamacpp", "a model in a file", "xllamacpp")
    path = Path(name).expanduser()
    trained = trained_context(path)
    if settings.window and settings.window > trained:
        raise UsageError(
            f"a window of {settings.window:,} tokens is too long for {path}",
            help=f"it was trained on {trained:,}: --window {trained}",
        )
    window = settings.window or min(trained, MAX_WINDOW)
    return LlamaCppModel(path, settings.timeout_s, window)


class LlamaCppModel:
    """One model of one file.

    Args:
        path: The file.
        timeout_s: Seconds that loading the model may take, and that one call may take besides;
            waiting for other calls does not count.
        window: Tokens that the model reads and writes in one call; the memory for it is set aside.
        reuse: Whether what was computed for the beginning of a prompt is used again.
    """

    notice = ""
    reads_prompts = True
    constrains = Constrains(by=frozenset({"grammar", "json"}), max_text=240)

    def __init__(self, path: Path, timeout_s: float, window: int, *, reuse: bool = True) -> None:
        self.name = f"llamacpp:{path}"
        self.identity = f"{self.name} {file_source(path)}"
        self.window: int | None = window
        self._path = path
        self._timeout_s = timeout_s
        self._reuse = reuse
        self._key = secrets.token_hex(16)  # others on this machine may find the port
        self._starting = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._client: OpenAIModel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"LlamaCppModel({self.name!r})"

    async def complete(self, request: Request) -> Completion:
        """Carry out one request; the first one starts llama.cpp and loads the model.

        Raises:
            ModelError: There is no usable reply, or llama.cpp cannot load the model.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a lock belongs to one event loop
            self._loop, self._turn = loop, asyncio.Lock()
        async with self._turn:
            worker, client = await self._serving()
            try:
                return await client.complete(request)
            except ModelError as error:
                if error.kind != "transport" or not await _has_ended(worker):
                    raise
            raise self._died(worker)

    async def aclose(self) -> None:
        """End the process; a later request would start it anew."""
        client, self._client = self._client, None
        worker, self._worker = self._worker, None
        try:
            if client:
                await client.aclose()
        finally:
            if worker:
                worker.stop()

    async def _serving(self) -> tuple[WorkerProcess, OpenAIModel]:
        """The process, once it serves, and what speaks to it."""
        stale: OpenAIModel | None = None
        with self._starting:
            if self._worker is None or not self._worker.is_alive:
                if self._worker:
                    self._worker.stop()
                stale = self._client
                self._worker, self._client = self._start(), None
            worker = self._worker
        if stale is not None:  # its connections lead to a process that has ended
            await stale.aclose()
        try:
            if not worker.is_settled:
                report(CallProgress("loading"))
            async with asyncio.timeout(self._timeout_s):
                while not worker.is_settled:  # noqa: ASYNC110, an event belongs to one loop
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            worker.stop()
            raise ModelError(
                f"{self._path} was not loaded within {self._timeout_s:g} s",
                kind="deadline",
                help="allow more with --timeout-s, or use a smaller model",
            ) from None
        if worker.address is None:
            await _has_ended(worker)  # in its own way, which says more than ours
            worker.stop()
            raise ModelError(
                f"llama.cpp cannot load {self._path}: {worker.last_words()}",
                kind="bad_request",
                help="is the file whole, and is there memory for it? A smaller --window needs less",
            )
        if self._client is None:
            self._client = self._speaking_to(worker.address)
        return worker, self._client

    def _start(self) -> WorkerProcess:
        settings = {
            "path": str(self._path),
            "alias": self._path.stem,
            "key": self._key,
            "window": self.window,
            "cache_prompt": self._reuse,
            "cache_mib": CACHE_MIB if self._reuse else 0,
        }
        try:
            return WorkerProcess(settings)
        except OSError as error:
            raise ModelError(
                f"no process can be started for llama.cpp: {error.strerror}", kind="transport"
            ) from None

    def _speaking_to(self, address: str) -> OpenAIModel:
        """The client of a worker: the one place that says which kind of server it is."""
        assert self.window
        endpoint = Endpoint(f"{address}/v1", self._path.stem, self._key)
        # This llama.cpp is built with llguidance, under which only whole characters are written.
        server = servers.load("llguidance")
        return OpenAIModel(endpoint, self._timeout_s, self.window, server, is_streamed=True)

    def _died(self, worker: WorkerProcess) -> ModelError:
        worker.stop()
        return ModelError(
            f"llama.cpp died over a request to {self._path}: {worker.last_words()}",
            kind="transport",
            help="the next request starts it anew; a smaller --window needs less memory",
        )


async def _has_ended(worker: WorkerProcess) -> bool:
    """Whether a worker that no longer speaks has ended."""
    for _ in range(int(LAST_BREATH_S / POLL_S)):
        if not worker.is_alive:
            return True
        await asyncio.sleep(POLL_S)
    return False
