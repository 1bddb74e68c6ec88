"""SQL that a model wrote → its result, run by `sqlite_child` in a process of its own."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from pearl.errors import did_you_mean
from pearl.tables.columns import TypedColumn
from pearl.tables.query_table import QueryTable
from pearl.tables.running import Line
from pearl.tables.sqlite_child import MAX_CELL

__all__ = ["ROW", "SqlError", "SqlLimits", "SqlResult", "SqlTable", "schema_sql"]

ROW = "row_id"
"""The column of the rows' places, from 0: SQL that selects it has its lines cited."""

_MAX_CELL = 15_000
"""Characters of a cell that SQL sees."""
_GRACE_SECONDS = 0.25
"""After its time, before it is killed: the child stops most queries by itself, and says so."""


class SqlError(ValueError):
    """SQL was refused or failed; the message is for whoever wrote it."""


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """What one statement may take.

    Attributes:
        seconds: Time, from the start of its process.
        memory_bytes: Address space of its process, beside the table.
        max_rows: Lines of the result; more are left out.
    """

    seconds: float = 2.0
    memory_bytes: int = 512_000_000
    max_rows: int = 1_000


@dataclass(frozen=True, slots=True)
class SqlResult:
    """What a statement found.

    Attributes:
        columns: Of the result, without `row_id`.
        lines: With the row behind each, where the statement selected `row_id` and what the line shows
            is what that row has.
        is_cut: Whether there were more lines.
    """

    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    is_cut: bool


class SqlTable:
    """A table as SQL sees it.

    Args:
        table: The table. Numbers and days are typed, other cells are texts compared without case;
            empty cells are NULL.

    Example:
        >>> from pearl.documents.rows import Row, Rows
        >>> table = QueryTable(Rows((Row("", {"City": "Haifa", "Fee": "90"}),)), "clinics")
        >>> SqlTable(table).run('SELECT row_id, "Fee" + 1 AS more FROM clinics').lines
        (Line(cells=('91',), rows=(0,)),)
        >>> SqlTable(table).run("SELECT name FROM sqlite_master")
        Traceback (most recent call last):
            ...
        pearl.tables.sql.SqlError: only the table clinics may be read (access to sqlite_master.name is prohibited)
    """

    def __init__(self, table: QueryTable, limits: SqlLimits | None = None) -> None:
        self.table = table
        self.limits = limits or SqlLimits()
        self._data = _database(table)

    def run(self, sql: str) -> SqlResult:
        """Run one statement.

        Raises:
            SqlError: It is no single SELECT of this table, it is wrong, or it takes too much.
        """
        if "\0" in sql or not sql.strip():
            raise SqlError("there is no SQL statement")
        reply = _ask(
            {
                "sql": sql,
                "table": self.table.name,
                "n_columns": len(self.table.columns) + 1,
                "deadline": time.time() + self.limits.seconds,
                "max_rows": self.limits.max_rows,
                "memory_bytes": self.limits.memory_bytes + 4 * len(self._data),
            },
            self._data,
        )
        if "error" in reply:
            raise SqlError(self._told(str(reply["error"])))
        columns: list[str] = reply["columns"]
        at = columns.index(ROW) if ROW in columns else None
        lines = tuple(self._line(columns, at, values) for values in reply["rows"])
        shown = tuple(name for i, name in enumerate(columns) if i != at)
        return SqlResult(shown, lines, bool(reply["is_cut"]))

    def _line(self, columns: Sequence[str], at: int | None, values: list[Any]) -> Line:
        cells = tuple(_text(value) for i, value in enumerate(values) if i != at)
        if at is None:
            return Line(cells, ())
        row = values[at]
        is_there = isinstance(row, int) and 0 <= row < len(self.table)
        known = {column.name.casefold(): column for column in self.table.columns}
        for name, value in zip(columns, values, strict=True):
            column = known.get(name.casefold())
            if is_there and column is not None and _shown(column, column.cells[row]) != value:
                is_there = False  # the statement made the number up, or the value
        return Line(cells, (row,) if is_there else ())

    def _told(self, error: str) -> str:
        """An error of SQLite for whoever wrote the statement, with what there is instead."""
        if "interrupted" in error:
            return f"it was stopped after {self.limits.seconds:g} s; ask for less at once"
        if "out of memory" in error:
            return "it takes more memory than it may; ask for less at once"
        if "prohibited" in error:
            return f"only the table {self.table.name} may be read ({error})"
        if match := re.search(r"not authorized to use function: (\w+)", error):
            return f"there is no function {match[1]} here"
        if "not authorized" in error:
            return "only one SELECT is allowed: nothing is written, attached or set"
        if match := re.search(r"no such column: (?:\w+\.)?(.+)", error):
            names = [column.name for column in self.table.columns]
            meant = did_you_mean(match[1], names)
            help = f'did you mean "{meant}"? ' if meant else ""
            return f"there is no column {match[1]!r}; {help}the table has: {', '.join(names)}"
        if "no such table" in error:
            return f"{error}; the table is called {self.table.name}"
        return error


