"""Rows: parts of a document with spans, fields and a value; an undecided row is neither counted nor dropped."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count, repeat
from typing import NamedTuple, overload

from msgspec import Struct, StructMeta
from msgspec.structs import replace

from pearl.documents.document import Document, part_spans
from pearl.errors import Span

TEXT_COLUMN = "text"  # the name of the column of the rows' texts
DOCUMENT = "Document"  # the name of the field with the document of a row
TABLE = "Table"  # the name of the field with a table's heading, if several have its columns
EMPTY = "(empty)"  # text that stands for an empty field

_GAP = "[...]"


class Row(NamedTuple):
    """One row of a collection. A tuple, because collections have hundreds of thousands."""

    value: str | None
    fields: Mapping[str, str | None] = {}
    spans: tuple[Span, ...] = ()
    text: str = ""
    members: tuple[Row, ...] = ()
    possible: tuple[Row, ...] = ()

    @property
    def key(self) -> object:
        """The identity of the row, independent of its value: place and text, or the key of a group."""
        if self.spans:
            return self.spans[0].start, self.spans[-1].end, self.text
        if self.text and self.members and not self.is_figure:  # pairs may have the same text
            return self.text, self.members[0].key, self.members[-1].key
        if self.text:
            return self.text
        return next(iter(self.fields.values()), self.value)

    @property
    def is_figure(self) -> bool:
        """Whether the value is computed from a group, whose key is the text."""
        is_group = bool(self.members or self.possible)
        return is_group and next(iter(self.fields.values()), None) == self.text

    def with_fields(self, more: Mapping[str, str | None]) -> Row:
        """The row with more fields."""
        fields = {**self.fields, **more}
        return Row(self.value, fields, self.spans, self.text, self.members, self.possible)

    def valued(self, value: str | None) -> Row:
        """The row with its value replaced."""
        return Row(value, self.fields, self.spans, self.text, self.members, self.possible)

    def with_column(self, column: str, value: str | None) -> Row:
        """The row with one more field, which becomes its value."""
        fields = {**self.fields, column: value}
        return Row(value, fields, self.spans, self.text, self.members, self.possible)


class Stated(NamedTuple):
    """Counts of a selection: selected rows, rows that state the field in question, and rows that do not."""

    value: int
    of: int
    not_stated: int
    field: str = ""  # The field that states it; "" if a model was asked


class _SequenceMeta(StructMeta, ABCMeta):
    """The class of a Struct that is a sequence."""


class Rows(Struct, Sequence[Row], frozen=True, dict=True, metaclass=_SequenceMeta):
    """A collection of rows."""

    rows: tuple[Row, ...]
    column: str = TEXT_COLUMN
    doubtful: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    is_answered: bool = False
    shows_possible: bool = False
    is_in_order: bool | None = False
    """Whether rows, doubtful ones included, have the document's order; None if undecided rows may change it."""
    sorted_by: str = ""  # The field that gave the order
    n_unread: int = 0  # Rows that no model was asked about, because the plan needed no more
    columns: tuple[str, ...] = ()
    pages: tuple[tuple[str, int], ...] = ()
    totals: tuple[Row, ...] = ()
    """Rows of the same table that sum up others; rows that may or may not be totals are also doubtful."""
    stated: Stated | None = None  # Of rows that a condition selected, or of groups

    def __repr__(self) -> str:
        """Short, because asyncio and notebooks call it for every answer."""
        return f"Rows({len(self.rows):,} rows, column={self.column!r})"

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        return self.rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def values(self) -> list[str]:
        """The values of all rows that have one."""
        return [row.value for row in self.rows if row.value is not None]

    @cached_property
    def undecided(self) -> tuple[Row, ...]:
        """Rows with an undecided value, and rows whose membership is undecided."""
        unread = (
            row
            for row in self.rows
            if row.value is None or any(row.fields.get(name, "") is None for name in self.columns)
        )
        possible = (r for row in self.rows if self.shows_possible for r in row.possible)
        return (*unread, *possible, *self.doubtful)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all fields, in order of first occurrence."""
        return tuple(dict.fromkeys(chain.from_iterable(row.fields for row in self.every)))

    def where(self, rows: Iterable[Row], doubtful: Iterable[Row] = ()) -> Rows:
        """Select rows, and mark more rows as doubtful."""
        more = (*self.doubtful, *doubtful)
        return replace(self, rows=tuple(rows), doubtful=more, totals=(), stated=None)

    def moved(self, n: int) -> Rows:
        """The rows of a text that begins `n` characters later."""
        if not n:
            return self
        rows, doubtful, totals = (
            tuple(row._replace(spans=tuple(span.moved(n) for span in row.spans)) for row in those)
            for those in (self.rows, self.doubtful, self.totals)
        )
        pages = tuple((page, start + n) for page, start in self.pages)
        return replace(self, rows=rows, doubtful=doubtful, totals=totals, pages=pages)

    def reordered(self, by: str = "") -> Rows:
        """Mark the rows as sorted by the field `by`, or as not in the document's order."""
        return replace(self, is_in_order=False, sorted_by=by)

    @property
    def are_figures(self) -> bool:
        """Whether all rows are the figures of groups."""
        return bool(self.columns) and all(row.is_figure for row in self.rows)

    @property
    def every(self) -> tuple[Row, ...]:
        """All rows, the doubtful ones last."""
        return (*self.rows, *self.doubtful)

    def noting(self, *notes: str) -> Rows:
        """The rows with more notes, each once."""
        return replace(self, notes=tuple(dict.fromkeys((*self.notes, *notes))))

    def lines(self, limit: int | None = None) -> list[str]:
        """One line of text for each row, the undecided ones included."""
        rows = self.rows if limit is None else self.rows[:limit]
        shown = [self._line(row) for row in rows]
        if self.columns:
            rule = ["---"] * len(self.columns)
            shown = [_table_line(self.columns), _table_line(rule), *shown]
        if left := len(self.rows) - len(rows):
            shown.append(f"... and {left:,} more rows")
        return shown

    def _line(self, row: Row) -> str:
        if self.columns:
            return _table_line([row.fields.get(name, "") for name in self.columns])
        value = "undecided" if row.value is None else " ".join(row.value.split())
        if self.shows_possible and row.members:
            return f"{value or EMPTY}: {len(row.members):,}"
        return f"{shortened(row.text)}: {value}" if self.is_answered and row.text else value

    def as_context(self) -> str:
        """The rows as one text that replaces the document in a prompt, with gaps marked."""
        lines: list[str] = []
        end: int | None = None
        for row in self.rows:
            if row.spans:
                if end is not None and not end <= row.spans[0].start <= end + 2:
                    lines.append(_GAP)
                end = row.spans[-1].end
            value = "undecided" if row.value is None else row.value
            lines.append(f"{row.text}: {value}" if self.is_answered and row.text else value)
        return "\n".join(lines)


