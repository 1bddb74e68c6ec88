"""SQL that a model wrote → its result, run by `sql_child` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from pearl.documents.table.quantities import is_blank
from pearl.errors import did_you_mean
from pearl.errors.escaping import counted
from pearl.tables import SqlEngine, check_engine
from pearl.tables.columns import TypedColumn, storable
from pearl.tables.query_table import QueryTable
from pearl.tables.running import Line
from pearl.tables.sql_child import GRACE_SECONDS, MAX_CELL, READY
from pearl.tables.statement import dependence, in_sql, sqlite_dialect, with_typed_values

ROW = "row_id"  # the column of the rows' places, from 0: SQL that selects it has its lines cited

_MAX_CELL = 15_000
"""Maximum characters of a cell in SQL: one operation on a longer cell cannot be stopped."""
_MAX_STATEMENT = 10_000

Stored = str | int | float | None
_BUSY = 10  # wall-clock seconds allowed per second of processor time, on a busy machine
_OUT_OF_TIME = -signal.SIGPROF if hasattr(signal, "SIGPROF") else None
_START_SECONDS = 30.0  # time limit for loading the table; a few thousand rows take 0.1 to 0.5 s


class SqlError(ValueError):
    """SQL was refused or failed; the message is for whoever wrote it."""


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Limits of one statement."""

    seconds: float = 2.0
    memory_bytes: int = 512_000_000
    max_rows: int = 1_000


@dataclass(frozen=True, slots=True)
class SqlResult:
    """The result of a statement."""

    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    is_cut: bool
    undecided: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