def schema_sql(table: QueryTable) -> str:
    """The statement that would make the table, as a model is shown it."""
    columns = [f"  {ROW} INTEGER", *(f"  {_quoted(c.name)} {_type(c)}" for c in table.columns)]
    return f"CREATE TABLE {_quoted(table.name)} (\n" + ",\n".join(columns) + "\n)"


def _type(column: TypedColumn) -> str:
    return {"number": "NUMERIC", "date": "DATE"}.get(column.kind, "TEXT")


def _quoted(name: str) -> str:
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return name
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def _database(table: QueryTable) -> bytes:
    """The table as a database file in memory."""
    names = [ROW, *(column.name for column in table.columns)]
    folded = {name.casefold() for name in names}
    if len(folded) < len(names):
        raise SqlError(
            f"SQL cannot tell the columns apart, or one is called {ROW}: {', '.join(names[1:])}"
        )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        columns = ", ".join(
            '"' + column.name.replace('"', '""').replace("\0", "") + '"'
            + ("" if column.kind == "number" else " TEXT COLLATE NOCASE")
            for column in table.columns
        )  # fmt: skip
        name = '"' + table.name.replace('"', '""') + '"'
        connection.execute(f"CREATE TABLE {name} ({ROW} INTEGER PRIMARY KEY, {columns})")
        cells = [
            [known[cell] for cell in column.cells]
            for column in table.columns
            for known in [{cell: _stored(column, cell) for cell in dict.fromkeys(column.cells)}]
        ]
        places = ", ".join("?" * len(names))
        connection.execute("BEGIN")
        connection.executemany(
            f"INSERT INTO {name} VALUES ({places})", zip(range(len(table)), *cells, strict=True)
        )
        connection.execute("COMMIT")
        return connection.serialize()


def _stored(column: TypedColumn, cell: str | None) -> str | int | float | None:
    """A cell as SQL sees it."""
    if cell is None or not cell.strip():
        return None
    if column.kind == "number" and cell in column.numbers:
        number = column.numbers[cell]
        return float(number) if isinstance(number, int) and abs(number) >= 2**63 else number
    if column.kind == "date" and cell in column.dates:
        first, last = column.dates[cell]
        return first if first == last else cell[:_MAX_CELL]
    return cell[:_MAX_CELL].replace("\0", "")


def _shown(column: TypedColumn, cell: str | None) -> str | int | float | None:
    """A cell as a result has it."""
    value = _stored(column, cell)
    return value[:MAX_CELL] if isinstance(value, str) else value


def _text(value: Any) -> str | None:
    """A value of SQL as a cell; NULL is an empty one."""
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return str(value)


def _ask(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Run the child: without environment, in no folder of ours, killed when its time is over."""
    child = find_spec("pearl.tables.sqlite_child")
    assert child
    assert child.origin
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", child.origin],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
        cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the root of any system
    ) as process:
        wait = request["deadline"] - time.time() + _GRACE_SECONDS
        try:
            out, errors = process.communicate(json.dumps(request).encode() + b"\n" + data, wait)
        except subprocess.TimeoutExpired:
            return {"error": "interrupted"}
        finally:
            process.kill()
    if process.returncode:
        if b"MemoryError" not in errors and process.returncode == 1:
            raise RuntimeError(errors.decode(errors="replace"))  # a bug of the child
        return {"error": "out of memory"}
    reply: dict[str, Any] = json.loads(out)
    return reply
