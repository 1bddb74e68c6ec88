"""Files of tasks (`id`, a plan or question, a document, gold data) and samples → tasks, read one by one. An invalid row becomes a task that fails."""

from __future__ import annotations

import dataclasses
import io
import os
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from msgspec.structs import replace

from pearl.actions.library import library_names
from pearl.data.rows import Names, Position, Row, read_file
from pearl.data.samples import Sample
from pearl.data.storage import StoredFile
from pearl.documents.digest import DigestTable, digest, sealed, text_sha256, unsealed
from pearl.documents.document import (
    Document,
    file_source,
    from_text,
    kind_by_name,
    load,
    read_bytes,
)
from pearl.errors import DataError, UsageError
from pearl.errors.validation import reason
from pearl.plugins.persistence import write_private
from pearl.runs.executors import Task

if TYPE_CHECKING:
    from pearl.retrieval.corpus import SourceFile

PASSED_ON = ("options", "gold", "reference", "subsets")


class PlannedFor(Struct, frozen=True):
    """The library that a plan was written for."""

    domain: str
    library: str
    library_sha256: str


class _TaskRow(Struct):
    id: str | int | None = None
    question: str | None = None
    plan: str | None = None
    plan_path: str | None = None
    document: str | None = None
    document_name: str | None = None
    document_path: str | None = None
    status: str | None = None
    error: Any = None
    planned_for: PlannedFor | None = None
    parameters: dict[str, str] = {}


class TaskFile:
    """The tasks in a file, which is read at each iteration; a pipe is read only once."""

    def __init__(
        self, path: str | Path, documents: tuple[str, ...] = (), *, allow_outside: bool = False
    ) -> None:
        self._path = Path(path)
        self._documents = documents
        self._allow_outside = allow_outside
        self.library_sha256 = ""
        self._piped: list[Row | DataError] | None = None

    @cached_property
    def first_plan(self) -> tuple[PlannedFor | None, Path | None] | None:
        """The library for which the first plan was written, and that library's file if it has one."""
        for source, row in self._valid_rows():
            if row.status == "failed":
                continue
            if row.plan is None and row.plan_path is None:
                return None
            planned = row.planned_for
            if planned is None or planned.library in library_names():
                return planned, None
            library = replace(source, fields={"library": planned.library}).file("library")
            assert library is None or isinstance(library, Path), "tasks are in a local file"
            return planned, library
        return None

    @property
    def names_documents(self) -> bool:
        """Whether the file has tasks, and all of them name a document."""
        has_tasks = False
        for _, row in self._valid_rows():
            if row.document is None and row.document_path is None:
                return False
            has_tasks = True
        return has_tasks

    def __iter__(self) -> Iterator[Task]:
        names = Names()
        for row in self._rows():
            if isinstance(row, DataError):
                yield Task(str(row.line), problem=row)
            else:
                yield from self._tasks(row, names)

    def _tasks(self, source: Row, names: Names) -> Iterator[Task]:
        """The tasks of a row, one per document; an invalid row yields one that fails."""
        extra = _copied_fields(source.fields)
        try:
            row = convert(source.fields, _TaskRow, strict=False)
            id = str(source.line if row.id is None else row.id)
            plan = _plan(source, row, self.library_sha256)
            path = source.file("document_path") if row.document is None else None
        except (DataError, ValueError) as error:
            # Gold data is kept, so that the failure is scored as wrong instead of left out.
            asked = source.fields.get("question")
            question = asked if isinstance(asked, str) else None
            name = source.fields.get("document_name") or source.fields.get("document_path")
            kept = {**extra, **({"document": name} if isinstance(name, str) else {})}
            problem = error if isinstance(error, DataError) else source.error(reason(error))
            said = source.fields.get("id")
            yield Task(
                str(source.line if said is None else said),
                question=question,
                problem=problem,
                extra=kept,
            )
            return
        if row.document is not None:
            text, digest = row.document, text_sha256(row.document)
            name = names.claim(digest, row.document_name or id, source.line)
            extra["document"] = name
            task = Task(id, partial(from_text, text, name), row.question, plan, None, digest, extra)
            yield dataclasses.replace(task, parameters=row.parameters)
        elif path is not None:
            extra["document"] = name = str(row.document_path)
            yield _over_file(id, str(path), name, row.question, plan, extra, row.parameters)
        elif self._documents:
            for document in self._documents:
                own_id = id if len(self._documents) == 1 else f"{id}/{document}"
                yield _over_file(own_id, document, None, row.question, plan, extra, row.parameters)
        else:
            problem = source.error(
                "the row has neither document nor document_path, and no document was named",
                help=f"name them: pearl execute --tasks {source.path} DOC...",
            )
            yield Task(id, question=row.question, problem=problem, extra=extra)

    def _valid_rows(self) -> Iterator[tuple[Row, _TaskRow]]:
        """The valid rows; errors of the other rows are reported by their tasks."""
        for source in self._rows():
            if isinstance(source, Row):
                with suppress(ValueError):
                    yield source, convert(source.fields, _TaskRow, strict=False)

    def _rows(self) -> Iterable[Row | DataError]:
        if self._piped is not None:
            return self._piped
        rows: Iterable[Row | DataError] = read_file(self._path, allow_outside=self._allow_outside)
        if self._path.is_fifo():
            rows = self._piped = [*rows]
        return rows


