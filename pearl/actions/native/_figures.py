"""The native action that computes a figure of each group of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, Inexact, localcontext
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from pearl.actions.columns import MAX_SHOWN, Column, read_column
from pearl.actions.groups import NONE, group, place, size_field
from pearl.actions.native import Family
from pearl.actions.values import Value, as_text, written_out
from pearl.documents.comparisons import in_one_unit, numbers_in
from pearl.documents.numbers import UnclearNumberError, is_blank
from pearl.documents.rows import EMPTY, Row, Rows, shortened, unused_name
from pearl.dsl.signatures import Parameter, ValueType

if TYPE_CHECKING:
    from fractions import Fraction

PLUGINS = Family()

_FIGURES: Mapping[str, Callable[[Sequence[Any]], Any]] = {  # of fractions
    "mean": lambda numbers: sum(numbers) / len(numbers),
    "sum": sum,
    "min": min,
    "max": max,
}
MODE = "mode"


@PLUGINS.action(
    "AGGREGATE",
    (Parameter.named("ROWS"), Parameter("FIELD"), Parameter("FIGURE", choices=(*_FIGURES, MODE)), Parameter("OF")),
    "Return one row for each value of FIELD in ROWS, with the FIGURE of their field OF as a field of this name: "
    f"{', '.join(_FIGURES)}, or {MODE}, the most frequent value",
    returns=ValueType.LIST, traits=["figures", "sums_up"],
)  # fmt: skip
def aggregate(rows: Rows, key: str, figure: str, of: str) -> Value:
    """Group rows and compute the figure of each group; undecided if an undecided row may change it."""
    if figure not in (*_FIGURES, MODE):
        raise ValueError(f"unknown figure '{figure}'; figures are {', '.join((*_FIGURES, MODE))}")
    keys = read_column(rows, key)
    cells = read_column(rows, of, None if figure == MODE else "number")
    groups = group(rows, keys)
    of_any = tuple(row for each in groups.doubtful if each.value is None for row in each.possible)
    heading = unused_name(figure, (groups.column, size_field(groups.column)))
    value_of = dict(zip(map(id, rows.every), cells.values, strict=True))
    n_blank = sum(value is not None and is_blank(value) for value in cells.values)
    notes = list(cells.notes)
    compute = (
        _mode(rows, cells, value_of) if figure == MODE else _number(figure, cells, value_of, notes)
    )

    def computed(each: Row, *, is_sure: bool) -> Row:
        text, n_open, n_decided = compute(each.members, (*each.possible, *of_any))
        if n_open and is_sure:
            decided = f"{figure} of its {n_decided:,} decided rows: {text or 'none'}"
            notes.append(f"{shortened(each.value or EMPTY, 60)}: {decided}; {n_open:,} undecided")
        shown = each.with_column(heading, None if n_open or not is_sure else text)
        return shown._replace(text=each.value or "")

    sure = tuple(computed(row, is_sure=True) for row in groups)
    doubtful = tuple(computed(row, is_sure=False) for row in groups.doubtful)
    if len(notes) > MAX_SHOWN:
        notes[MAX_SHOWN:] = [f"... and {len(notes) - MAX_SHOWN:,} more undecided groups"]
    if n_blank:
        notes.append(f"rows without {cells.name}, which are left out: {n_blank:,}")
    result = replace(
        groups, rows=sure, doubtful=doubtful, column=heading, is_answered=True, shows_possible=False,
        columns=(groups.column, heading),
    )  # fmt: skip
    return result.noting(*notes)


Compute = Callable[[Sequence[Row], Sequence[Row]], tuple[str, int, int]]
"""Group's rows, rows that may belong to it → the figure, and the numbers of rows that may change it and of decided rows."""


def _number(
    name: str, cells: Column, value_of: Mapping[int, str | None], notes: list[str]
) -> Compute:
    figure = _FIGURES[name]
    stated = [cell for cell in cells.values if cell and not is_blank(cell)]
    amounts, unit = in_one_unit(numbers_in(stated), stated)
    if amounts and not any(amount is not None for amount in amounts.values()):
        raise UnclearNumberError(f"no value of '{cells.name}' is a number that can be read")
    notes += [f"numbers of {cells.name} are in: {shortened(unit, 40)}"] if unit else []

    from fractions import Fraction  # late: `pearl check` imports all actions

    def numbers(rows: Sequence[Row]) -> list[Fraction | None]:
        """The numbers of the rows with a value; None for one that is undecided."""
        own = [v for row in rows if (v := value_of[id(row)]) is None or not is_blank(v)]
        read = [None if value is None else amounts[value] for value in own]
        return [None if number is None else Fraction(number) for number in read]

    def compute(members: Sequence[Row], others: Sequence[Row]) -> tuple[str, int, int]:
        own = numbers(members)
        known = [number for number in own if number is not None]
        result = figure(known) if known else None
        n_open = len(own) - len(known) + sum(
            result is None or number is None or figure([result, number]) != result for number in numbers(others)
        )  # fmt: skip
        return "" if result is None else _written(result), n_open, len(known)

    return compute


def _mode(rows: Rows, cells: Column, value_of: Mapping[int, str | None]) -> Compute:
    def compute(members: Sequence[Row], others: Sequence[Row]) -> tuple[str, int, int]:
        own = replace(rows, rows=tuple(members), doubtful=tuple(others))
        column = replace(cells, values=[value_of[id(row)] for row in own.every])
        values = group(own, column)
        first = place(values, size_field(values.column), 1)
        text = "" if first.value == NONE and not first.rows.rows else str(first.value)
        return text, len(first.rows.undecided), sum(len(row.members) for row in values)

    return compute


def _written(number: Fraction) -> str:
    """A number in digits: exact if its decimals end, else rounded like a float."""
    # A decimal that ends has fewer than four digits for each digit of the denominator.
    digits = len(str(number.numerator)) + 4 * len(str(number.denominator))
    with localcontext(prec=digits) as context:
        context.clear_flags()  # of earlier computations
        exact = Decimal(number.numerator) / number.denominator
        return as_text(float(number) if context.flags[Inexact] else written_out(exact.normalize()))
