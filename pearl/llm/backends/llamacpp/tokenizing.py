"""Counts tokens by the tokenizer in a GGUF file, exactly as llama.cpp does.

The process that runs the model is asked, where there is one. Else a second one reads the vocabulary
and maps the weights without reading them, in about a second for a model of any size: so counting
needs neither the memory nor the time of the model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic, sleep

from pearl.documents.tokens import TokenizerError
from pearl.llm.backends.llamacpp.process import WorkerProcess
from pearl.llm.backends.openai import servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.tokenizing import ServerTokenizer

START_TIMEOUT_S = 60.0
"""Time limit for reading the vocabulary in seconds."""

_POLL_S = 0.01


class FileTokenizer:
    """The tokenizer of a model file."""

    def __init__(
        self,
        name: str,
        alias: str,
        key: str,
        running: Callable[[], str | None],
        start: Callable[[], WorkerProcess],
    ) -> None:
        self.name = name
        self._alias = alias
        self._key = key
        self._running = running
        self._start = start
        self._starting = threading.Lock()
        self._worker: WorkerProcess | None = None
        self._clients: dict[str, ServerTokenizer] = {}

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return self._client().count(text)

    def frame_tokens(self) -> int:
        """Tokens of the chat template around one message."""
        return self._client().frame_tokens()

    async def aclose(self) -> None:
        """Stop the process; a later count starts another."""
        with self._starting:
            worker, self._worker = self._worker, None
            clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()
        if worker is not None:
            worker.stop()

    def _client(self) -> ServerTokenizer:
        address = self._running() or self._own_address()
        with self._starting:
            if address not in self._clients:
                endpoint = Endpoint(f"{address}/v1", self._alias, self._key)
                self._clients[address] = ServerTokenizer(endpoint, servers.load("llamacpp"))
            return self._clients[address]

    def _own_address(self) -> str:
        with self._starting:
            if self._worker is None or not self._worker.is_alive:
                if self._worker is not None:
                    self._worker.stop()
                try:
                    self._worker = self._start()
                except OSError as error:
                    raise TokenizerError(f"no process can be started: {error.strerror}") from None
            worker = self._worker
            until = monotonic() + START_TIMEOUT_S
            while not worker.is_settled and monotonic() < until:
                sleep(_POLL_S)
            if worker.address is None:
                is_late = not worker.is_settled
                worker.stop()
                why = f"not within {START_TIMEOUT_S:g} s" if is_late else worker.last_error()
                raise TokenizerError(f"llama.cpp cannot read the vocabulary: {why}")
            return worker.address
