"""Rows → typed columns: what the cells of each say as numbers, dates or opening hours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pearl.documents.comparisons import are_mostly
from pearl.documents.dates import Dates, date_part, read_dates
from pearl.documents.measures import unit_of
from pearl.documents.numbers import CURRENCIES, Quantity
from pearl.documents.rows import Rows
from pearl.documents.table.columns import read_quantities
from pearl.documents.table.quantities import is_blank, read_quantity
from pearl.errors.escaping import counted
from pearl.tables.folding import fold
from pearl.tables.opening import read_hours

Kind = Literal["text", "number", "date", "hours"]

_NUMBER_FIRST = re.compile(
    r"\s*+(?:[-+−]?\s?(?:US)?[$€£¥₪]?|[$€£¥₪]\s?[-−]?)\s?\.?\d[\d.,]*(?:[eE][-+]?\d+)?(.{0,12})",
    re.S,
)
"""A number, and what stands behind it."""
_IN_BRACKETS = re.compile(r"\s*+[$€£¥₪]?\s?\(")
_BESIDE_NUMBERS = re.compile(
    r"|[(*†‡\[].*|[°%]\S*|(?!.*\b(?:st|nd|rd|th|or|and|to|plus|up|max|min|more|less)\b)[^\W\d_].*",
    re.S | re.I,
)
"""What may stand behind a number: nothing, a footnote, a unit; not what makes it an ordinal or a bound."""
_PARTS = ("year", "quarter", "month", "weekday")
DATE_PART = re.compile(rf"(?P<name>.+) by (?P<part>{'|'.join(_PARTS)})s?", re.I | re.S)
"""The name of a part of a column of dates."""
_MAX_SAMPLED = 200
"""Different values from which the kind of a column is inferred."""


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column of a table."""

    name: str
    kind: Kind
    cells: Sequence[str | None]
    values: Sequence[str]
    numbers: dict[str, int | float] = field(default_factory=dict)
    unit: str = ""
    dates: dict[str, tuple[str, str]] = field(default_factory=dict)
    reading: Dates | None = None
    hours: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def unread(self) -> frozenset[str]:
        """Cells that have a value which is not read as those of the column's kind are."""
        if self.kind == "text":
            return frozenset()
        read: Container[str] = self.hours if self.kind == "hours" else self.dates
        read = self.numbers if self.kind == "number" else read
        return frozenset(cell for cell in self.values if cell not in read and not is_blank(cell))


def typed_columns(rows: Rows) -> tuple[TypedColumn, ...]:
    """Every field of rows, in order.

    Example:
        >>> from pearl.documents.rows import Row
        >>> rows = Rows((Row("a", {"City": "Haifa", "Fee": "120"}), Row("b", {"City": "Eilat"})))
        >>> [(column.name, column.kind, column.cells) for column in typed_columns(rows)]
        [('City', 'text', ['Haifa', 'Eilat']), ('Fee', 'number', ['120', ''])]
    """
    return tuple(
        _column(name, [row.fields.get(name, "") for row in rows.rows]) for name in rows.names
    )


def _column(name: str, cells: list[str | None]) -> TypedColumn:
    values = [value for value in dict.fromkeys(cells) if value and value.strip()]
    stated = [value for value in values if not is_blank(value)]
    if stated and _are_mostly_hours(stated):
        read = {value: read_hours(value) for value in values}
        hours = {value: found for value, found in read.items() if found is not None}
        notes = _unread(name, "opening hours", values, hours)
        return TypedColumn(name, "hours", cells, values, hours=hours, notes=notes)
    if stated and _are_mostly_numbers(stated):
        return _of_numbers(name, cells, values)
    if stated and are_mostly("date", stated):
        found_dates = read_dates(values)
        dates = {
            value: (period.first.isoformat(), period.last.isoformat())
            for value, period in zip(values, found_dates.periods, strict=True)
            if period
        }
        notes = (found_dates.note,) if found_dates.note else ()
        return TypedColumn(
            name, "date", cells, values, dates=dates, reading=found_dates,
            notes=(*notes, *_unread(name, "dates", values, dates)),
        )  # fmt: skip
    return TypedColumn(name, "text", cells, values)


def _of_numbers(name: str, cells: list[str | None], values: list[str]) -> TypedColumn:
    found = _read_numbers(values)
    n_cells = Counter(cells)
    units: Counter[str] = Counter()
    for value, (_, own) in found.items():
        units[own] += n_cells[value]
    unit = units.most_common(1)[0][0] if units else ""
    first = next((own for _, own in found.values()), "")
    if not unit and first in CURRENCIES and not units.keys() - {"", first}:
        unit = first  # accounts have the sign in the first row and in that of the total
    # Of a number among percentages it is open whether it is a share or a percentage.
    alike = (unit,) if unit == "%" else ("", unit)
    unit = unit_of(f"1 {unit}", 0, 1)  # or a word that is none
    numbers = {value: number for value, (number, own) in found.items() if own in alike}
    notes = (
        [f"numbers in {name} that have no unit are read as {unit}"]
        if unit and "" in alike and any(not own for _, own in found.values())
        else []
    )
    return TypedColumn(
        name, "number", cells, values, numbers=numbers, unit=unit,
        notes=(*notes, *_unread(name, f"numbers in {unit}" if unit else "numbers", values, numbers)),
    )  # fmt: skip


