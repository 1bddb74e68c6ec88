"""Files of JSON lines with a header and rows: logs of evaluations, drafts of actions, curations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pearl.errors import DataError

Head = TypeVar("Head", bound=BaseModel)
Row = TypeVar("Row", bound=BaseModel)


class Frozen(BaseModel):
    """Base of a journal line: immutable, without extra fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def reason(error: ValidationError) -> str:
    """The first validation error, on one line."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def read_journal(
    path: Path, header_type: type[Head], row_type: type[Row]
) -> tuple[Head, list[Row]]:
    """The header and the rows; an incomplete last line is left out."""
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise DataError("the file is empty", path=path)
    try:
        header = header_type.model_validate_json(first)
    except ValidationError:
        raise DataError(
            f"not a file of this kind{_kind(first)}",
            path=path,
            line=1,
            help="the first line of such a file is the header that pearl writes",
        ) from None
    rows: list[Row] = []
    for number, line in enumerate(lines, start=2):
        if not line.endswith(b"\n"):
            break
        try:
            rows.append(row_type.model_validate_json(line))
        except ValidationError as error:
            raise DataError(f"not a row: {reason(error)}", path=path, line=number) from None
    return header, rows


def _kind(line: bytes) -> str:
    """A description of the kind that a file's first line names."""
    try:
        kind = json.loads(line)["kind"]
    except (ValueError, TypeError, KeyError):
        return ""
    return (
        f": it is a '{kind}' of another version, or another file" if isinstance(kind, str) else ""
    )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise DataError(
            f"cannot be read: {error.strerror}", path=path, help="check the path"
        ) from None


def write_journal(file: IO[str], header: BaseModel, rows: Iterable[BaseModel]) -> None:
    """Write a header and its rows, one JSON object per line."""
    file.writelines(f"{line.model_dump_json()}\n" for line in (header, *rows))
