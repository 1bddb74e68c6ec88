"""Read rows with fields from files and datasets; an invalid row becomes an error that names its line.

By suffix: `.csv` and `.tsv`, `.parquet`, `.json` (an array of objects, or an object that has one as
`data`); everything else is JSON Lines. A folder, or a name that is no file, is a dataset. Files at an address are read one
after another; those that have no rows are documents.

Invariant: the fields of a row are JSON data without lone surrogates. Blank cells and NaN are null.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import warnings
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, Self, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pearl.data.storage import StoredFile, address_of, files, is_address
from pearl.documents.digest import DigestTable
from pearl.documents.document import (
    ROW_SUFFIXES,
    Document,
    document_suffixes,
    from_text,
    limit_bytes,
)
from pearl.documents.readers.text import decode
from pearl.errors import DataError, UsageError, suggest
from pearl.errors.patterns import lazy_pattern
from pearl.errors.privacy import is_private
from pearl.plugins.extras import require_extra
from pearl.plugins.files import is_inside

Made = TypeVar("Made")

_MAX_CELL = 2**31 - 1
"""Maximum cell length: a C long on every platform. The default of `csv`, 131,072, is too short for
a novel."""

_MAX_LINE = 4
"""Maximum line length as a multiple of the document limit: JSON escapes and other fields take
space."""

_DECODER = json.JSONDecoder(parse_constant=lambda _: None)

_BETWEEN = lazy_pattern(r"\s*,?\s*")  # blanks and the comma between two objects
OWN_FILES = {
    "pearl-eval-log": (
        "the log of an evaluation",
        "pearl eval --rescore LOG, pearl compare LOG LOG",
    ),
    "pearl-mined": ("a file of mined drafts", "pearl refine actions FILE"),
    "pearl-curation": ("the journal of a bank", "its folder is the bank: --examples FOLDER"),
}
"""Kinds of files that PEARL writes, with a description and the command that reads them."""
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)

_SUFFIXES = (*ROW_SUFFIXES, ".dev", ".train", ".test")
"""Suffixes of file names; such a name is never looked up on a hub."""


class Row(Struct, frozen=True):
    """One row."""

    fields: Mapping[str, Any]
    path: str
    line: int
    allow_outside: bool = False
    home: StoredFile | None = None  # The file at an address that it was read from

    @property
    def place(self) -> str:
        """Names the row if it has no id."""
        return str(self.line) if self.home is None else f"{self.path}:{self.line}"

    def error(self, message: str, *, help: str | None = None) -> DataError:
        """An error located at this row."""
        return DataError(message, path=self.path, line=self.line, help=help)

    def within(self, part: str, error: DataError) -> DataError:
        """An error of a part of this row, such as one of its questions."""
        reason = error.message.removeprefix(f"{self.path}:{self.line}: ")
        return self.error(f"{part}: {reason}", help=error.help)

    def text(self, field: str) -> str | None:
        """The text of a field; None if it is absent, null or blank."""
        value = self.fields.get(field)
        if value is None or isinstance(value, str):
            return value if value and value.strip() else None
        raise self.error(f"'{field}' is {kind(value)}, not text")

    def name(self, field: str) -> str | None:
        """The text or the integer of a field; None if it is absent, null or blank."""
        value = self.fields.get(field)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        text = self.text(field)
        return text and text.strip()

    def file(self, field: str) -> Path | StoredFile | None:
        """The regular file that a field names; None as in `text`. It must be in the data's folder unless `allow_outside`."""
        name = self.text(field)
        if name is None:
            return None
        if "\0" in name:
            raise self.error(f"'{field}' is not a path: it contains a NUL character")
        stored = self.home
        path: Path | StoredFile
        if stored is not None and stored.home != "file://":
            path, is_in = stored.beside(name)
        else:
            home = Path(self.path if stored is None else stored.key)
            folder = home if home.is_dir() else home.parent
            path = folder / name
            is_in = is_inside(path, folder)
        if not (self.allow_outside or is_in):  # never outside a bucket
            raise self.error(
                f"{field} '{name}' is outside the folder of {self.path}",
                help="--allow-outside permits it, if you trust the data",
            )
        if isinstance(path, StoredFile):
            return path
        if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - a name may be too long
            what = "a folder" if path.is_dir() else "a pipe or a device"
            raise self.error(f"{field} '{name}' is {what}, not a file")
        return path

    def document(self, field: str, name: str) -> Document:
        """The text of a field as a named document."""
        text = self.text(field)
        if text is None:
            raise self.error(f"'{field}' contains no text")
        try:
            return from_text(text, name)
        except DataError as error:
            raise self.error(str(error).partition("\n")[0]) from None


