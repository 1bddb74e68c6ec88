"""Files of JSON lines with a header and rows: logs of evaluations, drafts of actions, curations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TypeVar

import msgspec
from msgspec import Struct

from pearl.errors import DataError
from pearl.errors.escaping import json_bytes
from pearl.errors.validation import decoded, reason

Head = TypeVar("Head", bound=Struct)
Row = TypeVar("Row", bound=Struct)


def read_journal(
    path: Path, header_type: type[Head], row_type: type[Row]
) -> tuple[Head, list[Row]]:
    """The header and the rows; an incomplete last line is left out."""
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise DataError("the file is empty", path=path)
    try:
        header = decoded(first, header_type)
    except msgspec.DecodeError:
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
            rows.append(decoded(line, row_type))
        except msgspec.DecodeError as error:
            raise DataError(f"not a row: {reason(error)}", path=path, line=number) from None
    return header, rows


def _kind(line: bytes) -> str:
    """A description of the kind that a file's first line names."""
    try:
        kind = json.loads(line)["kind"]
    except (ValueError, TypeError, KeyError, RecursionError):
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


def write_journal(file: IO[str], header: Struct, rows: Iterable[Struct]) -> None:
    """Write a header and its rows, one JSON object per line."""
    file.writelines(f"{json_bytes(line).decode()}\n" for line in (header, *rows))
