"""SQL that a model wrote → its result, run by `sql_child` in a process of its own."""

from __future__ import annotations

import json
import os
import re
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

from pearl.errors import did_you_mean
from pearl.tables.columns import TypedColumn
from pearl.tables.query_table import QueryTable
from pearl.tables.running import Line
from pearl.tables.sql_child import GRACE_SECONDS, MAX_CELL, READY
from pearl.tables.sql_engines import SqlEngine, check_engine

__all__ = [
    "ROW",
    "SqlError",
    "SqlLimits",
    "SqlResult",
    "SqlTable",
    "schema_sql",
]


ROW = "row_id"
"""The column of the rows' places, from 0: SQL that selects it has its lines cited."""

_MAX_CELL = 15_000
"""Characters of a cell that SQL sees."""
_BUSY = 10
"""Seconds that may pass for one of processor time, on a machine that has other work."""
_OUT_OF_TIME = -signal.SIGPROF if hasattr(signal, "SIGPROF") else None
_START_SECONDS = 30.0
"""Until the table is there; of a few thousand rows it takes 0.1 to 0.5 s."""


class SqlError(ValueError):
    """SQL was refused or failed; the message is for whoever wrote it."""


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """What one statement may take.

    Attributes:
        seconds: Processor time, from when its process has the table, so that what a statement may do does not
            depend on what else a machine does; it is killed at ten times as many seconds in any case.
        memory_bytes: Address space of its process, beside the engine and the table.
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
        limits: What one statement may take.
        engine: `sqlite`; or `duckdb` (extra `duckdb`), which has medians, quantiles, regular
            expressions and dates. Its columns have one type each: what is no number in a column of
            numbers, or no day in one of dates, is NULL there.

    Raises:
        UsageError: There is no such engine, or its extra is not installed.
        SqlError: SQL cannot tell the columns apart.

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

    def __init__(
        self, table: QueryTable, limits: SqlLimits | None = None, engine: SqlEngine = "sqlite"
    ) -> None:
        check_engine(engine)
        self.table = table
        self.limits = limits or SqlLimits()
        self._engine = import_module(f"pearl.tables.{engine}_engine")
        self._data = self._engine.dumped(table.name, _columns(table))

    def run(self, sql: str) -> SqlResult:
        """Run one statement.

        Raises:
            SqlError: It is no single SELECT of this table, it is wrong, or it takes too much.
        """
        if "\0" in sql or not sql.strip():
            raise SqlError("there is no SQL statement")
        request = {
            "sql": sql,
            "table": self.table.name,
            "n_columns": len(self.table.columns) + 1,
            "seconds": self.limits.seconds,
            "max_rows": self.limits.max_rows,
            "memory_bytes": self.limits.memory_bytes,
        }
        reply = _ask(self._engine, request, self._data)
        if "refused" in reply:
            raise SqlError(self._told(reply))
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
            if is_there and column is not None and self._shown(column, row) != value:
                is_there = False  # the statement made the number up, or the value
        return Line(cells, (row,) if is_there else ())

    def _shown(self, column: TypedColumn, row: int) -> str | int | float | None:
        """A cell as a result has it."""
        value = self._engine.stored(column.kind, _stored(column, column.cells[row]))
        return value[:MAX_CELL] if isinstance(value, str) else value

    def _told(self, reply: Mapping[str, str]) -> str:
        """Why there is no result, for whoever wrote the statement, with what there is instead."""
        what = reply.get("what", "")
        match reply["refused"]:
            case "time":
                return f"it was stopped after {self.limits.seconds:g} s; ask for less at once"
            case "start":
                return f"the table could not be read within {_START_SECONDS:g} s"
            case "memory":
                return "it takes more memory than it may; ask for less at once"
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
                return f"there is no column {what!r}; {help}the table has: {', '.join(names)}"
            case "table":
                return f"no such table: {what}; the table is called {self.table.name}"
            case _:
                return what


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


def _columns(table: QueryTable) -> list[tuple[str, str, list[str | int | float | None]]]:
    """The numbers of the rows, and the columns: name, kind and cells of each."""
    names = [ROW, *(column.name for column in table.columns)]
    folded = {name.casefold() for name in names}
    if len(folded) < len(names):
        raise SqlError(
            f"SQL cannot tell the columns apart, or one is called {ROW}: {', '.join(names[1:])}"
        )
    columns: list[tuple[str, str, list[str | int | float | None]]] = [
        (ROW, "number", list(range(len(table))))
    ]
    for column in table.columns:
        known = {cell: _stored(column, cell) for cell in dict.fromkeys(column.cells)}
        columns.append((column.name, column.kind, [known[cell] for cell in column.cells]))
    return columns


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


def _text(value: Any) -> str | None:
    """A value of SQL as a cell; NULL is an empty one."""
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
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
