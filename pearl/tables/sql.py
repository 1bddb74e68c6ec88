"""SQL that a model wrote → its result, run by `sql_child` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pearl.documents.table.quantities import is_blank
from pearl.errors import did_you_mean
from pearl.errors.escaping import counted
from pearl.tables import SqlEngine, check_engine
from pearl.tables.columns import TypedColumn
from pearl.tables.query_table import QueryTable
from pearl.tables.running import Answer, Line
from pearl.tables.specification import QueryError
from pearl.tables.statement import dependence, in_sql, sqlite_dialect, with_typed_values

ROW = "row_id"  # the column of row numbers from 0; lines that select it cite their rows

_MAX_CELL = 15_000
"""Maximum characters of a cell in SQL: one operation on a longer cell cannot be stopped."""
_MAX_STATEMENT = 10_000

_CHILD = Path(__file__).with_name("sql_child.py")

Stored = str | int | float | None
Columns = list[tuple[str, str, list[Stored]]]  # name, kind and cells of each column
_MAX_SHOWN = 4_000  # maximum characters of a result cell; one more is sent to mark a longer cell
_GRACE = 0.25  # seconds before a statement is killed: SQLite stops most by itself, with a message
_BUSY = 10  # wall-clock seconds allowed per second of processor time, on a busy machine
_OUT_OF_TIME = -signal.SIGPROF if hasattr(signal, "SIGPROF") else None
_START_SECONDS = 30.0  # time limit for loading the table; a few thousand rows take 0.1 to 0.5 s


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Limits of one statement."""

    seconds: float = 2.0
    memory_bytes: int = 512_000_000
    max_rows: int = 1_000


