"""Rows that can be queried: their typed columns, and the parts of their dates as additional columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from functools import cached_property

from pearl.actions.arithmetic import evaluation
from pearl.actions.arithmetic.program import (
    DivisionByZeroError,
    MagnitudeError,
    Operand,
    Program,
    Step,
    UnfitUnitsError,
)
from pearl.documents.rows import Rows
from pearl.documents.table import base_name
from pearl.documents.table.quantities import is_blank
from pearl.errors.escaping import counted
from pearl.tables.columns import TypedColumn, date_parts, extended, typed_columns
from pearl.tables.specification import Arithmetic, Column, UndecidableError, columns_in


def computed(arithmetic: Arithmetic, known: Callable[[str], TypedColumn]) -> TypedColumn:
    """The column of a formula; a row without one of its numbers, or a division by 0, is undecided."""
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
        amounts = {
            names[column.name]: _amount(column.parsed[cell], column)
            for column, cell in zip(columns.values(), row, strict=True)
            if cell in column.parsed
        }
        try:
            is_whole = len(amounts) == len(columns)
            results[row] = evaluation.evaluate(program, names=amounts) if is_whole else None
        except UnfitUnitsError as error:
            raise UndecidableError(f"{arithmetic}: {error}") from None
        except (DivisionByZeroError, MagnitudeError):
            results[row] = None
            n_by_zero += rows.count(row)
    unit, scale = next(((one.unit, one.scale or 0) for one in results.values() if one), ("", 0))
    number_of = {row: _number(one) for row, one in results.items() if one}
    text_of = {row: evaluation.plain(Decimal(repr(number))) for row, number in number_of.items()}
    # A row with none of the numbers has no value; one that lacks some is undecided.
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


def _number(result: evaluation.Result) -> int | float:
    value = Decimal(result.value)
    value = value.scaleb(2) if result.unit == evaluation.PERCENT else value
    return int(value) if value == value.to_integral_value() else float(value)


def _amount(number: int | float, column: TypedColumn) -> evaluation.Amount:
    value = Decimal(repr(number))
    if column.unit == evaluation.PERCENT:
        return evaluation.Amount(value.scaleb(-2), evaluation.PERCENT)
    return evaluation.Amount(value, column.unit, column.scale)


def _steps(arithmetic: Arithmetic, names: dict[str, str]) -> list[Step]:
    """The steps of a formula, the last one its result; several operands are folded from left to right."""
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


_MAX_COLUMNS = 1_000


class QueryTable:
    """Rows that can be queried, with their columns if these are typed already."""

    def __init__(self, rows: Rows, columns: tuple[TypedColumn, ...] = (), scale: int = 0) -> None:
        self.rows = rows
        self.columns = columns or typed_columns(rows, scale)
        self.names = tuple(column.name for column in self.columns)
        if not self.columns:
            raise ValueError("the rows are not a table: they have no fields")
        if len(self.columns) > _MAX_COLUMNS:
            raise ValueError(f"the table has {len(self.columns):,} columns, too many for a query")
        parts = [part for column in self.columns for part in date_parts(column)]
        # A column of the rows comes before the part of a date that has the same name.
        self._queried = {column.name: column for column in (*parts, *self.columns)}
        self.queried_names = (*self.names, *(p.name for p in parts if p.name not in self.names))

    def __len__(self) -> int:
        return len(self.rows.rows)

    def column(self, name: Column) -> TypedColumn | None:
        """The column or the part of a date that has exactly this name; a computed column."""
        if isinstance(name, Arithmetic) and str(name) not in self._queried:
            self._queried[str(name)] = computed(name, self.known)
        return self._queried.get(str(name))

    def known(self, name: Column) -> TypedColumn:
        """As `column`, for a checked name."""
        column = self.column(name)
        assert column is not None
        return column

    @cached_property
    def twins(self) -> frozenset[str]:
        """The names of columns that the document calls by one name and that differ."""
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
        """The table with its totals, and then its doubtful rows that are none, as its last rows."""
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
        """The rows whose cell in a column cannot be read, or is undecided."""
        column = self.known(name)
        unread = {None, *column.unread}
        return {row for row in rows if column.cells[row] in unread}
