"""Files, folders and rows → the documents that are searched, each with its metadata, and their passages.

Reading is lazy: a document is created only if the digest of its material is not in the index.

A file of rows (JSON Lines, JSON, CSV, TSV, Parquet) has a document in each row. Its name is the column `id` or `_id`, else
the number of its line; its text is the column `text`, `contents` or `document`, below the `title` if there is one; other
columns of numbers, texts and truth values are metadata. If the first row has no text, the file is a table: the text of
each row is its cells, `column: value`.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pearl import plugins
from pearl.data.rows import Row, parse_line, raw_lines, read_file
from pearl.documents.digest import digest, keys_after
from pearl.documents.document import (
    ROW_SUFFIXES,
    document_suffixes,
    from_bytes,
    from_text,
    read_bytes,
    suffix_of,
)
from pearl.documents.readers.image import SUFFIXES as PICTURES
from pearl.documents.units import Piece, trimmed, window
from pearl.errors import DataError, UsageError
from pearl.errors.escaping import counted
from pearl.plugins.files import is_inside


class CorpusDocument(Struct, frozen=True):
    """One document of a corpus."""

    name: str
    text: str
    metadata: Mapping[str, str] = {}
    pages: tuple[tuple[str, int], ...] = ()
    is_row: bool = False
    ocr: tuple[tuple[int, int, float], ...] = ()
    notes: tuple[str, ...] = ()


class Cutting(Struct, frozen=True):
    """How documents are cut into passages."""

    unit: str = ""
    size: int = window.SIZE
    overlap: int = window.OVERLAP

    def __post_init__(self) -> None:
        if self.unit:
            plugins.load("pearl.documents.units", self.unit, "unit")
        if self.unit != "window" and (self.size, self.overlap) != (window.SIZE, window.OVERLAP):
            raise UsageError(
                f"size and overlap do not apply to passages by {self.unit or 'paragraph'}",
                help="they apply to the unit 'window'",
            )
        if not 0 <= self.overlap < self.size:
            raise UsageError(
                f"windows of {self.size} characters cannot share {self.overlap}",
                help="give an overlap below the size",
            )

    @property
    def name(self) -> str:
        """A name that is different for each way of cutting, and can be part of a file name."""
        if self.unit == "window":
            return f"window-{self.size}-{self.overlap}"
        return self.unit or "default"


def cut(document: CorpusDocument, cutting: Cutting) -> Sequence[Piece]:
    """The passages of a document, in order; the whole text if it does not contain the unit."""
    unit = cutting.unit or ("document" if document.is_row else "paragraph")
    if unit == "document":
        whole = (0, len(document.text))
        return trimmed(document.text, *whole) or [Piece(*whole, {})]
    try:
        if unit == "window":
            return window.split(document.text, (), cutting.size, cutting.overlap)
        parts = document.pages if unit == "page" else ()
        pieces: list[Piece] = plugins.load("pearl.documents.units", unit).split(
            document.text, parts
        )
    except ValueError:
        return [Piece(0, len(document.text), {})]
    if unit == "record":  # For the filter `unit=record`, which selects tables
        return [piece._replace(fields={"unit": unit, **piece.fields}) for piece in pieces]
    return pieces


DIGEST = 16  # Bytes of a digest


class SourceFile(Struct, frozen=True):
    """A file of a corpus with its unique label; if the file `is_alone`, names of its rows omit the label."""

    path: str
    label: str
    is_alone: bool = False

    @property
    def has_rows(self) -> bool:
        """Whether each of the file's rows is a document."""
        return suffix_of(self.path) in ROW_SUFFIXES


class New(Struct, frozen=True):
    """A document that is not in the index, with the digest of its material and the label of its file."""

    digest: bytes
    document: CorpusDocument


Entry = int | New | DataError
"""A known document, by its position in the index; a new document; or the error of one that is left out."""


class CorpusFiles(Struct, frozen=True):
    """The files of a corpus, the number of files of other kinds in its folders, and notes on what was left out."""

    files: tuple[SourceFile, ...]
    n_other: int = 0
    notes: tuple[str, ...] = ()