_KINDS = {
    type(None): "null", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object",
}  # fmt: skip


def kind(value: Any) -> str:
    """The JSON type of a value, for messages: `an array`."""
    return _KINDS.get(type(value), "text")


def from_rows(
    rows: Iterable[Row | DataError], make: Callable[[Row], Iterable[Made | DataError]]
) -> Iterator[Made | DataError]:
    """Apply `make` to each row; a `DataError` is yielded in place of a result."""
    for row in rows:
        if isinstance(row, DataError):
            yield row
            continue
        try:
            yield from make(row)
        except DataError as error:
            yield error


def read_rows(
    name: str,
    split: str | None = None,
    *,
    allow_outside: bool = False,
    position: Position | None = None,
) -> Iterator[Row | DataError]:
    """The rows of a file or a dataset, with an error for each invalid row; `position` as in `Source`."""
    address, path = address_of(name), Path(name)
    is_stored = is_address(address)
    if is_stored or not _is_dataset(path):
        if split is not None:
            raise UsageError(f"{name}: files have no splits", help="leave out --split")
        if is_stored:
            yield from _read_address(address, allow_outside)
        else:
            yield from read_file(path, allow_outside=allow_outside, position=position)
        return
    number = 0
    for number, fields in enumerate(read_dataset(name, split), start=1):
        yield Row(_as_json(fields), name, number, allow_outside)
    if not number:
        raise DataError("the dataset has no rows", path=name, help="choose another split")


def _read_address(address: str, allow_outside: bool) -> Iterator[Row | DataError]:
    """The rows of the files of an address, and a row for each document; an unreadable file becomes an error."""
    documents = document_suffixes() - {*ROW_SUFFIXES}
    is_empty = True
    for file in files(address):
        if file.suffix in documents:
            is_empty = False
            fields = {"id": str(file), "document_path": PurePosixPath(file.key).name}
            yield Row(fields, str(file), 1, home=file)
        elif file.suffix in ROW_SUFFIXES:
            is_empty = False
            try:
                for row in read_file(file, allow_outside=allow_outside):
                    yield replace(row, home=file) if isinstance(row, Row) else row
            except DataError as error:
                yield error
    if is_empty:
        raise DataError(
            "no file of rows and no document", path=address,
            help=f"their suffixes: {', '.join(sorted(documents | {*ROW_SUFFIXES}))}",
        )  # fmt: skip


def read_file(
    path: Path | StoredFile, *, allow_outside: bool = False, position: Position | None = None
) -> Iterator[Row | DataError]:
    """The rows of a file, with an error for each invalid row."""
    readers: Mapping[str, Callable[[Any], Iterator[Row | DataError]]]
    readers = {".csv": _csv, ".tsv": _csv, ".parquet": _parquet, ".json": _json}
    read = readers.get(path.suffix.lower(), partial(_json_lines, position=position))
    is_empty = position is None or not position.offset
    if "\0" in str(path):
        raise DataError("no such file", path=repr(str(path)), help="check the path")
    try:
        for row in read(path):
            if isinstance(row, Row):
                if is_empty and (own := OWN_FILES.get(str(row.fields.get("kind")))):
                    raise row.error(f"this is {own[0]}, not data", help=own[1])
                row = replace(row, allow_outside=True) if allow_outside else row
            is_empty = False
            yield row
    except FileNotFoundError:
        raise DataError("no such file", path=path, help="check the path") from None
    except (OSError, EOFError, zlib.error) as error:  # the last two of a damaged .gz
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise DataError(f"cannot be read: {reason}", path=path, help="check the path") from None
    if is_empty:
        raise DataError("the file has no rows", path=path, help="give a file with rows")


