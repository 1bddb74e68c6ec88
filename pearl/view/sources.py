"""A run of the store, a file of results or a file of traces → its results, one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from pearl.errors import DataError
from pearl.runs.store.reading import Reader
from pearl.trace import Event
from pearl.view.events import read_events
from pearl.view.record import ResultRecord, id_of, row_of_trace

MAX_LINE_BYTES = 64_000_000
"""Of a line of a file."""


class ResultSource(Protocol):
    """Results to look at."""

    title: str
    folder: Path
    problems: list[str]

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Every row in order, read as they are taken, with what `record` finds it by."""

    def record(self, key: int) -> ResultRecord:
        """One result, with its trace; its document is not loaded."""


class RunResults:
    """The results of a run of the store."""

    def __init__(self, reader: Reader, name: str) -> None:
        self.info = reader.run(name)
        self.title = f"run {self.info.id}"
        self.folder = Path(self.info.folder)
        self.problems: list[str] = []
        self._reader = reader

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The rows of the run, in the order of the work."""
        self.problems.clear()
        n_damaged = 0
        for key, row in self._reader.outcomes(self.info.id):
            if row is None:
                n_damaged += 1
            else:
                yield key, row
        if n_damaged:
            self.problems.append(f"Rows that are damaged in the store and left out: {n_damaged:,}.")

    def record(self, key: int) -> ResultRecord:
        """One result, with its trace."""
        row, lines = self._reader.with_trace(key)
        if row is None:
            raise DataError(f"the store of {self.title} has no such row")
        return _traced(id_of(row), row, lines)


class ResultsFile:
    """A file of results, as `--out` and `pearl runs export` write it."""

    def __init__(self, path: Path, traces: Path | None = None) -> None:
        self.title = path.name
        self.folder = path.parent
        self.problems: list[str] = []
        self._path = path
        with path.open("rb") as file:
            self._is_one = _object(file.readline(MAX_LINE_BYTES)) is None
        self._traces: dict[str, tuple[Event, ...]] = {}
        self._told: tuple[str, ...] = ()
        if traces is not None:
            self._traces, told = _read_traces(traces)
            self._told = tuple(told)

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The rows of the file, with where each begins, in bytes."""
        self.problems.clear()
        if self._is_one:
            yield 0, self._row(0)
            return
        with self._path.open("rb") as file:
            at, number = 0, 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                row = _object(line)
                if row is not None:
                    yield at, row
                elif line.strip():
                    self.problems.append(f"Line {number} is no row of results and is left out.")
                at = file.tell()

    def record(self, key: int) -> ResultRecord:
        """One result, with its trace if there is one of its id."""
        row = self._row(key)
        id = id_of(row)
        trace = self._traces.get(id)
        if trace is None:
            return ResultRecord(id, row, problems=("There is no trace of it.",))
        return ResultRecord(id, row, trace, problems=self._told)

    def _row(self, key: int) -> Mapping[str, Any]:
        row = None
        with suppress(OSError), self._path.open("rb") as file:  # no file is as long as some keys
            file.seek(key)
            row = _object(
                file.read(MAX_LINE_BYTES) if self._is_one else file.readline(MAX_LINE_BYTES)
            )
        if row is None:
            raise DataError("the row is no longer there", path=self._path)
        return row


class TraceFile:
    """A file of traces, as `--trace` writes it, that of a run that is going on or was killed included."""

    def __init__(self, path: Path) -> None:
        self.title = path.name
        self.folder = path.parent
        self.problems: list[str] = []
        events, told = _read_traces(path)
        self._traces = list(events.items())
        self.problems += told
        self._told = tuple(told)

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """What each trace says of its result."""
        for number, (id, events) in enumerate(self._traces):
            yield number, row_of_trace(id, events)

    def record(self, key: int) -> ResultRecord:
        """One trace."""
        id, events = self._traces[key]
        return ResultRecord(id, row_of_trace(id, events), events, problems=self._told)


def open_results(path: Path, traces: Path | None = None) -> ResultsFile | TraceFile | None:
    """What a file holds, by its first line; None if it is neither results nor traces."""
    try:
        with path.open("rb") as file:
            line = file.readline(MAX_LINE_BYTES)
            first = _object(line) or _object(line + file.read(MAX_LINE_BYTES)) or {}
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    if "event" in first and "v" in first:
        return TraceFile(path)
    # What `pearl ask --json` prints is one row over several lines, without an id.
    if "status" in first and ("id" in first or "answer" in first):
        return ResultsFile(path, traces)
    return None


def _read_traces(path: Path) -> tuple[dict[str, tuple[Event, ...]], list[str]]:
    try:
        with path.open("rb") as lines:
            return read_events(lines)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None


def _object(line: bytes) -> dict[str, Any] | None:
    with suppress(ValueError, RecursionError):
        found = json.loads(line.decode())
        return found if isinstance(found, dict) else None
    return None


def _traced(id: str, row: Mapping[str, Any], lines: str) -> ResultRecord:
    if not lines:
        return ResultRecord(id, row, problems=("There is no trace of it.",))
    events, problems = read_events(lines.encode(errors="replace").splitlines(keepends=True))
    return ResultRecord(id, row, events.get(id, ()), problems=tuple(problems))