def _read_numbers(values: Sequence[str]) -> dict[str, tuple[int | float, str]]:
    """Value → number and unit, of the values that are a number alone, or with what stands behind many of them."""
    behind = {
        value: match[1].strip().casefold().removesuffix("s")
        for value in values
        if (match := _NUMBER_FIRST.fullmatch(value))
    }
    forms = Counter(behind.values())
    common = {form for form, n in forms.items() if n >= max(2, len(values) / 10)}
    read = {}
    for value, quantity in zip(values, read_quantities(values), strict=True):
        form = behind.get(value)
        if quantity is not None and _is_plain_number(value, form, quantity, common):
            number, unit = _plain(quantity)
            is_word = form and form[0].isalpha() and not (unit or quantity.scale)
            read[value] = number, form if form and is_word else unit
    return read


def _is_plain_number(
    value: str, behind: str | None, quantity: Quantity, common: Container[str] = ()
) -> bool:
    if behind is None:
        return _IN_BRACKETS.match(value) is not None
    is_known = " " not in behind and (bool(quantity.unit) or quantity.scale > 0)
    is_known |= not behind[:1].isalpha()
    return _BESIDE_NUMBERS.fullmatch(behind) is not None and (is_known or behind in common)


def _are_mostly_hours(values: Sequence[str]) -> bool:
    sample = values[:_MAX_SAMPLED]
    return 2 * sum(read_hours(value) is not None for value in sample) > len(sample)


def _are_mostly_numbers(values: Sequence[str]) -> bool:
    """Whether more than half are a number, alone or with what stands behind many of them.

    `Clinic 58` and `12 Herzl Street` have numbers, and are none.
    """
    if any(map(_is_code, values)):
        return False
    sample = values[:_MAX_SAMPLED]
    return 2 * len(_read_numbers(sample)) > len(sample)


def number_in(text: str) -> tuple[int | float, str] | None:
    """The number that a text is and its unit; None if it is none, or not surely one.

    Example:
        >>> number_in("$ (1,315)"), number_in("12.5%"), number_in("much")
        ((-1315, '$'), (12.5, '%'), None)
    """
    found, match = read_quantity(text), _NUMBER_FIRST.fullmatch(text)
    is_number = found and _is_plain_number(text, match and match[1].strip(), found)
    return _plain(found) if found and is_number else None


def _plain(quantity: Quantity) -> tuple[int | float, str]:
    """A number as it is compared: what scale words say is multiplied, a percentage is not."""
    number = quantity.value if quantity.unit == "%" else quantity.amount
    return int(number) if number == number.to_integral_value() else float(number), quantity.unit


def _is_code(value: str) -> bool:
    """Whether it is a number of digits that is no quantity: 0048, an area code."""
    value = value.strip()
    return len(value) > 1 and value[0] == "0" and value.isdigit()


def _unread(name: str, what: str, values: Sequence[str], read: Container[str]) -> tuple[str, ...]:
    left = [value for value in values if value not in read]
    if not left:
        return ()
    shown = ", ".join(repr(value[:40]) for value in left[:3])
    return (f"{counted(len(left), 'different value')} of {name} not read as {what}: {shown}",)


def date_parts(column: TypedColumn) -> list[TypedColumn]:
    """Of a column of dates `NAME by year`, `quarter`, `month` and `weekday`; else none.

    A period of which only a part is in one of these has it undecided, as a cell that is no date has.
    """
    if column.kind != "date" or column.reading is None:
        return []
    periods = dict(zip(column.values, column.reading.periods, strict=True))
    parts = []
    for part in _PARTS:
        key = {
            value: date_part(period, part) if period else None for value, period in periods.items()
        }
        cells = [key.get(cell) if cell and cell.strip() else cell for cell in column.cells]
        values = list(dict.fromkeys(value for value in key.values() if value))
        parts.append(
            TypedColumn(f"{column.name} by {part}", "text", cells, values, notes=column.notes)
        )
    return parts


def folded(column: TypedColumn) -> list[str | None]:
    """The cells as texts are compared."""
    form = {cell: cell if cell is None else fold(cell) for cell in dict.fromkeys(column.cells)}
    return [form[cell] for cell in column.cells]