def _is_dataset(path: Path) -> bool:
    try:
        is_name = not path.exists() and path.suffix.lower() not in _SUFFIXES
        return path.is_dir() or (
            is_name and re.fullmatch(r"[\w.-]+(/[\w.-]+)?", str(path)) is not None
        )
    except OSError:
        return False


def _json_lines(
    path: Path | StoredFile, position: Position | None = None
) -> Iterator[Row | DataError]:
    return (parse_line(path, number, line) for number, line in raw_lines(path, position))


def _bounded(path: Path | StoredFile, lines: IO[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    """The lines of an open file with their numbers; a device may be endless."""
    most = _MAX_LINE * limit_bytes()
    for number, line in enumerate(iter(partial(lines.readline, most + 1), b""), start=first):
        if len(line) > most:
            message = f"the line is longer than {most / 1_000_000:,.0f} MB"
            raise DataError(message, path=path, line=number, help="one row a line")
        yield number, line


def raw_lines(
    path: Path | StoredFile, position: Position | None = None
) -> Iterator[tuple[int, bytes]]:
    """The lines of a JSON Lines file that are not blank, as bytes, with their numbers."""
    position = position or Position()
    with path.open("rb") as lines:
        if position.offset:
            lines.seek(position.offset)
        for number, line in _bounded(path, lines, position.line + 1):
            position.offset, position.line = position.offset + len(line), number
            if number == 1:
                if line.startswith(_WIDE_MARKS):
                    raise DataError("not UTF-8 text", path=path, help="save the file as UTF-8")
                line = line.removeprefix(codecs.BOM_UTF8)
            if line and not line.isspace():
                yield number, line


def parse_line(path: Path | StoredFile, number: int, line: bytes) -> Row | DataError:
    """The row of one of `raw_lines`, or the error."""
    try:
        text = line.decode()
        fields = _checked(_DECODER.decode(text), text)
    except (ValueError, RecursionError) as error:
        return DataError(_why(error), path=path, line=number)
    return Row(fields, str(path), number)


def _json(path: Path | StoredFile) -> Iterator[Row | DataError]:
    """The objects of an array with their line numbers; it may be the `data` of an object."""
    text = decode(path.read_bytes(), str(path))
    begin = text.find("[")
    head = text[: max(begin, 0)].strip()
    is_data = head.endswith(":") and head[:-1].rstrip().endswith('"data"')
    is_data = is_data and head.rfind("{") == 0 and "}" not in head
    if begin < 0 or (head and not is_data):
        yield from _json_lines(path)
        return
    start, line, counted = begin + 1, 1, 0
    while (start := _BETWEEN.match(text, start).end()) < len(text) and text[start] != "]":  # type: ignore[union-attr]
        line, counted = line + text.count("\n", counted, start), start
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:  # where the next value starts is unknown
            line = error.lineno if isinstance(error, json.JSONDecodeError) else line
            yield DataError(_why(error), path=path, line=line)
            return
        try:
            yield Row(_checked(value, text[start:end]), str(path), line)
        except ValueError as error:
            yield DataError(_why(error), path=path, line=line)
        start = end
    if start == len(text):
        line += text.count("\n", counted)
        yield DataError("invalid JSON: the array is not closed", path=path, line=line)


def _checked(value: Any, text: str) -> dict[str, Any]:
    """Validate a parsed JSON value."""
    if not isinstance(value, dict):
        raise ValueError(f"{kind(value)}, not an object")
    if "\\ud" in text or "\\uD" in text:  # \ud83d, maybe alone: half a character cannot be encoded
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _why(error: Exception) -> str:
    """Why a text is not a valid row."""
    match error:
        case json.JSONDecodeError():
            return f"invalid JSON: {error.msg} (column {error.colno})"
        case UnicodeDecodeError():
            return f"not UTF-8 text: {error.reason} at byte {error.start} of the line"
        case UnicodeEncodeError():
            return "the text contains a lone surrogate (half a character)"
        case RecursionError():
            return "invalid row: nested too deeply"
        case _:
            return f"invalid row: {error}"


def _csv(path: Path | StoredFile) -> Iterator[Row | DataError]:
    lines: Iterable[str]
    if isinstance(path, Path):
        lines = io.StringIO(decode(path.read_bytes(), str(path)), newline="")
    else:
        lines = _utf8_lines(path)
    csv.field_size_limit(_MAX_CELL)  # process-wide
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    names: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            broken = DataError(f"invalid CSV: {error}", path=path, line=line)
            if names is None:
                raise broken from None
            yield broken
            continue
        if not cells:
            continue
        if names is None:
            names = [cell.strip() for cell in cells]
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise DataError(f"two columns have the name '{twice}'", path=path, line=line)
        elif len(cells) != len(names):
            message = f"{len(cells)} cells, where the header has {len(names)}"
            yield DataError(message, path=path, line=line)
        else:
            filled = (cell if cell.strip() else None for cell in cells)
            yield Row(dict(zip(names, filled, strict=True)), str(path), line)


def _utf8_lines(path: StoredFile) -> Iterator[str]:
    """Yield the lines of a file that may not fit in memory."""
    with path.open() as file:
        for number, line in _bounded(path, file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise DataError(
                    "not UTF-8 text", path=path, line=number, help="save the file as UTF-8"
                ) from None


def _parquet(path: Path | StoredFile) -> Iterator[Row | DataError]:
    require_extra("data", "reading Parquet", "pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = path if isinstance(path, Path) else path.ranges()
        with parquet.ParquetFile(opened) as file:
            batches = file.iter_batches(batch_size=256)
            rows = (fields for batch in batches for fields in batch.to_pylist())
            for number, fields in enumerate(rows, start=1):
                yield Row(_as_json(fields), str(path), number)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(
            f"invalid Parquet file: {reason}", path=path, help="create the file again"
        ) from None


def _as_json(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert fields to JSON data; dates and similar types become text."""
    plain: dict[str, Any] = _DECODER.decode(json.dumps(fields, default=str))
    return plain


PROBE_TIMEOUT_S = 10.0  # Timeout in seconds of the request that checks whether a hub has a dataset

_SAVED = ("dataset_dict.json", "state.json")  # Files that `save_to_disk` writes


def read_dataset(name: str, split: str | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a dataset."""
    is_here = Path(name).exists()
    it = "a dataset" if is_here else "no such file; a dataset of this name"
    require_extra("data", f"{name}: {it}", "datasets")
    import datasets

    try:
        with _quiet(name):
            if any((Path(name) / mark).is_file() for mark in _SAVED):
                data = datasets.load_from_disk(name)
            else:
                data = datasets.load_dataset(name)
        splits = data if isinstance(data, dict) else {str(data.split or "train"): data}
        if split is None and len(splits) > 1:
            raise UsageError(f"{name}: --split is missing", help=f"--split {' | '.join(splits)}")
        if split is not None and split not in splits:
            help = suggest(split, list(splits), "splits")
            raise UsageError(f"{name}: no split '{split}'", help=help)
        yield from splits[split or next(iter(splits))]
    except UsageError:
        raise
    except Exception as error:
        if isinstance(error, ConnectionError):
            reason = "no such file, and no hub can be reached for a dataset of this name"
        else:
            cause = error.__cause__ if type(error).__name__ == "DatasetGenerationError" else None
            reason = f"the dataset cannot be read: {str(cause or error).partition(chr(10))[0]}"
        raise DataError(reason, path=name, help="check the name") from error


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Suppress what the library prints; if no hub can be reached, make it use its cache at once: it would retry for 25 s."""
    import datasets
    from datasets import config
    from datasets.utils import logging as talk
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    from huggingface_hub.utils import logging as hub_talk

    had_bars, was_offline = not datasets.are_progress_bars_disabled(), config.HF_HUB_OFFLINE
    levels = talk.get_verbosity(), hub_talk.get_verbosity()
    datasets.disable_progress_bars()
    talk.set_verbosity(talk.CRITICAL)
    hub_talk.set_verbosity(talk.CRITICAL)
    if not Path(name).exists():
        try:
            HfApi().dataset_info(name, timeout=PROBE_TIMEOUT_S)
        except (HfHubHTTPError, HFValidationError):
            pass  # leave the error report to `datasets`
        except Exception:  # noqa: BLE001 - any other failure is one to get there
            config.HF_HUB_OFFLINE = True
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        config.HF_HUB_OFFLINE = was_offline
        talk.set_verbosity(levels[0])
        hub_talk.set_verbosity(levels[1])
        if had_bars:
            datasets.enable_progress_bars()


# ---------------------------------------------------------------------------------------------
# Columns → fields, and the ids and document names of a file

_END = b"\xff"  # in no text of UTF-8


def rename(
    rows: Iterable[Row | DataError], columns: Mapping[str, str], fields: Iterable[str]
) -> Iterator[Row | DataError]:
    """Rename columns to sample fields, as `Source.columns` says; the first row must have these columns."""
    fields = list(fields)
    for field in columns:
        _check_known("field", field, fields, "--column")
    if not columns:
        yield from rows
        return
    sources: dict[str, list[str]] = {}
    for row in rows:
        if isinstance(row, DataError):
            yield row
            continue
        if not sources:
            for field, column in columns.items():
                sources[field] = [column] if column in row.fields else [n.strip() for n in column.split(",")]  # fmt: skip
                for name in sources[field]:
                    _check_known("column", name, row.fields, row.path)
        used = {name for names in sources.values() for name in names}
        kept = {name: value for name, value in row.fields.items() if name not in used}
        for field, names in sources.items():
            values = [row.fields.get(name) for name in names]
            kept[field] = values[0] if len(values) == 1 else values
        yield replace(row, fields=kept)


def _check_known(what: str, name: str, known: Iterable[str], where: str) -> None:
    if name not in known:
        is_quoting = what == "column" and is_private()
        help = None if is_quoting else suggest(name, known, f"{what}s")
        raise UsageError(f"{where}: no {what} '{name}'", help=help)


class Names:
    """Registry of ids and document names of a file: equal texts share a name, different texts never do."""

    def __init__(self) -> None:
        self._lines = DigestTable()
        self._names = bytearray(_END)  # of all texts, each with its end
        self._places = DigestTable()  # digest of a text → place of its name
        self._taken = DigestTable()

    def claim_id(self, id: str, row: Row) -> str:
        """Register an id for a row and return it; ids at addresses may be the same in several files."""
        if row.home is not None:
            return id
        key = id.encode(errors="surrogatepass")
        if after := self._lines[key]:  # the line + 1: 0 is none
            raise row.error(
                f"duplicate id '{id}', first used in line {after - 1}", help="use another id"
            )
        self._lines.add(key, row.line + 1)
        return id

    def claim(self, digest: str, name: str, line: int) -> str:
        """Return the name of the text with this digest: its first name, with the line number if another text has that name."""
        key = bytes.fromhex(digest)
        if place := self._places[key]:
            end = self._names.index(_END, place)
            return self._names[place:end].decode(errors="surrogatepass")
        while self._taken[name.encode(errors="surrogatepass")]:
            name = f"{name}, line {line}"
        self._taken.add(name.encode(errors="surrogatepass"))
        self._places.add(key, len(self._names))
        self._names += name.encode(errors="surrogatepass") + _END
        return name


class Position(Struct):
    """How far a JSON Lines file has been read: the byte after the last line, its number, and the names of the rows so far."""

    offset: int = 0
    line: int = 0
    names: Names = msgspec.field(default_factory=Names)

    def write(self, file: IO[bytes]) -> None:
        """Write the position to a file, for `read`."""
        names = self.names
        for table in (names._lines, names._places, names._taken):
            table.write(file)
        file.write(array("Q", (self.offset, self.line, len(names._names))).tobytes())
        file.write(names._names)

    @classmethod
    def read(cls, file: IO[bytes]) -> Self:
        """Read a position that `write` wrote."""
        names, sizes = Names(), array("Q")
        names._lines, names._places, names._taken = (DigestTable.read(file) for _ in range(3))
        sizes.fromfile(file, 3)
        offset, line, n_bytes = sizes
        names._names = bytearray(file.read(n_bytes))
        return cls(offset, line, names)
