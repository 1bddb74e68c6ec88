"""A file that grows line by line and can be gone on with: a header, then rows, as JSON lines.

What was written stays, whatever happens to the process; a last line that was cut off is dropped
when the file is opened again. Only one process writes at a time.
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
"""What the digests of headers are of."""

Head = TypeVar("Head", bound=BaseModel)
Row = TypeVar("Row", bound=BaseModel)


class Frozen(BaseModel):
    """What a line of a journal is: it does not change, and has no field that is not its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def reason(error: ValidationError) -> str:
    """The first thing that is wrong, on one line."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def read_journal(
    path: Path, header_type: type[Head], row_type: type[Row]
) -> tuple[Head, list[Row], int]:
    """The header, the rows and the length in bytes of what is whole; a cut last line is left out.

    Raises:
        DataError: The file cannot be read, has no such header, or a line is no such row.
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
    """What the first line of a file says that it is."""
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
    """A file of one header and its rows, opened to be written; use it as a context manager.

    Args:
        path: The file; it is made, or gone on with where it is there.
        header: What stands in the first line.
        row_type: Type of the rows.
        varying: Fields of the header that may differ when a file is gone on with.

    Attributes:
        rows: What was there when the file was opened.

    Raises:
        DataError: The file cannot be written, another process writes it, it is not of this kind,
            or it was made with another header.
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
                # A pipe or a device cannot be gone on with; reading one may never end.
                raise DataError("no file that could grow", path=self.path, help="name a file")
            # Unbuffered: what could not be written is not tried again when the file is closed.
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
        # A file that was cut off within its header has nothing worth keeping.
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
        # Further on, the header may differ: it need not have been this version that wrote it.
        return self._header.model_dump_json().encode().startswith(start[:20])

    def _compare(self, found: Head) -> None:
        for name in type(self._header).model_fields:
            was, now = getattr(found, name), getattr(self._header, name)
            if name not in self._varying and was != now:
                what = name.replace("_", " ")
                # A digest tells that something differs; what it is of says more to people.
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
            DataError: There is no room for it; what was written before stays.
        """
        self._write(row)

    def _write(self, row: BaseModel) -> None:
        assert self._file is not None, "a journal is a context manager"
        line = memoryview(row.model_dump_json().encode() + b"\n")
        try:
            while line:  # a disk that is almost full takes a part
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