def over_files(
    documents: Sequence[str | Path],
    *,
    question: str | None = None,
    plan: str | None = None,
    parameters: Mapping[str, str] | None = None,
    is_named: bool = True,
) -> list[Task]:
    """Tasks that run a question or a plan over files: one task per file, with its path as id.

    Args:
        documents: Read when their tasks are run.
        question: The question.
        plan: The text of a plan.
        parameters: A text for each parameter of the plan.
        is_named: Whether the id of a single task is its path, too, instead of "".

    Raises:
        UsageError: `documents` is a single path.
    """
    if isinstance(documents, str | Path):
        raise UsageError(
            f"'{documents}' is a single path", help="pass a list: over_files([path], ...)"
        )
    paths = list(dict.fromkeys(map(str, documents)))  # No duplicates: the path is the id
    ids = paths if len(paths) > 1 or is_named else [""]
    return [
        _over_file(id, path, None, question, plan, None, parameters)
        for id, path in zip(ids, paths, strict=True)
    ]


def _over_file(
    id: str,
    path: str,
    name: str | None,
    question: str | None,
    plan: str | None,
    extra: Mapping[str, Any] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Task:
    return Task(
        id, partial(load, path, name=name), question, plan,
        source=file_source(path), extra=extra or {}, kind=kind_by_name(name or path),
        parameters=parameters or {},
    )  # fmt: skip


class Values(Struct, frozen=True):
    """The values of a plan's parameters: the same for all rows, or read from columns."""

    given: Mapping[str, str] = {}
    columns: tuple[str, ...] = ()

    def of(self, sample: Sample) -> dict[str, Any]:
        """The parameter values for a sample."""
        fields = sample.to_dict() if self.columns else {}
        return {**self.given, **{name: fields[name] for name in self.columns if name in fields}}


class StreamedTasks(Struct, eq=False, dict=True):
    """One plan over the rows or documents at an address, one task each; they are read once, not listed in advance."""

    read: Callable[..., Iterable[Sample | DataError]]
    plan: str
    values: Values = Values()
    change: Callable[[Task], Task] = lambda task: task

    def __iter__(self) -> Iterator[Task]:
        for sample in self.read():
            if isinstance(sample, DataError):
                place = [str(each) for each in (sample.path, sample.line) if each is not None]
                yield Task(":".join(place), problem=sample)
                continue
            source = sample.source if sample.document is not None else ""
            yield self.change(Task(
                sample.id, sample.loader or sample.load, plan=self.plan, source=source,
                extra=_copied_fields(sample.to_dict()), kind=kind_by_name(sample.document_name),
                parameters=self.values.of(sample),
            ))  # fmt: skip


class DocumentTasks(StreamedTasks):
    """One plan over the documents of samples, each document once for the same parameters.

    The samples are read twice: gold data is copied only if no other sample has the same document.
    """

    n_failing = 0

    def __iter__(self) -> Iterator[Task]:
        return self._tasks(self.read(), DigestTable())

    def after(self, position: Position, seen: DigestTable) -> Iterator[Task]:
        """The tasks after a position; both arguments are updated as the data is read."""
        return self._tasks(self.read(position=position), seen)

    @cached_property
    def _n_samples(self) -> DigestTable:
        """The number of samples for each document."""
        n_samples = DigestTable()
        for sample in self.read():
            if isinstance(sample, DataError) or sample.document is None:
                self.n_failing += 1
            else:
                n_samples.add(_document_key(sample.document, self.values.of(sample)))
        return n_samples

    def _tasks(self, samples: Iterable[Sample | DataError], seen: DigestTable) -> Iterator[Task]:
        for sample in samples:
            if isinstance(sample, DataError):
                yield Task(str(sample.line), problem=sample)
                continue
            if sample.document is None:
                yield Task(sample.id, sample.load, plan=self.plan)
                continue
            values = self.values.of(sample)
            key = _document_key(sample.document, values)
            if seen.add(key) > 1:
                continue
            extra = _copied_fields(sample.to_dict())
            if extra and self._n_samples[key] > 1:
                extra = {}
            document, name = sample.document, sample.document_name
            source = document.digest if isinstance(document, Document) else sample.source
            id = sample.id if self.values.columns else name  # One row for each set of values
            yield self.change(Task(
                id, sample.loader, plan=self.plan, source=source, extra=extra, parameters=values,
            ))  # fmt: skip


class CountedDocumentTasks(DocumentTasks):
    """`DocumentTasks` with a known number."""

    def __len__(self) -> int:
        return len(self._n_samples) + self.n_failing


def _document_key(document: Document | Path | StoredFile, values: Mapping[str, object]) -> bytes:
    """The identity of a document, without its text, and of the parameter values."""
    said = repr(sorted(values.items())).encode("utf-8", "backslashreplace") if values else b""
    if isinstance(document, Document):
        return bytes.fromhex(document.digest) + said
    return os.fsencode(str(document)) + said


def _copied_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in PASSED_ON if fields.get(name) is not None}


