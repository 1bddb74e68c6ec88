"""Rows → typed columns (numbers, dates) and queryable tables."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.arithmetic import evaluation
from pearl.actions.arithmetic.program import (
    DivisionByZeroError,
    MagnitudeError,
    Operand,
    Program,
    Step,
    UnfitUnitsError,
)
from pearl.documents.comparisons import (
    MAX_SAMPLED,
    Number,
    are_mostly,
    in_one_unit,
    is_no_key,
    number_in,
    numbers_in,
)
from pearl.documents.dates import date_part, read_dates, read_period
from pearl.documents.lexicon import (
    CURRENCY_UNITS,
    KNOWN_UNITS,
    SHARES,
    begins_with_digit,
    is_year,
    unit_named,
)
from pearl.documents.numbers import CODE, is_blank, read_quantity, scale_of
from pearl.documents.rows import Rows
from pearl.documents.table import base_name
from pearl.errors.escaping import counted
from pearl.tables.specification import Arithmetic, Column, UndecidableError, columns_in

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−־"), "-")
_QUOTES = dict.fromkeys(map(ord, "‘’ʼ′`´"), "'") | dict.fromkeys(map(ord, "“”„″"), '"')


@lru_cache(maxsize=1 << 16)
def fold(text: str) -> str:
    """Normalise case, accents, dashes, quotes and blanks for comparison."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.translate(_DASHES | _QUOTES))
        text = "".join(c for c in decomposed if not unicodedata.combining(c))
    return " ".join(text.casefold().split())


def word_form(folded: str) -> str:
    """The words of a folded text, each preceded by a blank, and a final blank; `Modi'in` is one word."""
    words = re.findall(r"[^\W_]+", re.sub(r"(?<=\w)'(?=\w)", "", folded))
    return f" {' '.join(words)} "


Kind = Literal["text", "number", "date"]

PARTS = "year", "quarter", "month", "weekday"  # of dates that a query can name


class TypedColumn(Struct, frozen=True):
    """A column of a table."""

    name: str
    kind: Kind
    cells: Sequence[str | None]
    values: Sequence[str]
    parsed: Mapping[str, Any] = {}
    """Cell → its number or its `Period`, depending on the kind."""
    unit: str = ""
    scale: int = 0
    """The power of ten named in the heading or caption; numbers stay as written."""
    is_day_first: bool | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_without(self) -> Callable[[str], bool]:
        """A function that tests whether a cell has no value of the column's kind."""
        return is_no_key if self.kind == "text" else is_blank

    @property
    def unread(self) -> frozenset[str]:
        """Cells with a value that cannot be read as the column's kind."""
        if self.kind == "text":
            return frozenset()
        return frozenset(c for c in self.values if c not in self.parsed and not is_blank(c))


def typed_columns(rows: Rows, scale: int = 0) -> tuple[TypedColumn, ...]:
    """Every field of rows, in order; `scale` is the power of ten in the table's caption."""
    return tuple(
        _column(name, [row.fields.get(name, "") for row in rows.rows], scale_of(name) or scale)
        for name in rows.names
    )


def extended(column: TypedColumn, more: Sequence[str | None]) -> TypedColumn:
    """Append cells to a column; each is read by itself as the column's kind."""
    parsed = dict(column.parsed)
    for cell in set(more) - column.parsed.keys():
        if cell and column.kind == "date":
            period, _ = read_period(cell, column.is_day_first)
            parsed |= {cell: period} if period else {}
        elif cell and column.kind == "number" and (found := plain_number(cell)):
            is_alike = found.unit in ("", column.unit) and not (column.scale and _has_scale(cell))
            parsed |= {cell: found.value} if is_alike else {}
    values = [value for value in dict.fromkeys(more) if value and value.strip()]
    values = list(dict.fromkeys((*column.values, *values)))
    return replace(column, cells=[*column.cells, *more], values=values, parsed=parsed)


def _has_scale(cell: str) -> bool:
    found = read_quantity(cell)
    return found is not None and found.scale > 0


def _column(name: str, cells: list[str | None], scale: int) -> TypedColumn:
    values = [value for value in dict.fromkeys(cells) if value and value.strip()]
    stated = [value for value in values if not is_blank(value)]
    sample = stated[:MAX_SAMPLED]
    has_codes = (v.strip().isdecimal() and CODE.fullmatch(v) for v in stated)  # 0048, not 05%
    if 2 * len(_plain_numbers(sample)) > len(sample) and not any(has_codes):
        column = _of_numbers(name, cells, values, scale)
        what = f"numbers in {column.unit}" if column.unit else "numbers"
    elif stated and are_mostly("date", stated):
        dates = read_dates(values)
        periods = {v: period for v, period in zip(values, dates.periods, strict=True) if period}
        column = TypedColumn(
            name, "date", cells, values, periods, is_day_first=dates.is_day_first,
            notes=(dates.note,) if dates.note else (),
        )  # fmt: skip
        what = "dates"
    else:
        return TypedColumn(name, "text", cells, values)
    left = [value for value in values if value not in column.parsed]
    if not left:
        return column
    shown = ", ".join(repr(value[:40]) for value in left[:3])
    note = f"{counted(len(left), 'different value')} of {name} not read as {what}: {shown}"
    return replace(column, notes=(*column.notes, note))


