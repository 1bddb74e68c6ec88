"""EVALUATE(CTX, PROGRAM): arithmetic in steps, over the numbers of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from pearl.actions.arithmetic.evaluation import PERCENT, POINTS, Amount, evaluate, plain
from pearl.actions.arithmetic.program import (
    AmbiguousRowError,
    Operand,
    UnfitUnitsError,
    UnknownRowError,
    parse,
)
from pearl.actions.values import Scalar, Value, as_text
from pearl.documents.lexicon import words_in
from pearl.documents.numbers import Quantity, is_blank, read_column, scale_of
from pearl.documents.rows import Row, Rows, without_duplicates
from pearl.documents.table import TableRows, mended, rows_in
from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.errors import Span, did_you_mean

ACTION = Action(
    "EVALUATE",
    (Parameter("CTX", ValueType.CONTEXT, "rows"), Parameter("PROGRAM", reads="value")),
    'Carry out the arithmetic of PROGRAM, such as "subtract(5735, 5180), divide(#0, 5180)" or "table_sum(revenue, none)", '
    "with the rows of CTX as its table, and return the result",
    is_native=True,
)
IS_SPECIALISED = True

_OF_DOCUMENTS = {"Document"}


def run(rows: Rows, program: Value) -> Value:
    """Evaluate a program; the result refers to the rows that its numbers come from."""
    parsed = parse(as_text(program).strip())
    figures = Figures(_tables(rows))
    places_read: list[Row] = []
    notes: list[str] = []
    amounts: dict[str, Amount] = {}
    for operand in dict.fromkeys(each for each in parsed.operands if each.kind == "number"):
        assert operand.value is not None  # because its kind is "number"
        value = abs(operand.value.scaleb(2) if operand.unit == PERCENT else operand.value)
        cells = figures.cells.get(value, [])  # cells of either sign
        read = [row for row, _ in cells] or places(value, rows)
        places_read += read
        notes.append(_source(operand, [cell.place for _, cell in cells], len(read)))
        if amount := with_unit(operand, [cell for _, cell in cells]):
            amounts[operand.text] = amount
    try:
        result = evaluate(parsed, figures.amounts, amounts)
    except UnfitUnitsError as error:
        if not amounts:
            raise
        notes.append(f"units of the cells do not fit: {error}")
        figures.used.clear()
        figures.notes.clear()
        result = evaluate(parsed, figures.amounts)
    behind = Rows(
        without_duplicates([*places_read, *figures.used]),
        "PROGRAM",
        tuple(row for row in figures.used if row in rows.doubtful),
        rows.notes,
    ).noting(result.formula)
    if result.is_rounded:
        behind = behind.noting(f"rounded to {result.text}")
    return Scalar(result.text, behind.noting(*notes, *figures.notes))


def _tables(rows: Rows) -> Iterator[TableRows]:
    """The tables of selected rows, of which those with the same fields are one, or the tables in the text of documents."""
    every = list(rows.every)
    if any(row.fields.keys() - _OF_DOCUMENTS for row in every):
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in every:
            groups.setdefault(tuple(row.fields), []).append(row)
        yield from (TableRows("", "", each) for names, each in groups.items() if names)
        return
    for row in every:
        yield from rows_in(row.value or "", row.spans[0].start if row.spans else None)


class Cell(NamedTuple):
    """A cell of a table: its place in words, its text and its number."""

    place: str
    text: str
    quantity: Quantity | None


def _named_rows(table: TableRows) -> Iterator[tuple[str, Row, list[Cell]]]:
    """Each row of a table: its name (the first cell, unless that is a number) and its cells."""
    rows = mended(table.rows)
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    texts = {name: [row.fields.get(name) or "" for row in rows] for name in names}
    scale = scale_of(names[0]) or scale_of(table.caption) or 0
    numbers = {name: read_column(name, texts[name], scale) for name in names}
    for i, row in enumerate(rows):
        first = texts[names[0]][i]
        label = "" if numbers[names[0]][i] or is_blank(first) else " ".join(first.split())
        at = f"row '{label}'" if label else f"row {i + 1}"
        yield label, row, [
            Cell(f"{at}, column '{name}'", texts[name][i], _in_row(numbers[name][i], label, table.caption))
            for name in names
        ]  # fmt: skip


def _in_row(quantity: Quantity | None, label: str, caption: str) -> Quantity | None:
    """Remove the scale of per-share numbers: they are not in millions."""
    if quantity is None or not quantity.scale:
        return quantity
    name, exceptions = label.casefold(), caption.casefold().partition("except")[2]
    is_except = "per share" in name or ("shares" in exceptions and "shares" in name)
    is_except |= "share and" in exceptions and "share" in name
    return Quantity(quantity.value, quantity.unit) if is_except else quantity


def _source(operand: Operand, cells: Sequence[str], n_places: int) -> str:
    """Where a number comes from."""
    if len(cells) == 1:
        return f"{operand.text}: {cells[0]}"
    if cells:
        return f"{operand.text}: in {len(cells)} cells, the first is {cells[0]}"
    if n_places:
        return f"{operand.text}: in the text, {n_places} time{'s' * (n_places > 1)}"
    return f"{operand.text}: not in the document"


MIN_DIGITS = 3  # a shorter number may stand in a cell by chance

MAX_PLACES = 100  # maximum places of a number in a text


class Figures:
    """The numbers of tables."""

    def __init__(self, tables: Iterable[TableRows]) -> None:
        self.used: list[Row] = []
        self.notes: list[str] = []
        self._rows: dict[str, list[tuple[Row, list[Cell]]]] = {}
        self._names: dict[str, str] = {}
        self.cells: dict[Decimal, list[tuple[Row, Cell]]] = {}
        for table in tables:
            for name, row, cells in _named_rows(table):
                self._rows.setdefault(_key(name), []).append((row, cells))
                self._names.setdefault(_key(name), name)
                for cell in cells:
                    if cell.quantity is not None:
                        self.cells.setdefault(abs(cell.quantity.value), []).append((row, cell))

    def amounts(self, name: str) -> Sequence[Amount]:
        """The numbers of the row of that name; blank cells are left out and noted."""
        named_rows = self._rows.get(_key(name), [])
        if not named_rows or not _key(name):
            close = did_you_mean(name, self._names.values())
            advice = f"; did you mean '{close}'?" if close else ""
            raise UnknownRowError(f"the table has no row '{name}'{advice}")
        if len(named_rows) > 1:
            raise AmbiguousRowError(f"the table has {len(named_rows)} rows named '{name}'")
        ((row, (_, *cells)),) = named_rows
        filled = [cell for cell in cells if not is_blank(cell.text)]
        unread = next((cell.text for cell in filled if cell.quantity is None), None)
        if unread is not None:
            raise UnknownRowError(f"the row '{name}' has a cell that is not a number: '{unread}'")
        if n_blank := len(cells) - len(filled):
            self.notes.append(f"{n_blank} blank cells of the row '{name}' are left out")
        self.used.append(row)
        return [Amount.of(cell.quantity) for cell in filled if cell.quantity]


def with_unit(operand: Operand, cells: Sequence[Cell]) -> Amount | None:
    """A number of a program with the common unit and scale of the cells that contain it; None if they differ."""
    if operand.value is None or operand.unit or len(operand.value.as_tuple().digits) < MIN_DIGITS:
        return None
    units = {(cell.quantity.unit, cell.quantity.scale) for cell in cells if cell.quantity}
    if len(units) != 1:
        return None
    unit, scale = units.pop()
    return Amount(operand.value, POINTS if unit == PERCENT else unit, scale)


def places(value: Decimal, rows: Rows) -> list[Row]:
    """The places in a text with a number, as rows in order."""
    whole, _, decimals = plain(value).partition(".")
    grouped = rf"{int(whole):,}".replace(",", ",?")
    whole = rf"(?:{grouped})?" if whole == "0" else grouped
    digits = rf"{whole}\.{decimals}0*" if decimals else rf"{whole}(?:\.0+)?"
    pattern = re.compile(rf"(?<![\w.,]){digits}(?![\w]|[.,][0-9])")
    rows_found: list[Row] = []
    for row in rows:
        text, start = row.value or "", row.spans[0].start if row.spans else 0
        for match in pattern.finditer(text):
            spans = (Span(start + match.start(), start + match.end()),) if row.spans else ()
            rows_found.append(Row(match[0], row.fields, spans, match[0]))
            if len(rows_found) == MAX_PLACES:
                return rows_found
    return rows_found


def _key(name: str) -> str:
    return " ".join(words_in(name.casefold()))
