"""Files of tasks, and samples → tasks, one by one; a bad row is a task with a problem.

A row of a tasks file: `id`, one of `plan | plan_path | question`, one of `document |
document_path`. Paths are relative to the file. What `pearl plan --data` writes can be read here;
what is right of a row (`options, gold, reference, subsets`) is passed on to its result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pearl.errors import DataError
from pearl.executors import Task, text_source
from pearl.journal import reason
from pearl.rows import Names, Row, read_file
from pearl.samples import Sample
from pearl.sources import Document, file_source, from_text, load

__all__ = ["DocumentTasks", "read_tasks"]

_PASSED_ON = ("options", "gold", "reference", "subsets")


class _TaskRow(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str | int | None = None
    question: str | None = None
    plan: str | None = None
    plan_path: str | None = None
    document: str | None = None
    document_name: str | None = None
    document_path: str | None = None
    status: str | None = None
    error: Any = None


def read_tasks(path: str | Path, documents: tuple[str, ...] = ()) -> Iterator[Task]:
    """The tasks of a file.

    Args:
        path: JSON Lines, or any other file of rows.
        documents: Documents for those rows that name none: each row runs over each of them.

    Raises:
        DataError: The file cannot be read.
    """
    names = Names()
    for row in read_file(Path(path)):
        if isinstance(row, DataError):
            yield Task(str(row.line), problem=row)
        else:
            yield from _tasks(row, documents, names)


class DocumentTasks:
    """One plan over the documents of samples, each document once, in the order of the data.

    What is right of a sample is passed on where it is the only one of its document. The samples are
    read twice, so that their documents are in memory one at a time.

    Args:
        read: Reads the samples from the first; an error, and a sample that has no document, becomes
            a task that fails.
        plan: Text of the plan.
        n_longest: Only so many documents, the longest by characters, the longest first; and those
            that cannot be read, to fail and say so.

    Raises:
        PearlError: What `read` raises.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Sample | DataError]],
        plan: str,
        n_longest: int | None = None,
    ) -> None:
        self._read = read
        self._plan = plan
        self._n_samples: Counter[Hashable] = Counter()
        self._n_failing = 0
        lengths: dict[Hashable, float] = {}
        for sample in read():
            if isinstance(sample, DataError) or sample.document is None:
                self._n_failing += 1
                continue
            key = _document_key(sample.document)
            if n_longest is not None and key not in self._n_samples:
                lengths[key] = _length(sample)
            self._n_samples[key] += 1
        self._longest: list[Hashable] | None = None
        if n_longest is not None:
            readable = [key for key, length in lengths.items() if length >= 0]
            unreadable = [key for key, length in lengths.items() if length < 0]
            self._longest = sorted(readable, key=lambda key: -lengths[key])[:n_longest] + unreadable

    def __len__(self) -> int:
        return self._n_failing + len(self._n_samples if self._longest is None else self._longest)

    def __iter__(self) -> Iterator[Task]:
        if self._longest is None:
            return (task for _, task in self._tasks())
        places = {key: place for place, key in enumerate(self._longest)}
        found = [(places.get(key, len(places)), task) for key, task in self._tasks(places)]
        return (task for _, task in sorted(found, key=lambda each: each[0]))

    def _tasks(self, wanted: Container[Hashable] | None = None) -> Iterator[tuple[Hashable, Task]]:
        seen: set[Hashable] = set()
        for sample in self._read():
            if isinstance(sample, DataError):
                yield None, Task(str(sample.line), problem=sample)
                continue
            if sample.document is None:
                yield None, Task(sample.id, sample.load, plan=self._plan)
                continue
            key = _document_key(sample.document)
            if key in seen or (wanted is not None and key not in wanted):
                continue
            seen.add(key)
            extra = _passed_on(sample.to_json()) if self._n_samples[key] == 1 else {}
            document = sample.document
            source = file_source(document) if isinstance(document, Path) else document.digest
            yield (
                key,
                Task(
                    sample.document_name, sample.load, plan=self._plan, source=source, extra=extra
                ),
            )


def _document_key(document: Document | Path) -> Path | bytes:
    """What tells a document from others, without its text."""
    return document if isinstance(document, Path) else bytes.fromhex(document.digest)


def _length(sample: Sample) -> int:
    """Characters of the document; -1 for one that cannot be read."""
    try:
        return len(sample.load().text)
    except DataError:
        return -1


def _passed_on(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in _PASSED_ON if fields.get(name) is not None}


def _tasks(source: Row, documents: tuple[str, ...], names: Names) -> Iterator[Task]:
    extra = _passed_on(source.fields)

    def bad(message: str, id: str) -> Task:
        # What is right of it goes along: a failure is scored as wrong, not left out.
        asked = source.fields.get("question")
        question = asked if isinstance(asked, str) else None
        name = source.fields.get("document_name") or source.fields.get("document_path")
        kept = {**extra, **({"document": name} if isinstance(name, str) else {})}
        return Task(id, question=question, problem=source.error(message), extra=kept)

    try:
        row = _TaskRow.model_validate(source.fields)
    except ValidationError as error:
        yield bad(reason(error), str(source.fields.get("id") or source.line))
        return
    id = str(source.line if row.id is None else row.id)
    if row.status == "failed":
        yield bad(f"the plan of this row failed: {_message(row.error)}", id)
        return
    plan = row.plan
    if plan is None and row.plan_path is not None:
        try:
            plan = (Path(source.path).parent / row.plan_path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            yield bad(f"plan_path '{row.plan_path}' cannot be read: {error}", id)
            return
    if plan is None and row.question is None:
        yield bad("the row has none of plan, plan_path, question", id)
        return
    if row.document is not None:
        text, digest = row.document, text_source(row.document)
        name = names.claim(digest, row.document_name or id, source.line)
        extra["document"] = name
        yield Task(id, partial(from_text, text, name), row.question, plan, None, digest, extra)
    elif row.document_path is not None:
        path, name = Path(source.path).parent / row.document_path, row.document_path
        extra["document"] = name
        yield Task(
            id, partial(load, path, name=name), row.question, plan, None, file_source(path), extra
        )
    elif documents:
        for document in documents:
            each = id if len(documents) == 1 else f"{id}/{document}"
            yield Task(
                each,
                partial(load, document),
                row.question,
                plan,
                None,
                file_source(document),
                extra,
            )
    else:
        yield bad("the row has none of document, document_path, and no document was named", id)


def _message(error: Any) -> str:
    return str(error.get("message", error) if isinstance(error, dict) else error).split("\n")[0]
