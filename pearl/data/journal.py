"""Append-only JSON Lines files that can be resumed: a header, then rows.

Rows survive a crash of the process; an incomplete last line is dropped when the file is reopened. A
lock admits one writer at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterator
from io import FileIO
from pathlib import Path
from typing import Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pearl.errors import DataError

__all__ = ["Frozen", "Journal", "read_journal", "reason"]

_OF_DIGESTS = {
    "data_sha256": "data: questions, documents, --limit or --subset differ",
    "library_sha256": "actions in the library",
    "bank_sha256": "examples in the bank",
    "prompt_sha256": "actions, rules or examples in the prompt",
}
"""Descriptions of the digests in headers, for messages."""

Head = TypeVar("Head", bound=BaseModel)
Row = TypeVar("Row", bound=BaseModel)


class Frozen(BaseModel):
    """Base of a journal line: immutable, without extra fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def reason(error: ValidationError) -> str:
    """The first validation error, on one line."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def read_journal(
    path: Path, header_type: type[Head], row_type: type[Row]
) -> tuple[Head, list[Row], int]:
    """Read the header and the rows, and return the length in bytes without an incomplete last line.

    Raises:
        DataError: The file cannot be read, or the header or a row is invalid.
    """
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
            help="its first line is the header that pearl writes",
        ) from None
    rows: list[Row] = []
    n_bytes = len(first)
    for number, line in enumerate(lines, start=2):
        if not line.endswith(b"\n"):
            break
        try:
            rows.append(row_type.model_validate_json(line))
        except ValidationError as error:
            raise DataError(f"not a row: {reason(error)}", path=path, line=number) from None
        n_bytes += len(line)
    return header, rows, n_bytes


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


class Journal(Generic[Head, Row]):
    """A journal opened for writing; use it as a context manager.

    Args:
        path: The file; created, or resumed if it exists.
        header: The first line.
        row_type: Type of the rows.
        varying: Header fields that may differ when a file is resumed.

    Attributes:
        rows: The rows found when the file was opened.

    Raises:
        DataError: The file cannot be written, another process writes it, it is of another kind, or
            has another header.
    """

    def __init__(
        self, path: str | Path, header: Head, row_type: type[Row], *, varying: Collection[str] = ()
    ) -> None:
        self.path = Path(path)
        self._header = header
        self._row_type = row_type
        self._varying = set(varying)
        self._file: FileIO | None = None
        self.rows: list[Row] = []

    def __enter__(self) -> Self:
        try:
            if self.path.exists() and not self.path.is_file():
                # A pipe or a device cannot be resumed, and may be endless.
                raise DataError("no file that could grow", path=self.path, help="name a file")
            # Unbuffered: a failed write is not repeated when the file is closed.
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise self._unwritable(error, "name another file or folder") from None
        try:
            self._begin(self._file)
        except BaseException:
            self._file.close()
            raise
        return self

    def _begin(self, file: FileIO) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(
                "another process is writing this file", path=self.path, help="wait for it to end"
            ) from None
        except OSError as error:
            raise self._unwritable(error, "name a file on another disk") from None
        # A file with an incomplete header has no rows.
        file.seek(0)
        start = file.read(1_000_000)
        if b"\n" not in start:
            if start and not self._is_cut_header(start):
                raise DataError(
                    "the file is there and of another kind",
                    path=self.path,
                    help="name another output file",
                )
            os.ftruncate(file.fileno(), 0)
            self._write(self._header)
            return
        header, self.rows, n_bytes = read_journal(self.path, type(self._header), self._row_type)
        self._compare(header)
        os.ftruncate(file.fileno(), n_bytes)

    def _is_cut_header(self, start: bytes) -> bool:
        # The rest of the header may differ if another version wrote it.
        return self._header.model_dump_json().encode().startswith(start[:20])

    def _compare(self, found: Head) -> None:
        for name in type(self._header).model_fields:
            was, now = getattr(found, name), getattr(self._header, name)
            if name not in self._varying and was != now:
                what = name.replace("_", " ")
                # Name the content of a digest rather than the digest.
                said = (
                    f"with other {_OF_DIGESTS.get(name, what)}"
                    if name.endswith("_sha256")
                    else f"with another {what}: {_short(was)}, now {_short(now)}"
                )
                raise DataError(
                    f"the file was made {said}",
                    path=self.path,
                    help="go on with the same settings, or name another output file",
                )

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, row: Row) -> None:
        """Write one row; it survives the end of this process.

        Raises:
            DataError: The write failed, as on a full disk; earlier rows are kept.
        """
        self._write(row)

    def _write(self, row: BaseModel) -> None:
        assert self._file is not None, "a journal is a context manager"
        line = memoryview(row.model_dump_json().encode() + b"\n")
        try:
            while line:  # a nearly full disk may accept a part
                line = line[self._file.write(line) :]
        except OSError as error:
            raise self._unwritable(error, "make room; what was written before stays") from None

    def _unwritable(self, error: OSError, help: str) -> DataError:
        return DataError(f"cannot be written: {error.strerror}", path=self.path, help=help)


def _short(value: object) -> str:
    if value is None or value == "":
        return "not given"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
