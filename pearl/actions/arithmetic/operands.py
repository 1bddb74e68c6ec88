"""Tables → the numbers that a program means, and the cells they come from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from pearl.actions.arithmetic.evaluation import PERCENT, POINTS, Amount, plain
from pearl.actions.arithmetic.faults import AmbiguousRowError, UnknownRowError
from pearl.actions.arithmetic.program import Operand
from pearl.documents.numbers import Quantity
from pearl.documents.rows import Row, Rows
from pearl.documents.table import Cell, Table
from pearl.documents.table.quantities import is_blank
from pearl.errors import Span, did_you_mean

MIN_DIGITS = 3

MAX_PLACES = 100
"""Places of a number in a text at most."""

_WORDS = re.compile(r"\w+")


class Figures:
    """The numbers of tables."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.used: list[Row] = []
        self.notes: list[str] = []
        self._rows: dict[str, list[tuple[Table, int]]] = {}
        self._names: dict[str, str] = {}
        self._cells: dict[Decimal, list[tuple[Row, Cell]]] = {}
        for table in tables:
            for number, row in enumerate(table.rows, start=1):
                name = table.label(number)
                self._rows.setdefault(_key(name), []).append((table, number))
                self._names.setdefault(_key(name), name)
                for cell in table.cells(number):
                    if cell.quantity is not None:
                        found = self._cells.setdefault(abs(cell.quantity.value), [])
                        found.append((row, cell))

    def amounts(self, name: str) -> Sequence[Amount]:
        """The numbers of the row of that name; blank cells are left out, and said so."""
        found = self._rows.get(_key(name), [])
        if not found or not _key(name):
            close = did_you_mean(name, self._names.values())
            advice = f"; did you mean '{close}'?" if close else ""
            raise UnknownRowError(f"the table has no row '{name}'{advice}")
        if len(found) > 1:
            raise AmbiguousRowError(f"the table has {len(found)} rows '{name}'")
        ((table, number),) = found
        cells = table.cells(number)[1:]
        filled = [cell for cell in cells if not is_blank(cell.text)]
        unread = next((cell.text for cell in filled if cell.quantity is None), None)
        if unread is not None:
            raise UnknownRowError(f"the row '{name}' has a cell that is no number: '{unread}'")
        if n_blank := len(cells) - len(filled):
            self.notes.append(f"{n_blank} blank in the row '{name}', left out")
        self.used.append(table.rows[number - 1])
        return [_amount(cell.quantity) for cell in filled if cell.quantity]

    def holding(self, operand: Operand) -> Sequence[tuple[Row, Cell]]:
        """The cells that hold a number of a program, whatever its sign, each with its row."""
        if operand.value is None:
            return ()
        value = operand.value.scaleb(2) if operand.unit == PERCENT else operand.value
        return self._cells.get(abs(value), ())


def with_unit(operand: Operand, cells: Sequence[Cell]) -> Amount | None:
    """A number of a program with the unit and scale that all cells with it have."""
    if operand.value is None or operand.unit or len(operand.value.as_tuple().digits) < MIN_DIGITS:
        return None
    units = {(cell.quantity.unit, cell.quantity.scale) for cell in cells if cell.quantity}
    if len(units) != 1:
        return None
    unit, scale = units.pop()
    return Amount(operand.value, POINTS if unit == PERCENT else unit, scale)


def places(operand: Operand, rows: Rows) -> list[Row]:
    """Where a text reads the number of a program: a row for each place, in order."""
    if operand.value is None:
        return []
    value = abs(operand.value.scaleb(2) if operand.unit == PERCENT else operand.value)
    whole, _, decimals = plain(value).partition(".")
    grouped = rf"{int(whole):,}".replace(",", ",?")
    whole = rf"(?:{grouped})?" if whole == "0" else grouped
    digits = rf"{whole}\.{decimals}0*" if decimals else rf"{whole}(?:\.0+)?"
    pattern = re.compile(rf"(?<![\w.,]){digits}(?![\w]|[.,][0-9])")
    found: list[Row] = []
    for row in rows:
        text, start = row.value or "", row.spans[0].start if row.spans else 0
        for match in pattern.finditer(text):
            spans = (Span(start + match.start(), start + match.end()),) if row.spans else ()
            found.append(Row(match[0], row.fields, spans, match[0]))
            if len(found) == MAX_PLACES:
                return found
    return found


def _amount(quantity: Quantity) -> Amount:
    amount = Amount.of(quantity)
    is_bare = not (quantity.unit or quantity.scale)
    return Amount(amount.value) if is_bare else amount


def _key(name: str) -> str:
    return " ".join(_WORDS.findall(name.casefold()))