def find_files(named: Sequence[str | Path], without: Collection[Path] = frozenset()) -> CorpusFiles:
    """Find the files of a corpus. Within folders, hidden files, links to outside, pictures next to documents and files in `without` are skipped."""
    if not named:
        raise UsageError("missing corpus", help="name a folder or files")
    # Most `.json` files are settings.
    in_folders = (document_suffixes() | {*ROW_SUFFIXES}) - {".json"}
    is_one = len(named) == 1
    files: dict[str, SourceFile] = {}
    n_other, notes = 0, list[str]()

    def take(path: str, label: str) -> None:
        # Names that are not UTF-8 have lone surrogates, which texts must not contain.
        shown = label.replace(os.sep, "/")
        shown = shown.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        files.setdefault(path, SourceFile(path, shown))

    for each in map(str, named):
        scheme, mark, _ = each.partition("://")
        if mark and "/" not in scheme:  # `https://`, `git+ssh://`
            raise UsageError(
                f"'{each}' is an address; a corpus consists of files",
                help="download it first: curl -sLO ADDRESS",
            )
        if os.path.isdir(each):  # noqa: PTH112 - False where a NUL is in the name
            inside, others, outside, n_written = _in_folder(each, in_folders, without)
            n_other += others
            pictures = {path for path in inside if suffix_of(path) in PICTURES}
            if all(suffix_of(path) in ROW_SUFFIXES for path in {*inside} - pictures):
                pictures = set()
            inside = [path for path in inside if path not in pictures]
            for n, what in (
                (outside, "links out of the folder"),
                (len(pictures), "pictures beside documents"),
            ):
                if n:
                    notes.append(f"{each}: {what} left out ({n:,}); name these files to read them")
            if n_written:
                told = (
                    f"left out: {counted(n_written, 'file')} that runs wrote; name one to read it"
                )
                notes.append(f"{each}: {told}")
            for file in inside:
                take(file, os.path.relpath(file, each) if is_one else file)
        elif glob.has_magic(each) and not _is_there(each):
            matching = sorted(f for f in glob.glob(each, recursive=True) if Path(f).is_file())  # noqa: PTH207 - also of absolute patterns
            if not matching:
                raise DataError("no file matches", path=each, help="check the pattern")
            for file in matching:
                take(file, file)
        else:
            if not _is_there(each):
                raise DataError("no such file or folder", path=each, help="check the path")
            take(each, Path(each).name if is_one else each)
    only = next(iter(files.values()))
    if is_one and len(files) == 1 and not Path(named[0]).is_dir():
        files = {only.path: replace(only, is_alone=True)}
    return CorpusFiles(tuple(files.values()), n_other, tuple(notes))


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def _in_folder(
    folder: str, suffixes: Collection[str], without: Collection[Path]
) -> tuple[list[str], int, int, int]:
    """The paths to read, and the numbers of files that are of other kinds, outside of the folder, or in `without`."""
    taken: list[str] = []
    others = outside = n_written = 0
    names = {path.name for path in without}
    for entry in _walk(folder):
        if entry.name in names and Path(entry.path).resolve() in without:
            n_written += 1
        elif entry.is_symlink() and not is_inside(entry.path, folder):
            outside += 1
        elif entry.is_dir(follow_symlinks=False) or suffix_of(entry.path) in suffixes:
            taken.append(entry.path)
        else:
            others += 1
    if not taken:
        counts = (
            (others, "of other kinds"), (outside, "outside of it, reached by links"), (n_written, "that runs wrote"),
        )  # fmt: skip
        what = " and ".join(f"{n:,} file{'s' * (n > 1)} {which}" for n, which in counts if n)
        raise DataError(
            f"the folder has no documents: {f'it has {what}' if what else 'it is empty'}",
            path=folder,
            help=f"suffixes of documents: {', '.join(sorted(suffixes))}",
        )
    return taken, others, outside, n_written