def _plan(source: Row, row: _TaskRow, library_sha256: str) -> str | None:
    """The plan of a row; None if it only has a question."""
    if row.status == "failed":
        error = row.error.get("message", row.error) if isinstance(row.error, dict) else row.error
        raise source.error(f"the plan of this row failed: {str(error).partition(chr(10))[0]}")
    planned = row.planned_for
    if planned and library_sha256 not in ("", planned.library_sha256):
        raise source.error(
            f"its plan was written for another library, '{planned.library}'",
            help="one file of tasks for each library",
        )
    path = source.file("plan_path") if row.plan is None else None
    if path is not None:
        try:
            return read_bytes(str(path), str(row.plan_path)).decode("utf-8-sig")
        except (DataError, UnicodeDecodeError) as error:
            reason = str(error).partition("\n")[0]
            raise source.error(f"plan_path '{row.plan_path}' cannot be read: {reason}") from None
    if row.plan is None and row.question is None:
        raise source.error("the row has no plan, plan_path or question")
    return row.plan


def corpus_files(named: Sequence[str], without: Collection[Path]) -> tuple[SourceFile, ...]:
    """The files of a corpus in order, without standard input; `without` as in `find_files`."""
    from pearl.retrieval.corpus import find_files  # Imported on use: only for corpora

    paths = [name for name in named if name != "-"]
    return find_files(paths, without).files if paths else ()


def corpus_source(named: Sequence[str], without: Collection[Path]) -> str:
    """The identity of a corpus without reading it: names, sizes and times of its files."""
    if "-" in named:
        return ""
    files = corpus_files(named, without)
    return digest(part for file in files for part in (file.label, file_source(file.path))).hex()


MARGIN = 10_000
"""Upper bound of the tasks that executors hold; a position is not used until all tasks before it have rows."""

_SHARE = 20  # A position is written after a twentieth more tasks, as its size grows with them
_MAGIC = b"pearl position 3"


def from_position(tasks: DocumentTasks, path: Path, work: bytes) -> Iterator[tuple[int, Task]]:
    """The tasks with their numbers: first those after the stored position in a file, then those before it."""
    new = path.with_suffix(".new")
    start, position, seen = 0, Position(), DigestTable()
    with suppress(OSError, EOFError):  # A missing or damaged file: all tasks are read in order
        if (data := unsealed(_MAGIC + work, path.read_bytes())) is not None:
            file, number = io.BytesIO(data), array("Q")
            number.fromfile(file, 1)
            start, position, seen = number[0], Position.read(file), DigestTable.read(file)
    place = saved = start
    for place, task in enumerate(tasks.after(position, seen), start):
        yield place, task
        n_more = place + 1 - saved
        if n_more == MARGIN and saved > start:
            with suppress(OSError):
                new.replace(path)
        if n_more > MARGIN and n_more > place // _SHARE and position.offset:
            saved, file = place + 1, io.BytesIO()
            file.write(array("Q", (saved,)).tobytes())
            position.write(file)
            seen.write(file)
            with suppress(OSError):
                write_private(new, sealed(_MAGIC + work, file.getvalue()))
    del position, seen
    yield from zip(range(start), tasks, strict=False)
