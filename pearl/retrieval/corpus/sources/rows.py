"""Files of rows: JSON Lines, JSON, CSV, TSV and Parquet. Each row is a document.

Its name is the column `id` or `_id`, else the number of its line; its text is the column `text`,
`contents` or `document`, below the `title` if there is one; other columns of numbers, texts and truth
values are metadata. If the first row has no text, the file is a table: the text of each row is its
cells, `column: value`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pearl.data.rows import Row, parse_line, raw_lines, read_file
from pearl.documents.digest import RunningDigest, digest_after
from pearl.documents.document import from_text
from pearl.documents.kinds import ROW_SUFFIXES
from pearl.errors import DataError
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.corpus.sources import DIGEST, Begun, Entry, New, Resumed, SourceFile

_IDS = ("id", "_id")
_TEXTS = ("text", "contents", "document")
_TITLE = "title"
_LINES = (".jsonl", ".ndjson")
_PART = 1 << 20


def suffixes() -> tuple[str, ...]:
    """Those of all files of rows."""
    return ROW_SUFFIXES


def in_folders() -> tuple[str, ...]:
    """All but `.json`: what lies about in folders under that name are settings, mostly."""
    return tuple(suffix for suffix in ROW_SUFFIXES if suffix != ".json")


def read(file: SourceFile, known: Mapping[bytes, int]) -> Iterator[Entry]:
    """The rows of a file; those that are known are not parsed where lines can be told apart."""
    is_lines = Path(file.path).suffix.lower() in _LINES
    run: list[int] = []
    for entry in _read_lines(file, known, run) if is_lines else _read_rows(file, known, run):
        if run:
            yield tuple(run)
            run.clear()
        yield entry
    if run:
        yield run


def _read_lines(
    file: SourceFile, known: Mapping[bytes, int], run: list[int]
) -> Iterator[New | DataError | Resumed | Begun]:
    """The rows that are not known; the places of the others are added to `run`."""
    path = Path(file.path)
    # What is wrong with the whole file is found here, and the first row says what its rows are.
    reader = _RowReader(file, next(read_file(path)))
    digest, find, add = reader.digest, known.get, run.append
    whole, start = _beginning(file)
    if whole.size:
        yield Resumed()
    for number, line in raw_lines(path, start, whole.add):
        place = find(digest(line)[:DIGEST])
        if place is None:
            place = find(reader.digest_by_line(line, number))
        if place is None:
            row = parse_line(path, number, line)
            yield row if isinstance(row, DataError) else reader.new(row, line)
        else:
            add(place)
    if whole.is_line:
        yield Begun(whole.size, whole.digest()[:DIGEST])


def _beginning(file: SourceFile) -> tuple[RunningDigest, tuple[int, int]]:
    """What was read before of a file, if it still begins so: its digest, its bytes and lines."""
    found, n_lines = RunningDigest(), 0
    if file.begun is not None:
        with Path(file.path).open("rb") as data:
            while part := data.read(min(_PART, file.begun.size - found.size)):
                found.add(part)
                n_lines += part.count(b"\n")
        if (found.size, found.digest()[:DIGEST]) == (file.begun.size, file.begun.digest):
            return found, (found.size, n_lines)
    return RunningDigest(), (0, 0)


def _read_rows(
    file: SourceFile, known: Mapping[bytes, int], run: list[int]
) -> Iterator[New | DataError]:
    """As `_read_lines`, of files whose rows have to be parsed to tell them apart."""
    rows = read_file(Path(file.path))
    first = next(rows)
    reader = _RowReader(file, first)
    for row in chain([first], rows):
        if isinstance(row, DataError):
            yield row
            continue
        raw = json.dumps(row.fields, ensure_ascii=False).encode()
        place = known.get(reader.digest(raw)[:DIGEST])
        if place is None:
            place = known.get(reader.digest_by_line(raw, row.line))
        if place is None:
            yield reader.new(row, raw)
        else:
            run.append(place)


class _RowReader:
    """Makes documents of the rows of a file."""

    def __init__(self, file: SourceFile, first: Row | DataError) -> None:
        self._file = file
        self._is_table = isinstance(first, Row) and not any(t in first.fields for t in _TEXTS)
        about = json.dumps([file.label, file.is_alone, self._is_table])
        self.digest = digest_after([about, "by id"])
        """The digest of a row with an id."""
        self._digest_by_line = digest_after([about, "by line"])

    def digest_by_line(self, raw: bytes, number: int) -> bytes:
        """The digest of a row without an id: its line is its name."""
        return self._digest_by_line(b"%d %s" % (number, raw))[:DIGEST]

    def new(self, row: Row, raw: bytes) -> New | DataError:
        """The document of a row, or why it is none."""
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
        digest = self.digest(raw)[:DIGEST] if names else self.digest_by_line(raw, row.line)
        return New(digest, made, row.line)

    def _text(self, row: Row) -> str:
        if self._is_table:
            cells = _metadata(row.fields, with_all=True)
            if not cells:
                raise row.error("there is nothing in the row")
            return "\n".join(f"{name}: {value}" for name, value in cells.items())
        text = next((text for text in map(row.text, _TEXTS) if text), None)
        if text is None:
            raise row.error("there is no text")
        title = row.fields.get(_TITLE)
        if isinstance(title, str) and title.strip() and not text.startswith(title):
            return f"{title}\n\n{text}"
        return text


def _metadata(fields: Mapping[str, Any], *, with_all: bool) -> dict[str, str]:
    """What is known of a row beside its name and text; lists and objects are nothing of that."""
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
