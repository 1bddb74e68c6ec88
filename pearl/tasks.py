"""JSONL files of questions and tasks → rows, one by one; a bad row is a row with a problem.

A row of a tasks file: `id`, one of `plan | plan_path | question`, one of `document |
document_path`. Paths are relative to the file. What `pearl plan --data` writes can be read here.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pearl.errors import DataError
from pearl.executors import Task
from pearl.sources import from_text, load

__all__ = ["QuestionRow", "read_questions", "read_tasks"]


class QuestionRow(BaseModel):
    """A row of a questions file; other fields are kept."""

    model_config = ConfigDict(extra="allow")

    id: str | int | None = None
    question: str


class _TaskRow(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str | int | None = None
    question: str | None = None
    plan: str | None = None
    plan_path: str | None = None
    document: str | None = None
    document_path: str | None = None
    status: str | None = None
    error: Any = None


def _rows(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, numbered from 1."""
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                row = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if row.strip():
                    yield number, row
    except FileNotFoundError:
        raise DataError("no such file", path=path, help="check the path") from None
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", path=path, help="check the path"
        ) from None


def read_questions(path: str | Path) -> Iterator[QuestionRow | DataError]:
    """The rows of a questions file, an error for each that is none.

    Raises:
        DataError: The file cannot be read.
    """
    for number, line in _rows(Path(path)):
        try:
            row = QuestionRow.model_validate_json(line)
        except ValidationError as error:
            yield DataError(_reason(error), path=path, line=number)
            continue
        yield row.model_copy(update={"id": str(number if row.id is None else row.id)})


def read_tasks(path: str | Path, documents: tuple[str, ...] = ()) -> Iterator[Task]:
    """The tasks of a file.

    Args:
        path: A JSONL file.
        documents: Documents for those rows that name none: each row runs over each of them.

    Raises:
        DataError: The file cannot be read.
    """
    for number, line in _rows(Path(path)):
        yield from _tasks(Path(path), number, line, documents)


def _tasks(path: Path, number: int, line: bytes, documents: tuple[str, ...]) -> Iterator[Task]:
    def bad(message: str, id: str) -> Task:
        return Task(id, problem=DataError(message, path=path, line=number))

    try:
        row = _TaskRow.model_validate_json(line)
    except ValidationError as error:
        yield bad(_reason(error), _id(line) or str(number))
        return
    id = str(number if row.id is None else row.id)
    if row.status == "failed":
        yield bad(f"the plan of this row failed: {_message(row.error)}", id)
        return
    plan = row.plan
    if plan is None and row.plan_path is not None:
        try:
            plan = (path.parent / row.plan_path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            yield bad(f"plan_path '{row.plan_path}' cannot be read: {error}", id)
            return
    if plan is None and row.question is None:
        yield bad("the row has none of plan, plan_path, question", id)
        return
    if row.document is not None:
        yield Task(id, partial(from_text, row.document, id), row.question, plan)
    elif row.document_path is not None:
        source = path.parent / row.document_path
        yield Task(id, partial(load, source, name=row.document_path), row.question, plan)
    elif documents:
        for document in documents:
            each = id if len(documents) == 1 else f"{id}/{document}"
            yield Task(each, partial(load, document), row.question, plan)
    else:
        yield bad("the row has none of document, document_path, and no document was named", id)


def _id(line: bytes) -> str | None:
    """The id of a row that is wrong otherwise."""
    try:
        return str(json.loads(line)["id"])
    except (ValueError, TypeError, KeyError):
        return None


def _message(error: Any) -> str:
    return str(error.get("message", error) if isinstance(error, dict) else error).split("\n")[0]


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])
