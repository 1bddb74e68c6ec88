"""The child process that runs llama.cpp, and a tokenizer that asks it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from pearl.documents.tokens import TokenizerError
from pearl.errors.patterns import lazy_pattern
from pearl.llm.backends.openai import servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.sessions import ServerTokenizer

SCRIPT = Path(__file__).with_name("worker.py")
MAX_LINES = 40  # Maximum stored lines of a worker's stderr
MAX_QUOTED = 200  # Maximum characters of its error in a message
END_TIMEOUT_S = 10.0


class WorkerProcess:
    """A child process that serves one model; it starts at once and becomes ready later.

    Threads read its output, so that any event loop may use it.
    """

    def __init__(self, settings: Mapping[str, object]) -> None:
        self.address: str | None = None
        self._stderr: deque[str] = deque(maxlen=MAX_LINES)
        self._is_settled = threading.Event()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            # Spinning threads are a hundred times slower on busy cores.
            env={"OMP_WAIT_POLICY": "passive", **os.environ},
            cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the root of any system
            start_new_session=True,  # Ctrl-C is for the parent, which then ends it
        )
        self._listeners = [
            threading.Thread(target=listen, args=(stream,), daemon=True)
            for listen, stream in (
                (self._await_address, self._process.stdout),
                (self._read_stderr, self._process.stderr),
            )
        ]
        for listener in self._listeners:
            listener.start()
        stdin = self._process.stdin
        assert stdin
        with contextlib.suppress(OSError):  # if it has ended, stderr says why
            stdin.write(json.dumps(settings) + "\n")
            stdin.flush()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def is_settled(self) -> bool:
        """Whether start-up has finished, successfully or not."""
        return self._is_settled.is_set()

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Kill it and close its pipes; idempotent."""
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)
        for listener in self._listeners:
            listener.join(END_TIMEOUT_S)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):  # what was not yet written is lost
                stream.close()  # type: ignore[union-attr]

    def last_error(self) -> str:
        """The reason of its end from stderr, on one line; call after `stop`."""
        lines = [line for line in self._stderr if line]
        reason = _reason(lines) or _ending(self._process.returncode)
        return reason if len(reason) <= MAX_QUOTED else f"{reason[: MAX_QUOTED - 1]}…"

    def _await_address(self, stdout: IO[str]) -> None:
        with contextlib.suppress(ValueError):  # it ended in place of an answer
            self.address = json.loads(stdout.readline())["address"]
        self._is_settled.set()

    def _read_stderr(self, stderr: IO[str]) -> None:
        self._stderr.extend(map(_without_time, stderr))


_REASON = lazy_pattern(r"(?:error loading model|failed to initialize the context): (.+)")


def _reason(lines: Sequence[str]) -> str:
    """The relevant part of a worker's last lines: why loading failed, or else their end.

    Example:
        >>> _reason(["llama_model_load: error loading model: no tensors", "exiting"])
        'no tensors'
        >>> _reason(["failed to read keys", "error loading model: failed to load model from x"])
        'failed to read keys'
    """
    for before, line in pairwise(["", *lines]):
        if found := _REASON.search(line):
            words = found[1]
            return before if before and "failed to load model from" in words else words
    return "; ".join(lines[-2:])


def _without_time(line: str) -> str:
    """A line of llama.cpp's without its time and level."""
    return re.sub(r"^[\d.]+ [A-Z] ", "", " ".join(line.split()))


def _ending(code: int) -> str:
    """A description of an exit status."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


START_TIMEOUT_S = 60.0  # Time limit for reading the vocabulary in seconds
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
