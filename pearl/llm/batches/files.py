"""Batches as files of a folder, in OpenAI's form, for a program that the user runs: `vllm run-batch`.

A file of requests is named by its content, so the same command finds its results without any record.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pearl.documents.digest import digest
from pearl.errors import ModelError, StoreError
from pearl.llm import Completion, Request
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.sessions import HttpSession
from pearl.llm.batches import MAX_RESULT_BYTES, Batch, State, Submission
from pearl.llm.batches.openai import VendorBatches

REQUESTS = ".requests.jsonl"
RESULTS = ".results.jsonl"
FAILED = ".failed.jsonl"  # Results without a usable reply


class FileBatches(VendorBatches):
    """Files of requests for one model, and the files of results that the user's program writes."""

    n_probe = 0  # the user sees what fails
    is_by_hand = True

    def __init__(self, session: HttpSession, server: Server | None, folder: Path) -> None:
        is_other = server is not None and server.with_nothing is not None  # of another API
        super().__init__(session, None if is_other else server)
        self._folder = folder.absolute()
        self._prefix = re.sub(r"[^\w.]+", "-", session.endpoint.model)[-60:] + "-"
        self.server = str(self._folder)
        self._flaws: dict[str, str] = {}  # what is wrong with a file of results

    async def upload(self, lines: Sequence[bytes]) -> str:
        """Write a file of requests, unless it has its results; returns its name without the ending."""
        name = f"{self._prefix}{digest(sorted(lines)).hex()[:16]}"
        return await asyncio.to_thread(self._write, name, b"\n".join([*lines, b""]))

    def _write(self, name: str, data: bytes) -> str:
        path = self._folder / (name + REQUESTS)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not (self._folder / (name + RESULTS)).exists() and not path.exists():
                part = path.with_suffix(f".{os.getpid()}.part")
                with part.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                part.replace(path)
        except OSError as error:
            raise StoreError(error.strerror or str(error), path=path) from None
        return name

    async def create(self, submission: Submission, lines: Sequence[bytes]) -> Batch:
        """The batch of a file, which the user's program carries out."""
        return Batch(_id(submission), "no results yet", "waiting")

    async def find(self, submission: Submission) -> Batch | None:
        """The batch of a file of requests; its id has the number of requests."""
        return await self.retrieve(_id(submission))

    async def retrieve(self, id: str) -> Batch | None:
        """Whether all results of a file of requests are there; None if neither file is."""
        name, _, n = id.rpartition("-")
        return await asyncio.to_thread(self._look, id, name, int(n))

    def _look(self, id: str, name: str, n: int) -> Batch | None:
        results = self._folder / (name + RESULTS)
        try:
            if not results.exists():
                is_there = (self._folder / (name + REQUESTS)).exists()
                return Batch(id, "no results yet", "waiting") if is_there else None
            if results.stat().st_size > MAX_RESULT_BYTES:
                raise ModelError(f"{results} is larger than 1 GiB", kind="bad_request")
            # The program may still write it, so only whole lines count.
            with results.open("rb") as file:
                n_lines = sum(map(_is_whole, file))
        except OSError as error:
            raise StoreError(error.strerror or str(error), path=results) from None
        is_over = n_lines >= n
        if is_over:
            self._flaws.pop(name, None)
        else:
            self._flaws[name] = f"{name}{RESULTS} has {n_lines:,} of {n:,} results"
        state: State = "completed" if is_over else "waiting"
        return Batch(id, f"{n_lines} of {n} results", state, n_lines, (name,) if is_over else ())

    async def _download(self, place: str) -> bytes | None:
        path = self._folder / (place + RESULTS)
        try:
            return await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            raise StoreError(error.strerror or str(error), path=path) from None

    async def results(
        self, batch: Batch, asked: Mapping[bytes, Request], keys: Iterable[bytes]
    ) -> dict[bytes, Completion | ModelError] | None:
        """The results in a file."""
        results = await super().results(batch, asked, keys) or {}
        (place,) = batch.places
        own = [results[key] for key in keys if key in results]
        errors = [result.message for result in own if isinstance(result, ModelError)]
        if len(errors) == len(own):
            why = errors[0] if errors else "it has the results of other requests"
            self._flaws[place] = f"{place}{FAILED} has no usable reply: {why}"
        return results

    async def end(self, batch: Batch) -> None:
        """Remove the file of requests; the results are the user's.

        Results without a usable reply get another name, or each attempt would read them again.
        """
        (place,) = batch.places
        with suppress(OSError):
            if place in self._flaws:
                (self._folder / (place + RESULTS)).replace(self._folder / (place + FAILED))
            (self._folder / (place + REQUESTS)).unlink()

    def pause(self, submissions: Sequence[Submission]) -> tuple[str, str]:
        """The command that carries out the files of requests."""
        names = sorted(submission.file_id for submission in submissions)
        n = len(names)
        model = shlex.quote(self._endpoint.model)
        folder = shlex.quote(str(self._folder))
        flaw = next((f"; {self._flaws[name]}" for name in names if name in self._flaws), "")
        if n == 1:
            file = f"{folder}/{names[0]}"
            run = f"vllm run-batch -i {file}{REQUESTS} -o {file}{RESULTS} --model {model}"
        else:
            run = (
                f"(cd {folder} && for f in {' '.join(names)}; do vllm run-batch -i $f{REQUESTS} "
                f"-o $f{RESULTS} --model {model}; done)"
            )
        files = f"{n:,} file{'' if n == 1 else 's'} of requests"
        return f"{files} in {folder} wait for results{flaw}", f"{run}; then the same command again"


def _id(submission: Submission) -> str:
    """The name of a file with the number of its requests."""
    return f"{submission.file_id}-{len(submission.keys)}"


def _is_whole(line: bytes) -> bool:
    if line.endswith(b"\n"):
        return not line.isspace()
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
