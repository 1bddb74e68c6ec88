"""Files of JSON lines with a header and rows: logs of evaluations, drafts of actions, curations."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
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
    rows: list[Row] = []
    try:
        with path.open("rb") as file:
            header = read_header(file.readline(), header_type, path)
            for number, line in enumerate(file, start=2):
                if not line.endswith(b"\n"):
                    break
                try:
                    rows.append(decoded(line, row_type))
                except msgspec.DecodeError as error:
                    raise DataError(f"not a row: {reason(error)}", path=path, line=number) from None
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        raise DataError(why, path=path, help="check the path") from None
    return header, rows


def read_header(line: bytes | str, header_type: type[Head], path: str | Path) -> Head:
    """The header in the first line of a file."""
    if not line:
        raise DataError("the file is empty", path=path)
    try:
        return decoded(line, header_type)
    except msgspec.DecodeError:
        help = "the first line of such a file is the header that pearl writes"
    told = ""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        told = f": it is a '{json.loads(line)['kind']}' of another version, or another file"
    raise DataError(f"not a file of this kind{told}", path=path, line=1, help=help)


def write_journal(file: IO[str], header: Struct, rows: Iterable[Struct]) -> None:
    """Write a header and its rows, one JSON object per line."""
    file.writelines(f"{json_bytes(line).decode()}\n" for line in (header, *rows))
