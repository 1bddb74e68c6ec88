"""Rows of cells with a header: CSV and its kin."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from io import StringIO
from typing import NamedTuple

from pearl.documents.units import Piece
from pearl.documents.units.record.names import MAX_LENGTH, MAX_WORDS, columns

_DELIMITERS = (",", "\t", ";", "|")
_UNQUOTED = frozenset("\t|")
"""Delimiters of files in which quote marks are often plain characters."""

_MAX_VAIN = 4
"""What is read in vain may have so many times the length of the text: time is linear."""

_MAX_CELL = 2**31 - 1
"""Characters; Python's own limit is 131,072."""


_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_GROUPED = re.compile(r"[-$€£¥(]*[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?[%)]*")
_NUMERIC = re.compile(r"[-+$€£¥(]*[0-9][0-9.,]*[%)]*")
_OF_RULES = frozenset("-:| \t")
_SPACED = re.compile(r"[,;] +[a-z]")


class _Row(NamedTuple):
    start: int
    end: int
    cells: list[str]


def find(text: str) -> list[Piece]:
    r"""The rows below the first line that is a header, with the delimiter that gives most cells.

    Cells may be quoted, and have line breaks then. A row of which the quotes do not close is no
    record, nor is a line of one cell at the end. After a blank line only a row as wide as the header
    goes on with the table; another table may begin there. At least half of the rows are as wide as the header.

    Example:
        >>> [piece.fields for piece in find('id,note\n1,"a, b"\n2,c, d')]
        [{'id': '1', 'note': 'a, b'}, {'id': '2', 'note': 'c, d'}]
    """
    csv.field_size_limit(_MAX_CELL)  # process-wide
    tables = [_tables(text, delimiter) for delimiter in _DELIMITERS if delimiter in text]
    return max(tables, key=lambda pieces: sum(len(piece.fields) for piece in pieces), default=[])


def _tables(text: str, delimiter: str) -> list[Piece]:
    """The rows of all tables; one after the first begins below a blank line and is as wide throughout."""
    source = StringIO(text, newline="\n")  # "\n" alone ends its lines
    pieces: list[Piece] = []
    at = n_vain = end = 0
    is_after_blank = False
    for line in text.split("\n"):
        begin = at + len(line) + 1
        if at >= end and (is_after_blank or not pieces) and (header := _header(line, delimiter)):
            rows = _rows(source, begin, delimiter, len(header))
            is_even = all(len(row.cells) == len(header) for row in rows)
            if _is_table(line, header, rows) and (not pieces or (is_even and len(rows) > 1)):
                names = columns(header)
                pieces += (_piece(text, row, names, delimiter) for row in rows)
                end = rows[-1].end
            else:
                n_vain += source.tell() - at
                if n_vain > _MAX_VAIN * len(text):
                    break
        is_after_blank = not line.strip()
        at = begin
    return pieces


def _header(line: str, delimiter: str) -> list[str]:
    """The names in a line, or none if it is no header: at least two, short, and no numbers."""
    if delimiter not in line or line.startswith("|"):  # of Markdown
        return []
    try:
        cells = next(csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=True))
    except csv.Error:
        return []
    names = [name for cell in cells if (name := cell.strip())]
    if len(names) < 2 or (3 if delimiter == "\t" else 2) * len(names) < len(cells):
        return []
    others = [name for name in names if not _YEAR.fullmatch(name)]
    is_named = bool(others) or not cells[0].strip()
    return cells if is_named and all(map(_is_name, others)) else []


def _is_name(cell: str) -> bool:
    return (
        (cell[0].isalpha() or cell[0] in "_#")
        and len(cell) <= MAX_LENGTH
        and cell.count(" ") < MAX_WORDS
        and cell[-1] not in ".!?:;,"
        and "\n" not in cell
    )


def _is_table(line: str, header: list[str], rows: list[_Row]) -> bool:
    """Whether half of the rows are as wide as the header; all, if that may be a sentence."""
    if rows and _OF_RULES.issuperset("".join(rows[0].cells)):
        return False  # Markdown
    n_wide = sum(len(row.cells) == len(header) for row in rows)
    if len(_SPACED.findall(line)) * 2 >= len(header) - 1:
        is_short = not any(" " in cell.strip() for cell in header)
        return is_short and n_wide == len(rows) and len(header) + n_wide > 3
    return 2 * n_wide >= max(2, len(rows))


def _rows(
    source: StringIO, begin: int, delimiter: str, width: int, is_quoted: bool = True
) -> list[_Row]:
    """The rows of the table that has its first row at `begin`."""
    rows: list[_Row] = []
    n_vain = 0
    is_after_blank = False
    source.seek(begin)
    reader = _reader(source, delimiter, is_quoted)
    while True:
        start = source.tell()
        try:
            cells = next(reader, None)
        except csv.Error:
            if is_quoted and delimiter in _UNQUOTED:
                return _rows(source, begin, delimiter, width, is_quoted=False)
            # Its quotes do not close: that line is left out, and what it took in is read anew.
            n_vain += source.tell() - start
            if n_vain > _MAX_VAIN * (source.tell() - begin):
                break
            source.seek(start)
            source.readline()
            reader = _reader(source, delimiter, is_quoted)
            continue
        if cells is None:
            break
        if not any(map(str.strip, cells)):
            is_after_blank |= len(cells) <= 1
        elif is_after_blank and (len(cells) != width or _is_header_of_another(cells, rows)):
            break
        else:
            is_after_blank = False
            rows.append(_Row(start, source.tell(), cells))
    while rows and len(rows[-1].cells) == 1:
        rows.pop()
    return rows


def _is_header_of_another(cells: list[str], rows: list[_Row]) -> bool:
    """Whether a row after a blank line has names where the last row has numbers."""
    named = all(_is_name(cell.strip()) for cell in cells if cell.strip())
    return named and any(
        _NUMERIC.fullmatch(cell.strip()) for row in rows[-1:] for cell in row.cells
    )


def _reader(source: StringIO, delimiter: str, is_quoted: bool) -> Iterator[list[str]]:
    return csv.reader(
        iter(source.readline, ""),
        delimiter=delimiter,
        strict=True,
        skipinitialspace=True,
        quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
    )


def _piece(text: str, row: _Row, names: tuple[str, ...], delimiter: str) -> Piece:
    start, end, cells = row
    if text.endswith("\n", start, end):
        end -= 1
    n = len(names)
    if len(cells) > n:
        source = text[start:end]
        last = (
            delimiter.join(cells[n - 1 :]) if '"' in source else source.split(delimiter, n - 1)[-1]
        )
        if _GROUPED.fullmatch(last.strip()):  # 2,345 here is two cells, and no number
            last = last.replace(",", ", ")
        cells = [*cells[: n - 1], last]
    elif len(cells) < n:
        cells = cells + [""] * (n - len(cells))
    return Piece(start, end, dict(zip(names, map(str.strip, cells), strict=True)))