def document_fields(name: str, metadata: Mapping[str, str]) -> dict[str, str | None]:
    """The fields of a document: its name and its metadata; a name that occurs twice is numbered."""
    fields: dict[str, str | None] = {DOCUMENT: name} if name else {}
    for key, value in metadata.items():
        fields[unused_name(key, fields)] = value
    return fields


def document_rows(document: Document) -> Rows:
    """A document as one row; joined files as one row each, with their names in the field `Document`."""
    whole = [("", Span(0, len(document.text)))]
    spans = part_spans(document.text, document.parts) or whole
    rows = []
    for (name, span), metadata in zip(spans, document.metadata or repeat({}), strict=False):
        text = document.text[span.start : span.end]
        rows.append(Row(text, document_fields(name, metadata), (span,), text))
    return Rows(tuple(rows), pages=document.pages, is_in_order=True)


def _table_line(cells: Sequence[str | None]) -> str:
    return f"| {' | '.join(map(table_cell, cells))} |"


def table_cell(cell: str | None) -> str:
    """A cell of a table in Markdown."""
    return "undecided" if cell is None else shortened(cell).replace("|", "&#124;")


def shortened(text: str, length: int = 100) -> str:
    """A text on one line, truncated to a length."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def unused_name(name: str, taken: Container[str]) -> str:
    """A name, numbered if it is taken: `rank (2)`."""
    names = (name if i == 1 else f"{name} ({i})" for i in count(1))
    return next(each for each in names if each not in taken)


def without_duplicates(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Remove repeated rows of the document, keeping the first."""
    first: dict[object, Row] = {}
    for row in rows:
        first.setdefault(row.key, row)
    return tuple(first.values())
