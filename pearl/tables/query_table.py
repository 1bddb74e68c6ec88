"""Rows that can be queried: their typed columns, and the parts of their dates as additional columns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pearl.documents.rows import Rows
from pearl.tables.columns import TypedColumn, date_parts, typed_columns

_MAX_COLUMNS = 1_000  # SQLite takes 2,000


class QueryTable:
    """Rows that can be queried."""

    def __init__(self, rows: Rows, name: str = "rows") -> None:
        if not re.fullmatch(r"(?!sqlite_)[^\W\d]\w*", name, re.I):
            raise ValueError(
                f"'{name[:60]}' cannot be the name of a table: use letters, digits and _"
            )
        self.rows = rows
        self.name = name
        self.columns: tuple[TypedColumn, ...] = typed_columns(rows)
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

    def column(self, name: str) -> TypedColumn | None:
        """The column or the part of a date that has exactly this name."""
        return self._queried.get(name)

    def known(self, name: str) -> TypedColumn:
        """As `column`, for a checked name."""
        return self._queried[name]

    def unread_rows(self, name: str, rows: Iterable[int]) -> set[int]:
        """The rows whose cell in a column cannot be read, or is undecided."""
        column = self.known(name)
        unread = {None, *column.unread}
        return {row for row in rows if column.cells[row] in unread}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the rows that every answer leaves out."""
        n_doubtful = len(self.rows.doubtful)
        return (f"{n_doubtful:,} doubtful rows are left out",) if n_doubtful else ()