class SqlTable:
    """A table as SQL sees it."""

    def __init__(
        self, table: QueryTable, limits: SqlLimits | None = None, engine: SqlEngine = "sqlite"
    ) -> None:
        check_engine(engine)
        self.table = table
        self.limits = limits or SqlLimits()
        self._engine = engine
        self._columns = {column.name.casefold(): column for column in table.columns}
        self._stored = {column.name: _stored(column) for column in table.columns}
        self._unread = {
            name: {
                row: cell for row, cell in enumerate(column.cells) if self._is_unread(column, cell)
            }
            for name, column in self._columns.items()
        }
        write = _sqlite_data if engine == "sqlite" else _duckdb_data
        self._data = write(table.name, self._stored_columns())

    def _is_unread(self, column: TypedColumn, cell: str | None) -> bool:
        return cell is None or bool(cell.strip() and self._stored[column.name][cell] is None)

    def _stored_columns(self) -> Columns:
        """The numbers of the rows, and the columns."""
        names = [ROW, *(column.name for column in self.table.columns)]
        if len({name.casefold() for name in names}) < len(names):
            raise QueryError(
                f"SQL cannot tell the columns apart, or one is called {ROW}: {', '.join(names[1:])}"
            )
        columns: Columns = [(ROW, "number", [*range(len(self.table))])]
        for column in self.table.columns:
            stored = self._stored[column.name]
            columns.append((column.name, column.kind, [stored[cell] for cell in column.cells]))
        return columns

    def run(self, sql: str) -> Answer:
        """Run one statement."""
        if "\0" in sql or not sql.strip():
            raise QueryError("the SQL statement is empty")
        if len(sql) > _MAX_STATEMENT:
            raise QueryError(f"the statement has more than {_MAX_STATEMENT:,} characters")
        written, sql = sql, with_typed_values(sql, self._columns)
        reply = self._ask(sql, self.limits.max_rows)
        if reply["is_cut"]:
            most = self.limits.max_rows
            raise QueryError(f"the statement returns more than {most:,} lines; narrow it down")
        columns: list[str] = [in_sql(name) for name in reply["columns"]]
        at = columns.index(ROW) if ROW in columns else None
        undecided, notes = self._undecided(sql)
        lines = [self._line(columns, at, values) for values in reply["rows"]]
        lines = [line for line in lines if undecided.isdisjoint(line.rows)]
        shown = tuple(name for i, name in enumerate(columns) if i != at)
        return Answer(written, shown, tuple(lines), len(lines), tuple(sorted(undecided)), notes)

    def _ask(self, sql: str, max_rows: int) -> dict[str, Any]:
        """Run a child without environment variables, outside the project's folders, and kill it after its time limit."""
        # imported on use: most commands start no child process
        from pearl.documents.confinement import Child

        request = {
            "table": self.table.name,
            "n_columns": len(self.table.columns) + 1,
            "seconds": self.limits.seconds,
            "grace_seconds": _GRACE,
            "memory_bytes": self.limits.memory_bytes,
            "max_cell": _MAX_SHOWN,
        }
        package = find_spec("duckdb") if self._engine == "duckdb" else None
        folders = [str(Path(package.origin).parents[1])] if package and package.origin else []
        env = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        child = Child(["-I", "-S", "-B", str(_CHILD), self._engine, *folders], env)
        try:
            if not child.ask(request, self._data, _START_SECONDS):
                if child.is_late:
                    raise QueryError(f"the table could not be read within {_START_SECONDS:g} s")
                raise RuntimeError(child.exit()[1])
            if self._engine == "sqlite":
                sql = sqlite_dialect(sql)
            seconds = _BUSY * self.limits.seconds + _GRACE
            answer = child.ask({"sql": sql, "max_rows": max_rows}, b"", seconds)
            if answer:
                reply = answer[0]
            else:
                is_late = child.is_late or child.exit()[0] == _OUT_OF_TIME
                reply = {"refused": "time" if is_late else "memory"}
        finally:
            child.end()
        if "failed" in reply:
            raise RuntimeError(reply["failed"])
        if "refused" in reply:
            raise QueryError(self._message(reply["refused"], reply.get("what", "")))
        return reply

    def _undecided(self, sql: str) -> tuple[set[int], tuple[str, ...]]:
        """Rows with an unreadable cell that may change the result, and notes on such cells."""
        unread = {name for name, cells in self._unread.items() if cells}
        read = dependence(sql, self._columns, self.table.name, ROW, unread)
        named = [name for name in self._columns if name in read.compared | read.used]
        notes = [note for name in named for note in self._columns[name].notes]
        notes += [
            f"SQL does not see cells of {column.name} with more than {_MAX_CELL:,} characters"
            for name in named
            if (column := self._columns[name]).kind == "text" and any(self._unread[name].values())
        ]
        used = {
            name: {
                row for row, cell in self._unread[name].items()
                if read.is_of_all or cell is None or not is_blank(cell)
            }
            for name in named if name in read.used
        }  # fmt: skip
        rows = {row for cells in used.values() for row in cells}
        compared = {row for name in read.compared for row in self._unread[name]}
        if read.condition and (rows or compared):
            reply = self._ask(read.condition, len(self.table))
            rows &= {row for row, _ in reply["rows"]}
            compared &= {row for row, is_open in reply["rows"] if is_open}
        if compared:
            notes.append(
                f"it is undecided for {counted(len(compared), 'row')} whether the conditions are met"
            )
        for name, cells in used.items():
            if left := cells & rows - compared:
                notes.append(
                    f"{counted(len(left), 'cell')} of {self._columns[name].name} cannot be read"
                )
        return rows | compared, tuple(dict.fromkeys((*notes, *self.table.notes)))

    def _line(self, columns: Sequence[str], at: int | None, values: list[Any]) -> Line:
        cells = [_text(value) for value in values]
        row = None if at is None else values[at]
        if isinstance(row, int) and 0 <= row < len(self.table):
            for i, (name, value) in enumerate(zip(columns, values, strict=True)):
                column = self._columns.get(name.casefold())
                if column is not None and self._shown(column, row) != value:
                    row = None  # the statement computed the number or the value
                    break
                if column is not None:
                    cells[i] = column.cells[row]
        else:
            row = None
        if row is None and any(len(str(value)) > _MAX_SHOWN for value in values):
            raise QueryError(
                f"a cell of the result has more than {_MAX_SHOWN:,} characters; select {ROW} with the columns"
            )
        shown = tuple(cell for i, cell in enumerate(cells) if i != at)
        return Line(shown, () if row is None else (row,))

    def _shown(self, column: TypedColumn, row: int) -> Stored:
        """A cell as a result displays it."""
        value = self._stored[column.name][column.cells[row]]
        return value[: _MAX_SHOWN + 1] if isinstance(value, str) else value

    def _message(self, refused: str, what: str) -> str:
        """The message for a refused statement, with alternatives."""
        match refused:
            case "time":
                return f"it was stopped after {self.limits.seconds:g} s; select less"
            case "text":
                return "the statement adds a text that is not a number, converts it or compares it with a number"
            case "memory":
                return "it needs more memory than the limit; select less"
            case "length":
                return "the result is too long; select less"
            case "access":
                return f"only the table {self.table.name} may be read ({what})"
            case "function":
                return f"the function {what} is not available"
            case "statement":
                return "only one SELECT is allowed: nothing is written, attached or set"
            case "column":
                names = [column.name for column in self.table.columns]
                meant = did_you_mean(what, names)
                help = f'did you mean "{meant}"? ' if meant else ""
                return f"the table has no column {what!r}; {help}it has: {', '.join(names)}; write texts in single quotes"
            case "table":
                return f"no such table: {what}; the table is called {self.table.name}"
            case _:
                return what


