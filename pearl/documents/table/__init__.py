"""Tables: rows of typed columns, with units, and a place for every cell.

- `quantities`: the text of a cell → a number with its unit and scale;
- `columns`: the cells of a column → its type, its unit and their numbers;
- `finding`: a document → its tables, by the forms of the unit `record`;
- `rendering`: tables → Markdown for models, rows → texts that stand for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pearl.documents.numbers import SCALES, Quantity
from pearl.documents.rows import Row
from pearl.documents.table.columns import Column, is_year, read_column
from pearl.documents.table.quantities import is_blank, read_quantity, scale_of
from pearl.documents.units.record.names import columns as unique_names
from pearl.errors import Span, did_you_mean

__all__ = ["Cell", "Table", "cell_span", "make_table", "mended", "scale_word"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell."""

    source: str
    row: int
    label: str
    column: str
    text: str
    quantity: Quantity | None
    span: Span | None

    def __str__(self) -> str:
        row = f"row '{self.label}'" if self.label else f"row {self.row}"
        return f"{row}, column '{self.column}'"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a document."""

    source: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    scale: int = 0
    notes: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """The column of that name."""
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            names = [column.name for column in self.columns]
            close = did_you_mean(name, names)
            advice = f"did you mean '{close}'?" if close else f"there are {', '.join(names)}"
            raise ValueError(f"there is no column '{name}'; {advice}")
        return found

    def label(self, row: int) -> str:
        """The name of a row (from 1): its first cell, if that is no number."""
        first = self.columns[0]
        text = self.rows[row - 1].fields.get(first.name) or ""
        return "" if first.quantities[row - 1] or is_blank(text) else " ".join(text.split())

    def cell(self, row: int, column: str) -> Cell:
        """A cell."""
        if not 1 <= row <= len(self.rows):
            raise ValueError(f"there is no row {row}; the table has {len(self.rows):,}")
        read, found = self.rows[row - 1], self.column(column)
        text = read.fields.get(column) or ""
        label = self.label(row)
        quantity = _in_row(found.quantities[row - 1], label, self.caption)
        return Cell(self.source, row, label, column, text, quantity, cell_span(read, column))

    def cells(self, row: int) -> tuple[Cell, ...]:
        """The cells of a row (from 1)."""
        return tuple(self.cell(row, column.name) for column in self.columns)


def cell_span(row: Row, column: str) -> Span | None:
    """Where a cell is in the document: that of its row if the cell is written otherwise there."""
    if not row.spans:
        return None
    start, at = row.spans[0].start, 0
    for name, text in row.fields.items():
        found = row.text.find(text, at) if text else at
        if name == column:
            is_there = bool(text) and found >= 0
            return (
                Span(start + found, start + found + len(text or "")) if is_there else row.spans[0]
            )
        at = found + len(text or "") if found >= 0 else at
    return row.spans[0]


def make_table(
    rows: Sequence[Row], source: str = "", caption: str = "", notes: Sequence[str] = ()
) -> Table:
    """The table of rows that have the same fields.

    Example:
        >>> table = make_table([Row("", {"in millions": "revenue", "2008": "$5"})])
        >>> table.cell(1, "2008").quantity
        Quantity(value=Decimal('5'), unit='$', scale=6)
    """
    rows = mended(rows)
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    scale = scale_of(names[0]) or scale_of(caption) or 0
    cells = {name: [row.fields.get(name) or "" for row in rows] for name in names}
    columns = tuple(read_column(name, cells[name], scale) for name in names)
    told = (*notes, *(note for column in columns for note in column.notes))
    return Table(source, caption, columns, tuple(rows), scale, tuple(dict.fromkeys(told)))


def mended(rows: Sequence[Row]) -> Sequence[Row]:
    """Rows of a table without columns of signs and without a second row of headings."""
    return _one_heading(_joined_marks(rows))


_BEFORE = frozenset("$€£¥(")
_AFTER = frozenset({")", "%", ")%", ") %"})


def _joined_marks(rows: Sequence[Row]) -> Sequence[Row]:
    """Rows without columns of nothing but currency signs, brackets or percent signs.

    Reports on the web have them, so that digits stand below each other.
    """
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    values = {name: {(row.fields.get(name) or "").strip() for row in rows} - {""} for name in names}
    target: dict[str, str] = {}
    for i, name in enumerate(names):
        if values[name] and values[name] <= _BEFORE and i + 1 < len(names):
            target[name] = names[i + 1]
        elif values[name] and values[name] <= _AFTER and i:
            target[name] = next(n for n in reversed(names[:i]) if n not in target)
    if not target or not set(target.values()) - target.keys():
        return rows
    joined = []
    for row in rows:
        fields = {name: text for name, text in row.fields.items() if name not in target}
        for name, into in target.items():
            mark, text = row.fields.get(name) or "", fields.get(into) or ""
            fields[into] = f"{mark}{text}" if values[name] <= _BEFORE else f"{text}{mark}"
        joined.append(row._replace(fields=fields))
    return joined


_AGAIN = re.compile(r" \([0-9]+\)\Z")


def _one_heading(rows: Sequence[Row]) -> Sequence[Row]:
    """Rows of which a second row of headings is in the names of the columns: `2008 Q1`, `2008 Q2`.

    It is one if a name stands above several columns and all that the first row says is no number.
    """
    first, *others = rows
    if not others or not any(_AGAIN.search(name) for name in first.fields):
        return rows
    texts = [text or "" for text in first.fields.values()]
    if any(read_quantity(text) and not is_year(text) for text in texts):
        return rows
    names = [_AGAIN.sub("", name) for name in first.fields]
    both = (
        name if text in ("", name) else f"{name} {text}"
        for name, text in zip(names, texts, strict=True)
    )
    named = dict(zip(first.fields, unique_names(list(both)), strict=True))
    return [
        row._replace(fields={named.get(name, name): text for name, text in row.fields.items()})
        for row in others
    ]


def _in_row(quantity: Quantity | None, label: str, caption: str) -> Quantity | None:
    """A number with the scale of its row: what is said per share is in no millions."""
    if quantity is None or not quantity.scale:
        return quantity
    name, exceptions = label.casefold(), caption.casefold().partition("except")[2]
    is_except = "per share" in name or ("shares" in exceptions and "shares" in name)
    is_except |= "share and" in exceptions and "share" in name
    return Quantity(quantity.value, quantity.unit) if is_except else quantity


def scale_word(scale: int) -> str:
    """`millions` for 6; "" for 0.

    Example:
        >>> scale_word(6), scale_word(0)
        ('millions', '')
    """
    return next((f"{word}s" for word, power in SCALES.items() if power == scale), "")
