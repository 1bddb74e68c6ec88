"""Rows that can be queried: their typed columns, and the parts of their dates as additional columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from pearl.documents.rows import Rows
from pearl.documents.table import base_name
from pearl.tables.columns import TypedColumn, date_parts, extended, typed_columns
from pearl.tables.computing import computed
from pearl.tables.specification import Arithmetic, Column

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
