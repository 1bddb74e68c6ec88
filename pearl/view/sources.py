"""Result files, trace files and stored runs → `ResultRecord`s for pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.document import Document, join, load
from pearl.errors import DataError, PearlError
from pearl.interpreter.answer import Answer
from pearl.interpreter.row import id_of
from pearl.runs.decisions import DecidedRows, Decisions
from pearl.runs.request import files_of_runs
from pearl.runs.store import RunInfo, Store, default_folder
from pearl.trace import (
    SCHEMA_VERSION,
    Event,
    RunFinished,
    RunStarted,
    StepFailed,
    StepFinished,
    read_event,
)


class ResultRecord(Struct, frozen=True):
    """The result of one task."""

    id: str
    row: Mapping[str, Any]
    events: tuple[Event, ...] = ()
    document: Document | None = None
    problems: tuple[str, ...] = ()
    resume: str = ""
    files: Mapping[str, Path] = {}
    """The files of the document by name, if their pages may be shown."""
    settings: Mapping[str, Any] = {}
    """The settings of the run, if known."""


def record_of_answer(answer: Answer, document: Document | None = None) -> ResultRecord:
    """The record of an answer, with its trace."""
    row = {"id": answer.trace.id, **answer.to_dict()}
    files = pdf_files(document)
    return ResultRecord(answer.trace.id, row, tuple(answer.trace), document, files=files)


def row_of_trace(id: str, events: Iterable[Event]) -> dict[str, Any]:
    """The row fields that a trace contains; without an end, the status is `unfinished`. Rows behind computed answers are not included."""
    row: dict[str, Any] = {"id": id, "status": "unfinished", "question": None}
    steps: list[dict[str, Any]] = []
    for event in events:
        match event:
            case RunStarted():
                names = ("question", "parameters", "document", "method", "model", "plan")
                row |= {name: getattr(event, name) for name in names}
            case StepFinished():
                same = ("action", "value", "state", "context", "coverage")
                named = {"output": event.step, "native": event.is_native, "calls": event.n_calls}
                steps.append({**named, **{name: getattr(event, name) for name in same}})
            case StepFailed():
                row["error"] = {"type": "StepFailed", "message": event.error}
            case RunFinished():
                row["status"] = event.status
                if event.status != "failed":
                    row["answer"] = event.answer
                if event.evidence is not None:
                    row["evidence"] = list(event.evidence)
                    row["unverified_quotes"] = list(event.unverified_quotes)
                row["usage"] = event.usage.to_dict()
                row["duration_s"] = event.duration_s
    return {**row, "steps": steps} if steps else row


def read_events(lines: Iterable[bytes]) -> tuple[dict[str, tuple[Event, ...]], list[str]]:
    """The valid events in the lines of any file, by id, and sentences on what is left out."""
    events: dict[str, list[Event]] = {}
    versions: dict[str, None] = {}
    n_left_out = 0
    is_cut = False
    for line in lines:
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            is_cut = not line.endswith(b"\n")
            n_left_out += bool(line.strip()) and not is_cut
            continue
        if not isinstance(data, dict) or not isinstance(data.get("id"), str):
            n_left_out += 1
            continue
        version, id = data.pop("v", None), data.pop("id")
        if version != SCHEMA_VERSION:
            versions[f"{version!s:.60}"] = None
        found = events.setdefault(id, [])
        try:
            found.append(read_event(data))
        except (ValueError, TypeError, KeyError):
            n_left_out += 1
    problems = []
    if versions:
        told = f"The trace is of version {', '.join(versions)}, this program's is {SCHEMA_VERSION}"
        problems.append(f"{told}; the page shows what it understands.")
    if n_left_out:
        problems.append(f"Unreadable events are left out: {n_left_out:,}.")
    if is_cut:
        told = "The last event is incomplete: the run was killed, or is still running."
        problems.append(told)
    return {id: tuple(each) for id, each in events.items()}, problems


MAX_LINE_BYTES = 64_000_000  # Maximum bytes of a line of a file


class ResultSource(Protocol):
    """A source of results for pages."""

    title: str
    folder: Path
    problems: list[str]

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield every row in order, with its key for `record`."""

    def record(self, key: int) -> ResultRecord:
        """A result with its trace; its document is not loaded."""


class RunResults:
    """The results of a stored run."""

    def __init__(self, reader: Store, name: str) -> None:
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
            self.problems.append(f"Damaged rows of the store, left out: {n_damaged:,}.")

    def record(self, key: int) -> ResultRecord:
        """A result with its trace."""
        row, lines = self._reader.with_trace(key)
        if row is None:
            raise DataError(f"{self.title} has no such row")
        id, settings = id_of(row), self.info.settings
        events, problems = read_events(lines.encode(errors="replace").splitlines(keepends=True))
        told = tuple(problems) if lines else ("The result has no trace.",)
        resume = f"pearl runs resume {self.info.id}"
        own = events.get(id, ())
        return ResultRecord(id, row, own, problems=told, resume=resume, settings=settings)

    def now(self) -> RunInfo:
        """The current state of the run."""
        return self._reader.run(self.info.id)


