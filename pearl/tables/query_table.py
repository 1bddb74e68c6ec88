"""A table in memory for queries: typed columns, and a database of their values.

The database holds, for each column `i`, the compared form of its cells (`f0`, `f1`, ...), those of texts
as words (`w0`), too, their numbers (`n0`), the first and the last day of their dates (`a0`, `z0`), and for opening hours whether they
can be read (`r0`) and their intervals in a table (`h0`). What is undecided, or cannot be read, is NULL, so that SQL's logic of
three values carries it through `and`, `or` and `not`.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property
from itertools import chain
from threading import Lock

from pearl.documents.rows import Rows
from pearl.tables.columns import (
    Kind,
    TypedColumn,
    date_parts,
    folded,
    storable,
    typed_columns,
    word_form,
)

_FORMS: Mapping[Kind, str] = {"text": "fw", "number": "fn", "date": "faz", "hours": "fwr"}
"""The columns of the database for a column of each kind."""
_MAX_FORMS = 2_000  # maximum columns of a table in SQLite


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
        names = {column.name for column in self.columns}
        parts = (part for column in self.columns for part in date_parts(column))
        self._queried = (*self.columns, *(part for part in parts if part.name not in names))
        self._numbers = {column.name: i for i, column in enumerate(self._queried)}
        if not self.columns:
            raise ValueError("there is no table: the rows have no fields")
        if sum(len(_FORMS[column.kind]) for column in self._queried) >= _MAX_FORMS:
            raise ValueError(f"the table has {len(self.columns):,} columns, too many for a query")
        self.lock = Lock()
        """Held while `database` is used: its cursors share one connection."""

    def __len__(self) -> int:
        return len(self.rows.rows)

    def number(self, name: str) -> int:
        """The number of a column in the database; `Opened by month` is one where `Opened` is of dates."""
        return self._numbers[name]

    def column(self, name: str) -> TypedColumn | None:
        """The column or the part of a date that has exactly this name; None if there is none."""
        return self._queried[self._numbers[name]] if name in self._numbers else None

    def known(self, name: str) -> TypedColumn:
        """As `column`, for a checked name."""
        return self._queried[self._numbers[name]]

    def unread_rows(self, name: str, rows: Iterable[int]) -> set[int]:
        """Those of some rows whose cell of a column has a value that cannot be read, or is undecided."""
        column = self.known(name)
        unread = {None, *column.unread}
        return {row for row in rows if column.cells[row] in unread}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the rows that every answer leaves out."""
        n_doubtful = len(self.rows.doubtful)
        return (f"{n_doubtful:,} doubtful rows are left out",) if n_doubtful else ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, all different."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def queried_names(self) -> tuple[str, ...]:
        """The names of the columns and of the parts of dates."""
        return tuple(self._numbers)

    @cached_property
    def database(self) -> sqlite3.Connection:
        """The database of the columns' values. Only SQL of `pearl.tables.running` reaches it."""
        connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        weakref.finalize(self, connection.close)
        connection.create_aggregate("sum_of", 1, _Sum)  # type: ignore[arg-type]
        connection.create_function("words", 1, _words, deterministic=True)
        connection.create_aggregate("mean_of", 1, _Mean)  # type: ignore[arg-type]
        names: list[str] = ["id INTEGER PRIMARY KEY"]
        data: list[Iterable[object]] = [range(len(self))]
        for i, column in enumerate(self._queried):
            forms = folded(column)
            names += [f"{form}{i}" for form in _FORMS[column.kind]]
            data.append(forms)
            if "w" in _FORMS[column.kind]:
                words = {form: form if form is None else word_form(form) for form in set(forms)}
                data.append([words[form] for form in forms])
            if column.kind == "number":
                data.append([storable(column.numbers.get(cell or "")) for cell in column.cells])
            elif column.kind == "date":
                days = [column.dates.get(cell or "", (None, None)) for cell in column.cells]
                data += [[first for first, _ in days], [last for _, last in days]]
            elif column.kind == "hours":
                data.append([1 if cell in column.hours else None for cell in column.cells])
                _add_hours(connection, i, column)
        connection.execute(f"CREATE TABLE cells ({', '.join(names)})")
        places = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO cells VALUES ({places})", zip(*data, strict=True))
        for name in names[1:]:
            if name[0] in "fna":  # compared as a whole, sorted and grouped
                connection.execute(f"CREATE INDEX by_{name} ON cells ({name})")
        connection.execute("PRAGMA query_only = ON")
        return connection


def _add_hours(connection: sqlite3.Connection, i: int, column: TypedColumn) -> None:
    connection.execute(f"CREATE TABLE h{i} (id INTEGER, opens INTEGER, closes INTEGER)")
    intervals = chain.from_iterable(
        ((row, opens, closes) for opens, closes in column.hours.get(cell or "", ()))
        for row, cell in enumerate(column.cells)
    )
    connection.executemany(f"INSERT INTO h{i} VALUES (?, ?, ?)", intervals)
    connection.execute(f"CREATE INDEX i{i} ON h{i} (id, opens, closes)")


def _words(form: str | None) -> str | None:
    return form if form is None else word_form(form)


class _Sum:
    """The exact sum of decimal numbers, rounded once at the end."""

    def __init__(self) -> None:
        self.total: Decimal | int = 0
        self.n = 0

    def step(self, value: float | None) -> None:
        """Add a number; NULL is none."""
        if value is None:
            return
        self.n += 1
        exact = value if isinstance(value, int) else Decimal(repr(value))
        self.total = self.total + exact

    def finalize(self) -> int | float | None:
        """The sum; NULL of nothing."""
        return _plain(self.total) if self.n else None


class _Mean(_Sum):
    """The mean of decimal numbers."""

    def finalize(self) -> int | float | None:
        """The mean; NULL of nothing."""
        return _plain(Decimal(self.total) / self.n) if self.n else None


def _plain(number: Decimal | int) -> int | float:
    """An integer where it is one and the database can hold it, else the nearest float."""
    whole = int(number)
    return whole if whole == number and abs(whole) < 2**63 else float(number)