def _stored(column: TypedColumn) -> dict[str | None, Stored]:
    """Map cells to their values in SQL."""
    cells: dict[str | None, Stored] = {None: None}
    for cell in column.cells:
        if cell is not None and cell not in cells:
            cells[cell] = _typed(column, cell) if cell.strip() else None
    return cells


def _typed(column: TypedColumn, cell: str) -> Stored:
    if column.kind == "number":
        number: Stored = column.parsed.get(cell)
        is_large = isinstance(number, int) and abs(number) >= 2**63  # for SQLite
        return float(number) if number is not None and is_large else number
    if column.kind == "date":
        period = column.parsed.get(cell)
        return period.first.isoformat() if period and period.first == period.last else None
    return cell.replace("\0", "") if len(cell) <= _MAX_CELL else None


def _text(value: Any) -> str | None:
    """A value of SQL as a cell; NULL becomes an empty cell."""
    if value is None:
        return ""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        exact, short = repr(value), f"{value:.15g}"
        return (
            short if len(short) < len(exact) - 2 else exact
        )  # 7.300000000000001 is a sum of decimals
    return str(value)


def _sqlite_data(table: str, columns: Columns) -> bytes:
    """The table as a database."""
    import sqlite3  # imported on use: most commands run no SQL

    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        defined = [f"{ROW} INTEGER PRIMARY KEY"]
        for name, kind, _ in columns[1:]:
            type_ = "NUMERIC" if kind == "number" else "TEXT COLLATE NOCASE"
            defined.append(f"{_quoted(name)} {type_}")
        connection.execute(f"CREATE TABLE {_quoted(table)} ({', '.join(defined)})")
        places = ", ".join("?" * len(columns))
        connection.execute("BEGIN")
        cells = zip(*(cells for _, _, cells in columns), strict=True)
        connection.executemany(f"INSERT INTO {_quoted(table)} VALUES ({places})", cells)
        connection.execute("COMMIT")
        return connection.serialize()


def _duckdb_data(table: str, columns: Columns) -> bytes:
    """The table as JSON, a list for each column, which DuckDB reads by itself."""
    typed = []
    for name, kind, cells in columns:
        is_whole = all(isinstance(cell, int) for cell in cells if cell is not None)
        type_ = {"number": "BIGINT" if is_whole else "DOUBLE", "date": "DATE"}.get(kind, "VARCHAR")
        typed.append((name, type_, json.dumps(cells, ensure_ascii=False)))
    return json.dumps({"table": table, "columns": typed}, ensure_ascii=False).encode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'