class Reviewed:
    """Results with people's decisions applied."""

    def __init__(self, source: ResultSource, decisions: Decisions) -> None:
        self.title, self.folder, self.problems = source.title, source.folder, source.problems
        self._source, self._rows = source, DecidedRows(tuple, decisions)

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The rows of the source."""
        yield from ((key, self._rows.taken(row)) for key, row in self._source.rows())

    def record(self, key: int) -> ResultRecord:
        """A result with its trace."""
        record = self._source.record(key)
        return replace(record, row=self._rows.taken(record.row))


class ResultsFile:
    """A results file, as written by `--out` and `pearl runs export`."""

    def __init__(self, path: Path, traces: Path | None = None) -> None:
        self.title = path.name
        self.folder = path.parent
        self.problems: list[str] = []
        self._path = path
        with path.open("rb") as file:
            # One row over several lines, as `--json` prints it
            self._is_one = _object(file.readline(MAX_LINE_BYTES)) is None
        self._traces: dict[str, tuple[Event, ...]] = {}
        self._told: tuple[str, ...] = ()
        if traces is not None:
            self._traces, told = _read_traces(traces)
            self._told = tuple(told)

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The rows of the file; the key is the position in bytes."""
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
                    self.problems.append(f"Line {number} is not a row of results and is left out.")
                at = file.tell()

    def record(self, key: int) -> ResultRecord:
        """A result, with the trace of the same id if there is one."""
        row = self._row(key)
        id = id_of(row)
        trace = self._traces.get(id)
        if trace is None:
            return ResultRecord(id, row, problems=("The result has no trace.",))
        return ResultRecord(id, row, trace, problems=self._told)

    def _row(self, key: int) -> Mapping[str, Any]:
        row = None
        with suppress(OSError), self._path.open("rb") as file:  # A key may be invalid
            file.seek(key)
            row = _object(
                file.read(MAX_LINE_BYTES) if self._is_one else file.readline(MAX_LINE_BYTES)
            )
        if row is None:
            raise DataError("the row is gone", path=self._path)
        return row


class TraceFile:
    """A trace file, as written by `--trace`, even by a running or killed run."""

    def __init__(self, path: Path) -> None:
        self.title = path.name
        self.folder = path.parent
        events, self.problems = _read_traces(path)
        self._traces = list(events.items())
        self._told = tuple(self.problems)

    def rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The rows of the traces."""
        for number, (id, events) in enumerate(self._traces):
            yield number, row_of_trace(id, events)

    def record(self, key: int) -> ResultRecord:
        """The result in one trace."""
        id, events = self._traces[key]
        return ResultRecord(id, row_of_trace(id, events), events, problems=self._told)


def open_results(path: Path, traces: Path | None = None) -> ResultsFile | TraceFile | None:
    """Open a results or trace file, recognised by its first line; None for another file."""
    try:
        with path.open("rb") as file:
            line = file.readline(MAX_LINE_BYTES)
            first = _object(line) or _object(line + file.read(MAX_LINE_BYTES)) or {}
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from None
    if "event" in first and "v" in first:
        return TraceFile(path)
    # The output of `pearl ask --json` is one row over several lines, without an id.
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


def with_document(record: ResultRecord, folders: Sequence[Path]) -> ResultRecord:
    """Load the document of an untrusted record, only from within the folders; problems are added to the record."""
    name = record.row.get("document")
    if record.document is not None or not isinstance(name, str) or not name.strip():
        return record
    wanted = next((e.document_sha256 for e in record.events if isinstance(e, RunStarted)), None)
    problems: list[str] = []
    other: tuple[Document, dict[str, Path]] | None = None  # of that name, but with another content
    for folder in folders:
        for path in dict.fromkeys([_within(folder, name), _within(folder, Path(name).name)]):
            if path is None:
                continue
            try:
                document, files = _loaded(path, name)
            except PearlError as error:
                problems.append(f"The document cannot be read: {error.message.splitlines()[0]}.")
                continue
            if wanted is None or document.digest == wanted:
                return replace(record, document=document, files=files)
            other = other or (document, files)
    if other is not None:
        return replace(record, document=other[0], files=other[1])
    return replace(record, problems=(*record.problems, *problems[:1]))


def _loaded(path: Path, name: str) -> tuple[Document, dict[str, Path]]:
    """A file, or all files of a folder as one document, and their paths by name."""
    if not path.is_dir():
        return load(path, name=name), {name: path}
    from pearl.retrieval.corpus import find_files  # Imported on use: only for corpora

    without = files_of_runs(default_folder())
    files = {file.label: Path(file.path) for file in find_files([path], without).files}
    return join((load(at, name=label) for label, at in files.items()), name), files


def pdf_files(document: Document | None) -> dict[str, Path]:
    """The PDF files from which a document was read, by name."""
    names = [document.name, *(name for name, _ in document.parts)] if document else []
    prefixes = [f"{each.name}: " for each in document.sources] if document else []  # rules: a.pdf
    paths = {
        name: Path(name.removeprefix(next(filter(name.startswith, prefixes), "")))
        for name in names if name.lower().endswith(".pdf")
    }  # fmt: skip
    return {name: path for name, path in paths.items() if path.is_file()}


def _within(folder: Path, name: str) -> Path | None:
    """A file or folder within a folder, after resolving links; None if it is missing or outside."""
    try:
        root, path = folder.resolve(), (folder / name).resolve()
        return path if path.is_relative_to(root) and path != root and path.exists() else None
    except (OSError, ValueError, RuntimeError):
        return None
