"""A document → its tables, by the forms that the unit `record` reads: CSV, TSV, Markdown, JSON, ..."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from pearl.documents.document import Document, part_spans
from pearl.documents.rows import Row
from pearl.documents.table import Table, make_table, scale_word
from pearl.documents.table.quantities import scale_of
from pearl.documents.units import Piece
from pearl.documents.units.record import markdown_tables, split
from pearl.documents.units.record.json_objects import lists
from pearl.errors import Span

MAX_NAMES = 4
"""Names of columns in a note."""

MAX_ABOVE = 2_000
"""Characters above a table in which its caption is looked for."""

MAX_CAPTION = 200
"""Characters of a line that may be a caption."""


def find_tables(document: Document) -> tuple[Table, ...]:
    r"""The tables of a document, in order; rows that follow each other with the same columns are one.

    Joined files are one document each.

    Example:
        >>> text = "In millions:\n\n| item | 2008 |\n|---|---|\n| sales | $5 |\n"
        >>> (table,) = find_tables(Document(text, "report.md"))
        >>> table.caption, str(table.cell(1, "2008")), table.cell(1, "2008").span
        ('In millions:', "row 'sales', column '2008'", Span(start=50, end=52))
    """
    return tuple(make_table(each.rows, each.source, each.caption) for each in table_rows(document))


class TableRows(NamedTuple):
    """The rows of one table, as they are written."""

    source: str
    caption: str
    rows: list[Row]


def table_rows(document: Document) -> Iterator[TableRows]:
    """The rows of each table of a document; cells are not read, which takes longest."""
    text = document.text
    for name, span in part_spans(text, document.parts) or [("", Span(0, len(text)))]:
        part = text[span.start : span.end]
        for caption, rows in _rows_in(part, span.start):
            yield TableRows(name or document.name, caption, rows)


def tables_in(text: str, offset: int | None = 0, source: str = "") -> Iterator[Table]:
    """The tables of a text."""
    for caption, rows in _rows_in(text, offset):
        yield make_table(rows, source, caption)


def _rows_in(text: str, offset: int | None) -> Iterator[tuple[str, list[Row]]]:
    """Of each table of a text the line above it, and its rows."""
    try:
        pieces = lists(text) or split(text)
    except ValueError:  # nothing, or one row beside much text, which is a table all the same
        pieces = markdown_tables.find(text)
    end = 0
    for _, group in groupby(_numbered(text, pieces), key=lambda each: each[0]):
        those = [piece for _, piece in group]
        caption = _caption(text, end, those[0].start, those[0])
        rows = [
            Row(
                text[piece.start : piece.end],
                piece.fields,
                () if offset is None else (Span(offset + piece.start, offset + piece.end),),
                text[piece.start : piece.end],
            )
            for piece in those
        ]
        yield caption, rows
        end = those[-1].end


def scale_notes(text: str, pieces: Sequence[Piece]) -> Iterator[str]:
    r"""What captions and headers say the numbers of records are in, a sentence each.

    Example:
            >>> text = "In millions:\n\n| item | 2008 |\n|---|---|\n| sales | $5 |\n"
                >>> list(scale_notes(text, [Piece(40, 54, {"item": "sales", "2008": "$5"})]))
                ['numbers of the table with item, 2008 are in millions, as its caption says']
    """
    end = 0
    names: tuple[str, ...] = ()
    for piece in pieces:
        if tuple(piece.fields) != names:
            names = tuple(piece.fields)
            caption = _caption(text, max(end, piece.start - MAX_ABOVE), piece.start, piece)
            for where, words in (("caption", caption), ("header", names[0] if names else "")):
                if scale := scale_of(words):
                    shown = ", ".join(names[:MAX_NAMES]) + (
                        ", ..." if len(names) > MAX_NAMES else ""
                    )
                    yield f"numbers of the table with {shown} are in {scale_word(scale)}, as its {where} says"
        end = piece.end


def _numbered(text: str, pieces: list[Piece]) -> Iterator[tuple[int, Piece]]:
    """Each piece with the number of its table: one ends with other columns, or other text between."""
    number, previous = 0, None
    for piece in pieces:
        if previous is not None:
            between = text[previous.end : piece.start]
            is_apart = "\n\n" in between and any(c.isalnum() for c in between)
            number += tuple(piece.fields) != tuple(previous.fields) or is_apart
        yield number, piece
        previous = piece


def _caption(text: str, start: int, end: int, first: Piece) -> str:
    """The last line before a table that is not its header."""
    names = set(_WORD.findall(" ".join(first.fields)))
    for line in reversed(text[start:end].split("\n")):
        words = set(_WORD.findall(line))
        if words and not words <= names:
            if key := _KEY.search(line):
                return key[1]
            line = line.strip().lstrip("#").strip()
            return line if len(line) <= MAX_CAPTION else ""
    return ""


_WORD = re.compile(r"\w+")
_KEY = re.compile(r'"([^"]+)"\s*:\s*\[\s*\Z')
"""A list of a JSON report."""


def tables_of_rows(rows: list[Row], source: str = "") -> list[Table]:
    """The tables that selected rows are of: those with the same fields are one."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.fields), []).append(row)
    return [make_table(each, source) for names, each in groups.items() if names]