def _of_numbers(name: str, cells: list[str | None], values: list[str], scale: int) -> TypedColumn:
    """A column of numbers with the scale of its heading; numbers with their own scale are not read."""
    found = _plain_numbers(values)
    amounts, unit = in_one_unit(found, filter(None, cells))
    has_bare = unit in KNOWN_UNITS and any(
        not number.unit and amounts[value] is not None for value, number in found.items()
    )
    notes = (f"numbers in {name} that have no unit are read as {unit}",) if has_bare else ()
    if not unit:  # the heading may have it: `Unit price (EUR)`
        head, _, inside = name.rstrip().removesuffix(")").rpartition("(")
        named = unit_named(re.sub(r"\Ain\s", "", inside.strip(), flags=re.I)) if head else ""
        unit = named if named in CURRENCY_UNITS or named in SHARES else ""
    unit = unit if unit in KNOWN_UNITS else ""  # not a word beside the numbers
    if unit not in ("", *CURRENCY_UNITS) or all(map(is_year, values)):
        scale = 0
    numbers = {
        value: amount
        for value, amount in amounts.items()
        if amount is not None and not (scale and _has_scale(value))
    }
    return TypedColumn(name, "number", cells, values, numbers, unit, scale, notes=notes)


def _plain_numbers(values: Sequence[str]) -> dict[str, Number]:
    """The values that are a number, alone or with a unit; other words beside numbers count as one if they are frequent."""
    read = numbers_in(values)
    frequent = Counter(number.unit for number in read.values() if number)
    units = {unit for unit, n in frequent.items() if n >= max(2, len(values) / 10)}
    return {
        value: number
        for value, number in read.items()
        if number and _is_plain(value, number) and number.unit in {"", *KNOWN_UNITS, *units}
    }


def _is_plain(value: str, number: Number) -> bool:
    is_negative = value.strip().casefold().startswith(("minus ", "negative "))
    # Neither Room 12 nor Day 1; a currency may stand before its number.
    return number.unit in CURRENCY_UNITS or is_negative or begins_with_digit(value)


def plain_number(text: str) -> Number | None:
    """The number in a text that is nothing else; None if it is ambiguous."""
    number = number_in(text)
    return number if number and _is_plain(text, number) else None


def date_parts(column: TypedColumn) -> list[TypedColumn]:
    """The columns `NAME by year`, `quarter`, `month` and `weekday` of a date column."""
    parts = []
    for part in PARTS if column.kind == "date" else ():
        key = {value: date_part(period, part) for value, period in column.parsed.items()}
        cells = [key.get(cell) if cell and cell.strip() else cell for cell in column.cells]
        values = list(dict.fromkeys(filter(None, map(key.get, column.values))))
        parts.append(
            TypedColumn(f"{column.name} by {part}", "text", cells, values, notes=column.notes)
        )
    return parts


