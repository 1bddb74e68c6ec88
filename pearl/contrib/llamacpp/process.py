"""The child process that runs llama.cpp, and a tokenizer that uses it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO

from pearl.documents.rows import shortened
from pearl.errors import ModelError
from pearl.llm.backends.openai import servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.sessions import TIMEOUT_S, HttpSession, ServerTokenizer, aside

SCRIPT = Path(__file__).with_name("worker.py")
MAX_LINES = 40  # Maximum stored lines of a worker's stderr
MAX_QUOTED = 200  # Maximum characters of its error in a message
END_TIMEOUT_S = 10.0  # seconds to wait for a killed process to end
EXIT_TIMEOUT_S = 2.0  # Seconds to wait for a process to exit after its connections closed
# Polling interval for a worker in seconds; asyncio's primitives would belong to one event loop.
POLL_S = 0.01
START_TIMEOUT_S = 60.0  # Time limit for reading the vocabulary in seconds


class WorkerProcess:
    """A child process that loads and serves one model. Threads read its output, so any event loop may use it."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self.address = ""
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
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # on Windows
        )
        self.pid = self._process.pid
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
        with suppress(OSError):  # the process has ended; stderr says why
            stdin.write(json.dumps(settings) + "\n")
            stdin.flush()

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    async def settle(self) -> None:
        """Wait until start-up has finished, successfully or not."""
        while not self._is_settled.is_set():  # noqa: ASYNC110, an event belongs to one loop
            await asyncio.sleep(POLL_S)

    async def has_ended(self) -> bool:
        """Wait up to `EXIT_TIMEOUT_S` for the process to end; return whether it did."""
        for _ in range(int(EXIT_TIMEOUT_S / POLL_S)):
            if not self.is_alive:
                return True
            await asyncio.sleep(POLL_S)
        return False

    def stop(self) -> None:
        """Kill it and close its pipes; idempotent."""
        self._process.kill()
        self._process.wait(END_TIMEOUT_S)
        for listener in self._listeners:
            listener.join(END_TIMEOUT_S)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError):  # unwritten data is lost
                stream.close()  # type: ignore[union-attr]

    def last_error(self) -> str:
        """Why the process ended, from stderr, on one line; call after `stop`."""
        reason, code = _reason([line for line in self._stderr if line]), self._process.returncode
        if not reason and code >= 0:
            reason = f"ended with code {code}"
        elif not reason:
            reason = f"ended by signal {-code}"
            with suppress(ValueError):
                reason = f"ended by {signal.Signals(-code).name}"
        return shortened(reason, MAX_QUOTED)

    def _await_address(self, stdout: IO[str]) -> None:
        with suppress(ValueError):  # the process ended without an answer
            self.address = json.loads(stdout.readline())["address"]
        self._is_settled.set()

    def _read_stderr(self, stderr: IO[str]) -> None:
        for line in stderr:  # llama.cpp writes the time and the level first
            self._stderr.append(re.sub(r"^[\d.]+ [A-Z] ", "", " ".join(line.split())))


_REASONS = ("error loading model: ", "failed to initialize the context: ")


def _reason(lines: Sequence[str]) -> str:
    """The relevant part of a worker's last lines: why loading failed, or else their end.

    Example:
        >>> _reason(["llama_model_load: error loading model: no tensors", "exiting"])
        'no tensors'
        >>> _reason(["failed to read keys", "error loading model: failed to load model from x"])
        'failed to read keys'
    """
    for before, line in pairwise(["", *lines]):
        for mark in _REASONS:
            if reason := line.partition(mark)[2]:
                return before if before and "failed to load model from" in reason else reason
    return "; ".join(lines[-2:])


class Worker:
    """The process of a model file, started on demand from any thread and event loop."""

    def __init__(self, path: Path, settings: Mapping[str, object]) -> None:
        self.process: WorkerProcess | None = None
        self._path = path
        self._settings = settings
        self._starting = threading.Lock()

    @property
    def address(self) -> str:
        """The address of the process; "" until a process has loaded the model."""
        process = self.process
        return process.address if process and process.is_alive else ""

    async def serving(self, timeout_s: float) -> WorkerProcess:
        """Start the process if necessary, and wait until it has loaded the model."""
        with self._starting:
            if self.process is None or not self.process.is_alive:
                self.stop()
                try:
                    self.process = WorkerProcess(self._settings)
                except OSError as error:
                    message = f"llama.cpp cannot be started: {error.strerror}"
                    raise ModelError(message, kind="transport") from None
            process = self.process
        try:
            async with asyncio.timeout(timeout_s):
                await process.settle()
        except TimeoutError:
            process.stop()
            raise ModelError(
                f"{self._path} was not loaded within {timeout_s:g} s",
                kind="deadline",
                help="allow more with --timeout-s, or use a smaller model",
            ) from None
        if not process.address:
            await process.has_ended()  # its error message is complete only then
            process.stop()
            raise ModelError(
                f"llama.cpp cannot load {self._path}: {process.last_error()}",
                kind="bad_request",
                help="check that the file is complete; a smaller --window needs less memory",
            )
        return process

    def stop(self) -> None:
        """Kill the process; a later request starts another."""
        process, self.process = self.process, None
        if process is not None:
            process.stop()


class FileTokenizer(ServerTokenizer):
    """The tokenizer of a model file; uses the process that runs the model, else starts one."""

    def __init__(self, name: str, alias: str, key: str, running: Worker, own: Worker) -> None:
        self.name = name
        self.worker = own
        self._alias = alias
        self._key = key
        self._running = running
        self._sessions: dict[str, HttpSession] = {}

    async def _connected(self) -> tuple[HttpSession, Server]:
        address = self._running.address or (await self.worker.serving(START_TIMEOUT_S)).address
        if address not in self._sessions:
            endpoint = Endpoint(f"{address}/v1", self._alias, self._key)
            self._sessions[address] = HttpSession(endpoint, TIMEOUT_S)
        return self._sessions[address], servers.load("llamacpp")

    async def aclose(self) -> None:
        """Stop the process; a later count starts another."""
        while self._sessions:
            _, session = self._sessions.popitem()
            await asyncio.wrap_future(aside(session.aclose()))
        await asyncio.to_thread(self.worker.stop)  # It waits for the process