class SqlTable:
    """A table as SQL sees it."""

    def __init__(
        self, table: QueryTable, limits: SqlLimits | None = None, engine: SqlEngine = "sqlite"
    ) -> None:
        check_engine(engine)
        self.table = table
        self.limits = limits or SqlLimits()
        self._engine = import_module(f"pearl.tables.{engine}_engine")
        self._dialect = sqlite_dialect if engine == "sqlite" else str
        self._columns = {column.name.casefold(): column for column in table.columns}
        self._stored = {column.name: _stored(column) for column in table.columns}
        self._unread = {
            name: {
                row: cell for row, cell in enumerate(column.cells) if self._is_unread(column, cell)
            }
            for name, column in self._columns.items()
        }
        self._data = self._engine.dumped(table.name, self._dumped())

    def _is_unread(self, column: TypedColumn, cell: str | None) -> bool:
        return cell is None or bool(cell.strip() and self._stored[column.name][cell] is None)

    def _dumped(self) -> list[tuple[str, str, list[Stored]]]:
        """The numbers of the rows, and the columns: name, kind and cells of each."""
        names = [ROW, *(column.name for column in self.table.columns)]
        if len({name.casefold() for name in names}) < len(names):
            raise SqlError(
                f"SQL cannot tell the columns apart, or one is called {ROW}: {', '.join(names[1:])}"
            )
        columns: list[tuple[str, str, list[Stored]]] = [(ROW, "number", [*range(len(self.table))])]
        for column in self.table.columns:
            stored = self._stored[column.name]
            columns.append((column.name, column.kind, [stored[cell] for cell in column.cells]))
        return columns

    def run(self, sql: str) -> SqlResult:
        """Run one statement."""
        if "\0" in sql or not sql.strip():
            raise SqlError("the SQL statement is empty")
        if len(sql) > _MAX_STATEMENT:
            raise SqlError(f"the statement has more than {_MAX_STATEMENT:,} characters")
        try:
            sql = with_typed_values(sql, self._columns)
        except ValueError as error:
            raise SqlError(str(error)) from error
        reply = self._ask(sql, self.limits.max_rows)
        columns: list[str] = [in_sql(name) for name in reply["columns"]]
        at = columns.index(ROW) if ROW in columns else None
        undecided, notes = self._undecided(sql)
        lines = [self._line(columns, at, values) for values in reply["rows"]]
        return SqlResult(
            tuple(name for i, name in enumerate(columns) if i != at),
            tuple(line for line in lines if undecided.isdisjoint(line.rows)),
            bool(reply["is_cut"]),
            tuple(sorted(undecided)),
            notes,
        )

    def _ask(self, sql: str, max_rows: int) -> dict[str, Any]:
        request = {
            "sql": self._dialect(sql),
            "table": self.table.name,
            "n_columns": len(self.table.columns) + 1,
            "seconds": self.limits.seconds,
            "max_rows": max_rows,
            "memory_bytes": self.limits.memory_bytes,
        }
        reply = _ask(self._engine, request, self._data)
        if "refused" in reply:
            raise SqlError(self._told(reply))
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
                f"of {counted(len(compared), 'row')} it is undecided whether they meet the conditions"
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
                    row = None  # the statement made the number up, or the value
                    break
                if column is not None:
                    cells[i] = column.cells[row]
        else:
            row = None
        if row is None and any(len(str(value)) > MAX_CELL for value in values):
            raise SqlError(
                f"a cell of the result has more than {MAX_CELL:,} characters; select {ROW} with the columns"
            )
        shown = tuple(cell for i, cell in enumerate(cells) if i != at)
        return Line(shown, () if row is None else (row,))

    def _shown(self, column: TypedColumn, row: int) -> Stored:
        """A cell as it appears in a result."""
        value = self._stored[column.name][column.cells[row]]
        return value[: MAX_CELL + 1] if isinstance(value, str) else value

    def _told(self, reply: Mapping[str, str]) -> str:
        """The message for a refused statement, with alternatives."""
        what = reply.get("what", "")
        match reply["refused"]:
            case "time":
                return f"it was stopped after {self.limits.seconds:g} s; ask for less at once"
            case "text":
                return (
                    "a text that is no number is added, converted to a number or compared with one"
                )
            case "start":
                return f"the table could not be read within {_START_SECONDS:g} s"
            case "memory":
                return "it takes more memory than it may; ask for less at once"
            case "length":
                return "the result is too long; ask for less at once"
            case "access":
                return f"only the table {self.table.name} may be read ({what})"
            case "function":
                return f"there is no function {what} here"
            case "statement":
                return "only one SELECT is allowed: nothing is written, attached or set"
            case "column":
                names = [column.name for column in self.table.columns]
                meant = did_you_mean(what, names)
                help = f'did you mean "{meant}"? ' if meant else ""
                return f"there is no column {what!r}; {help}the table has: {', '.join(names)}; texts stand in single quotes"
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
        return storable(column.numbers.get(cell))
    if column.kind == "date":
        first, last = column.dates.get(cell, ("", None))
        return first if first == last else None
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


def _ask(engine: ModuleType, request: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Run the child: without environment, in no folder of ours, killed when its time is over."""
    child = find_spec("pearl.tables.sql_child")
    assert child
    assert child.origin
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", child.origin, str(engine.__file__), *engine.folders()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
        cwd=os.path.abspath(os.sep),  # noqa: PTH100 - the root of any system
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        try:
            with _killing(process, _START_SECONDS) as too_slow:
                process.stdin.write(json.dumps(request).encode() + b"\n" + data)
                process.stdin.close()
                process.stdout.read(len(READY))
            with _killing(process, _BUSY * request["seconds"] + GRACE_SECONDS) as late:
                out = process.stdout.read()
                errors = process.stderr.read()
                process.wait()
        except BrokenPipeError:  # it ended before it had read the table
            raise RuntimeError(process.stderr.read().decode(errors="replace")) from None
        finally:
            process.kill()
    if too_slow.is_set():
        return {"refused": "start"}
    if late.is_set() or process.returncode == _OUT_OF_TIME:
        return {"refused": "time"}
    if process.returncode:
        if b"MemoryError" not in errors and process.returncode == 1:
            raise RuntimeError(errors.decode(errors="replace"))  # a bug of the child
        return {"refused": "memory"}
    reply: dict[str, Any] = json.loads(out)
    return reply


@contextmanager
def _killing(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """Kill a process that takes longer than the block may; the event tells whether it did."""
    late = threading.Event()

    def kill() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
