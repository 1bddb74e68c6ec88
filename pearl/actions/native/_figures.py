"""Native actions that compute a number for each group of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, Inexact, localcontext
from fractions import Fraction

from pearl.actions.columns import MAX_SHOWN, read_column
from pearl.actions.groups import group
from pearl.actions.native import Family
from pearl.actions.values import Value, as_text, written_out
from pearl.documents.comparisons import amounts_of
from pearl.documents.numbers import UnclearNumberError
from pearl.documents.rows import EMPTY, Row, Rows, shortened, unused_name
from pearl.dsl.signatures import Parameter, ValueType

PLUGINS = Family()

Figure = Callable[[Sequence[Fraction]], Fraction]


def _add(name: str, definition: str, figure: Figure) -> None:
    """Add the native action that computes a figure."""

    @PLUGINS.action(
        f"{name.upper()}_BY", (Parameter.named("ROWS"), Parameter("NAME"), Parameter("FIELD")),
        definition, returns=ValueType.LIST, traits=["figures", "sums_up"],
    )  # fmt: skip
    def run(rows: Rows, key: str, field: str) -> Value:
        return _by(rows, key, field, name, figure)


def _by(rows: Rows, key: str, field: str, name: str, figure: Figure) -> Rows:
    """Group rows and compute the figure of each group; undecided if an undecided row may change it."""
    keys, cells = read_column(rows, key), read_column(rows, field, "number")
    amounts, unit = amounts_of(
        [cell for cell in dict.fromkeys(cells.values) if cell and cell.strip()]
    )
    if amounts and not any(amount is not None for amount in amounts.values()):
        raise UnclearNumberError(f"no value of '{cells.name}' is a number that can be read")
    numbers: dict[int, Fraction | None] = {}  # of the rows with a cell, by their identity
    for row, cell in zip(rows.every, cells.values, strict=True):
        amount = None if cell is None else amounts.get(cell)
        if cell is None or cell.strip():
            numbers[id(row)] = None if amount is None else Fraction(amount)
    groups = group(rows, keys)
    of_any = [row for each in groups.doubtful if each.value is None for row in each.possible]
    heading = unused_name(name, (groups.column,))
    notes = [
        *cells.notes,
        *([f"numbers of {cells.name} are in: {shortened(unit, 40)}"] if unit else []),
    ]

    def computed(each: Row, *, is_sure: bool) -> Row:
        own = [numbers[id(row)] for row in each.members if id(row) in numbers]
        known = [number for number in own if number is not None]
        possible = [numbers[id(row)] for row in (*each.possible, *of_any) if id(row) in numbers]
        result = figure(known) if known else None
        n_open = len(own) - len(known) + sum(
            result is None or number is None or figure([result, number]) != result for number in possible
        )  # fmt: skip
        text = "" if result is None else _written(result)
        if n_open and is_sure:
            decided = f"{name} of its {len(known):,} decided rows: {text or 'none'}"
            notes.append(f"{shortened(each.value or EMPTY, 60)}: {decided}; {n_open:,} undecided")
        value = None if n_open or not is_sure else text
        shown = each.with_column(heading, value)
        return shown._replace(text=each.value or "")

    sure = tuple(computed(row, is_sure=True) for row in groups)
    doubtful = tuple(computed(row, is_sure=False) for row in groups.doubtful)
    if len(notes) > MAX_SHOWN:
        notes[MAX_SHOWN:] = [f"... and {len(notes) - MAX_SHOWN:,} more undecided groups"]
    if n_blank := len(rows.every) - len(numbers):
        notes.append(f"rows without {cells.name}, which are left out: {n_blank:,}")
    result = replace(
        groups, rows=sure, doubtful=doubtful, column=heading, is_answered=True,
        columns=(groups.column, heading),
    )  # fmt: skip
    return result.noting(*notes)


def _written(number: Fraction) -> str:
    """A number in digits: exactly if it has an end, else rounded as floats are."""
    # A decimal with an end has less than four digits for each digit of the denominator.
    digits = len(str(number.numerator)) + 4 * len(str(number.denominator))
    with localcontext(prec=digits) as context:
        context.clear_flags()  # of earlier computations
        exact = Decimal(number.numerator) / number.denominator
        return as_text(float(number) if context.flags[Inexact] else written_out(exact.normalize()))


_add("mean", "Return one row for each value of the field NAME in ROWS, with the mean of their numbers in "
     "FIELD as the field mean", lambda numbers: sum(numbers, Fraction()) / len(numbers))  # fmt: skip
_add("sum", "As MEAN_BY, with the sum as the field sum", lambda numbers: sum(numbers, Fraction()))
_add("min", "As MEAN_BY, with the smallest number as the field min", min)
_add("max", "As MEAN_BY, with the largest number as the field max", max)