def computed(arithmetic: Arithmetic, known: Callable[[str], TypedColumn]) -> TypedColumn:
    """Compute the column of a formula; a row is undecided if a number is missing or a divisor is 0."""
    columns = {name: known(name) for name in dict.fromkeys(columns_in(arithmetic))}
    names = {name: f"c{i}" for i, name in enumerate(columns)}
    steps = _steps(arithmetic, names)
    n_scales = len({column.scale for column in columns.values()})
    if n_scales > 1 and any(step.operation == "divide" for step in steps):
        raise UndecidableError(f"{arithmetic}: the columns are written in different scales")
    program = Program(tuple(steps))
    results: dict[tuple[str | None, ...], evaluation.Result | None] = {}
    rows = list(zip(*(column.cells for column in columns.values()), strict=True))
    n_by_zero = 0
    for row in dict.fromkeys(rows):
        amounts = {}
        for column, cell in zip(columns.values(), row, strict=True):
            if cell in column.parsed:
                is_share = column.unit == evaluation.PERCENT
                number = column.parsed[cell].scaleb(-2 * is_share)
                scale = None if is_share else column.scale
                amounts[names[column.name]] = evaluation.Amount(number, column.unit, scale)
        try:
            is_whole = len(amounts) == len(columns)
            results[row] = evaluation.evaluate(program, names=amounts) if is_whole else None
        except UnfitUnitsError as error:
            raise UndecidableError(f"{arithmetic}: {error}") from None
        except (DivisionByZeroError, MagnitudeError):
            results[row] = None
            n_by_zero += rows.count(row)
    unit, scale = next(((one.unit, one.scale or 0) for one in results.values() if one), ("", 0))
    number_of: dict[tuple[str | None, ...], Decimal] = {}
    for row, one in results.items():
        if one:
            value = Decimal(one.value).scaleb(2 * (one.unit == evaluation.PERCENT))
            is_whole = value == value.to_integral_value()
            number_of[row] = value if is_whole else Decimal(repr(float(value)))
    text_of = {row: evaluation.plain(number) for row, number in number_of.items()}
    # A row without any of the numbers has no value; a row with only some is undecided.
    text_of |= {
        row: "" for row in results if all(cell is not None and is_blank(cell) for cell in row)
    }
    cells = [text_of.get(row) for row in rows]
    notes = [note for column in columns.values() for note in column.notes]
    if n_left := cells.count(None):
        by_zero = f", {n_by_zero:,} of them as it divides by 0" if n_by_zero else ""
        notes.append(f"{arithmetic} has no value in {counted(n_left, 'row')}{by_zero}")
    parsed = {text_of[row]: number for row, number in number_of.items()}
    return TypedColumn(
        str(arithmetic), "number", cells, list(parsed), parsed,
        {evaluation.RATIO: "", evaluation.POINTS: evaluation.PERCENT}.get(unit, unit), scale, notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _steps(arithmetic: Arithmetic, names: dict[str, str]) -> list[Step]:
    """The steps of a formula, result last; several operands are combined from left to right."""
    steps: list[Step] = []

    def operand(one: str | Arithmetic | int | float) -> Operand:
        if isinstance(one, Arithmetic):
            return folded(one)
        if isinstance(one, str):
            return Operand("name", names[one])
        return Operand("constant", f"const_{one}", Decimal(repr(one)))

    def folded(one: Arithmetic) -> Operand:
        total, *others = map(operand, one.operands)
        for other in others:
            steps.append(Step(one.operation, (total, other)))
            total = Operand("step", f"#{len(steps) - 1}", index=len(steps) - 1)
        return total

    folded(arithmetic)
    return steps


_MAX_COLUMNS = 1_000  # Of a table that can be queried


class QueryTable:
    """Rows that can be queried, with their typed columns if these are known."""

    def __init__(self, rows: Rows, columns: tuple[TypedColumn, ...] = (), scale: int = 0) -> None:
        self.rows = rows
        self.columns = columns or typed_columns(rows, scale)
        self.names = tuple(column.name for column in self.columns)
        if not self.columns:
            raise ValueError("the rows are not a table: they have no fields")
        if len(self.columns) > _MAX_COLUMNS:
            raise ValueError(f"the table has {len(self.columns):,} columns, too many for a query")
        parts = [part for column in self.columns for part in date_parts(column)]
        # A column of the rows takes precedence over a date part of the same name.
        self._queried = {column.name: column for column in (*parts, *self.columns)}
        self.queried_names = (*self.names, *(p.name for p in parts if p.name not in self.names))

    def __len__(self) -> int:
        return len(self.rows.rows)

    def column(self, name: Column) -> TypedColumn | None:
        """The column or date part with exactly this name, or a computed column; None for none."""
        if isinstance(name, Arithmetic) and str(name) not in self._queried:
            self._queried[str(name)] = computed(name, self.known)
        return self._queried.get(str(name))

    def known(self, name: Column) -> TypedColumn:
        """As `column`, for a name that was checked."""
        column = self.column(name)
        assert column is not None
        return column

    @cached_property
    def twins(self) -> frozenset[str]:
        """The column names that stand for different columns with the same heading."""
        twins: dict[str, list[TypedColumn]] = {}
        for column in self.columns:
            twins.setdefault(base_name(column.name), []).append(column)
        return frozenset(
            column.name
            for name, columns in twins.items()
            if name in self._queried and any(one.cells != columns[0].cells for one in columns)
            for column in columns
        )

    @cached_property
    def with_others(self) -> QueryTable:
        """The table with its totals, then its other doubtful rows, appended."""
        totals = self.rows.totals
        known = {row.key for row in totals}
        doubtful = (row for row in self.rows.doubtful if row.key not in known)
        rows = (*self.rows.rows, *totals, *doubtful)
        columns = (
            extended(column, [row.fields.get(column.name, "") for row in rows[len(self) :]])
            for column in self.columns
        )
        return QueryTable(replace(self.rows, rows=rows, doubtful=(), totals=()), tuple(columns))

    def unread_rows(self, name: Column, rows: Iterable[int]) -> set[int]:
        """The rows whose cell in a column is undecided or cannot be read."""
        column = self.known(name)
        unread = {None, *column.unread}
        return {row for row in rows if column.cells[row] in unread}