def _walk(folder: str) -> Iterator[os.DirEntry[str]]:
    """All files that are not hidden, and folders that cannot be read; links to folders are not followed, as they may form cycles."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise DataError(
            f"the folder cannot be read: {error.strerror}", path=folder, help="check its rights"
        ) from None
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            try:
                yield from _walk(entry.path)
            except DataError:
                yield entry
        elif os.path.isfile(entry.path):  # noqa: PTH113 - of thousands; False for a link to itself
            yield entry


_IDS = ("id", "_id")
_TEXTS = ("text", "contents", "document")
_TITLE = "title"
_LINES = (".jsonl", ".ndjson")


def read_source(file: SourceFile, known: Mapping[bytes, int]) -> Iterator[Entry]:
    """The documents of a file, in order; `known` maps digests to positions in the index. Raises `DataError`, `OSError`."""
    if file.has_rows:
        yield from _read_rows(file, known)
        return
    data = read_bytes(file.path, file.label)
    key = digest([file.label, data])[:DIGEST]
    place = known.get(key)
    if place is not None:
        yield place
        return
    found = from_bytes(data, file.path, name=file.label)
    document = CorpusDocument(
        file.label, found.text, {}, found.pages, ocr=found.ocr, notes=found.notes
    )
    yield New(key, document)


def _read_rows(file: SourceFile, known: Mapping[bytes, int]) -> Iterator[Entry]:
    """The rows of a file; known lines of JSON Lines are not parsed."""
    path = Path(file.path)
    rows = read_file(path)
    # The first row is read at once: it reveals errors of the whole file, and whether the file is
    # a table.
    first = next(rows)
    reader = _RowReader(file, first)
    is_lines = path.suffix.lower() in _LINES
    lines = ((number, line, None) for number, line in raw_lines(path))
    # Files such as JSON must be parsed to separate their rows.
    parsed_rows = ((0, b"", row) for row in chain([first], rows))
    for number, raw, parsed in lines if is_lines else parsed_rows:
        if isinstance(parsed, DataError):
            yield parsed
            continue
        if parsed is not None:
            number, raw = parsed.line, json.dumps(parsed.fields, ensure_ascii=False).encode()
        place = None
        if known:
            place = known.get(reader.digest(raw))
            if place is None:
                place = known.get(reader.digest(raw, number))
        if place is not None:
            yield place
            continue
        row = parsed or parse_line(path, number, raw)
        yield row if isinstance(row, DataError) else reader.new(row, raw)


class _RowReader:
    """Makes documents from the rows of a file."""

    def __init__(self, file: SourceFile, first: Row | DataError) -> None:
        self._file = file
        self._is_table = isinstance(first, Row) and not any(t in first.fields for t in _TEXTS)
        about = json.dumps([file.label, file.is_alone, self._is_table])
        self._by_id = keys_after([about, "by id"])
        self._by_line = keys_after([about, "by line"])

    def digest(self, raw: bytes, number: int | None = None) -> bytes:
        """The digest of a row; of one without an id, with the number of its line, by which it is named."""
        of = self._by_id(raw) if number is None else self._by_line(b"%d %s" % (number, raw))
        return of[:DIGEST]

    def new(self, row: Row, raw: bytes) -> New | DataError:
        """The document of a row, or the error of a row that is left out."""
        try:
            names = [name for name in map(row.name, _IDS) if name]
            text = self._text(row)
            document = from_text(text, names[0] if names else str(row.line))
        except DataError as error:
            message = error.message.partition(": ")[2] if error.path else error.message
            return row.error(message)
        name = document.name if self._file.is_alone else f"{self._file.label}#{document.name}"
        metadata = _metadata(row.fields, with_all=self._is_table)
        made = CorpusDocument(name, document.text, metadata, document.pages, is_row=True)
        return New(self.digest(raw, None if names else row.line), made)

    def _text(self, row: Row) -> str:
        if self._is_table:
            cells = _metadata(row.fields, with_all=True)
            if not cells:
                raise row.error("the row is empty")
            return "\n".join(f"{name}: {value}" for name, value in cells.items())
        text = next((text for text in map(row.text, _TEXTS) if text), None)
        if text is None:
            raise row.error("the row has no text")
        title = row.fields.get(_TITLE)
        if isinstance(title, str) and title.strip() and not text.startswith(title):
            return f"{title}\n\n{text}"
        return text


def _metadata(fields: Mapping[str, Any], *, with_all: bool) -> dict[str, str]:
    """The columns of a row besides its name and text; lists and objects are omitted."""
    found: dict[str, str] = {}
    for name, value in fields.items():
        if not with_all and (name in _IDS or name in _TEXTS):
            continue
        if isinstance(value, str):
            if value.strip():
                found[name] = value
        elif isinstance(value, bool | int | float):
            found[name] = json.dumps(value)
    return found
