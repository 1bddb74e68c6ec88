"""SQL in SQLite: an engine of `sql_child`, without packages of its own.

Its locks: limits of length and depth, an authorizer that allows reads of one table and functions of a list,
a handler that stops what takes too long. Source: sqlite.org/security.html.
"""

from __future__ import annotations

import re
import sqlite3
import time
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

Stored = str | int | float | None

FUNCTIONS = frozenset(
    """
    abs as_number avg ceil ceiling char coalesce concat count cume_dist date datetime dense_rank exp
    first_value floor fold format glob group_concat hex ifnull iif instr julianday lag last_value lead
    length like ln log log10 lower ltrim max min mod nth_value ntile nullif percent_rank pow power printf
    rank replace round row_number rtrim sign sqrt strftime string_agg substr substring sum time total trim
    trunc typeof unicode upper
    """.split()  # noqa: SIM905 - one a line is sixty lines
)
"""Functions that SQL may call: of values, without side effects."""

_OPS_BETWEEN_CHECKS = 1_000
_LENGTH = 64_000  # bytes of a text while it runs: one operation on it cannot be interrupted
_CTE = re.compile(
    r"(\w+)\s*(?:\([^()]*\)\s*)?\bas\s*(?:(?:not\s+)?materialized\s*)?\(", re.IGNORECASE
)
"""Names that a statement may give to its own subqueries."""


def _limits(n_columns: int) -> dict[int, int]:
    return {
        sqlite3.SQLITE_LIMIT_LENGTH: _LENGTH,
        sqlite3.SQLITE_LIMIT_SQL_LENGTH: 10_000,
        sqlite3.SQLITE_LIMIT_COLUMN: max(100, 2 * n_columns),
        sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 60,
        sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 10,
        sqlite3.SQLITE_LIMIT_VDBE_OP: 50_000,
        sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 16,
        sqlite3.SQLITE_LIMIT_ATTACHED: 0,
        sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
        sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER: 1,
        sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
        sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
    }


def folders() -> list[str]:
    """No folders: SQLite is in the standard library."""
    return []


def dumped(table: str, columns: Sequence[tuple[str, str, Sequence[Stored]]]) -> bytes:
    """The table as a database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        (row, _, _), *others = columns
        defined = ", ".join(
            f"{_quoted(name)}{' NUMERIC' if kind == 'number' else ' TEXT COLLATE NOCASE'}"
            for name, kind, _ in others
        )
        connection.execute(f"CREATE TABLE {_quoted(table)} ({row} INTEGER PRIMARY KEY, {defined})")
        places = ", ".join("?" * len(columns))
        connection.execute("BEGIN")
        cells = zip(*(cells for _, _, cells in columns), strict=True)
        connection.executemany(f"INSERT INTO {_quoted(table)} VALUES ({places})", cells)
        connection.execute("COMMIT")
        return connection.serialize()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def opened(request: dict[str, Any], data: bytes) -> sqlite3.Connection:
    """A connection to the table that can only be read."""
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    connection.deserialize(data)
    connection.create_function("fold", 1, _fold, deterministic=True)
    connection.create_function("as_number", 1, _as_number, deterministic=True)
    connection.create_collation("NOCASE", _compared)  # that of SQLite knows the case of ASCII only
    for pragma in (
        "query_only = ON",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "temp_store = MEMORY",
        f"hard_heap_limit = {request['memory_bytes'] // 2 + len(data)}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    # The schema is parsed before the limits of statements are set: that of many columns is a long one.
    connection.execute(f"SELECT 1 FROM {_quoted(request['table'])} LIMIT 0")
    return connection


def answer(connection: sqlite3.Connection, request: dict[str, Any]) -> dict[str, Any]:
    """The result lines of a statement, or the reason of its refusal."""
    for limit, most in _limits(request["n_columns"]).items():
        connection.setlimit(limit, most)
    connection.set_authorizer(_authorizer(request["table"], request["sql"]))
    deadline = time.process_time() + request["seconds"]
    connection.set_progress_handler(lambda: time.process_time() > deadline, _OPS_BETWEEN_CHECKS)
    try:
        cursor = connection.execute(request["sql"])
        if cursor.description is None:
            return {"refused": "statement"}
        rows = cursor.fetchmany(request["max_rows"] + 1)
    except (sqlite3.Error, sqlite3.Warning) as error:
        # A statement that asks for several is sqlite3.Warning before Python 3.12.
        return _refused(str(error))
    return {
        "columns": [column[0] for column in cursor.description],
        "rows": rows[: request["max_rows"]],
        "is_cut": len(rows) > request["max_rows"],
    }


_WHY = (
    ("time", re.compile(r"interrupted")),
    ("text", re.compile(r"user-defined function raised")),
    ("memory", re.compile(r"out of memory")),
    ("access", re.compile(r"(.*prohibited.*)")),
    ("function", re.compile(r"not authorized to use function: (\w+)")),
    ("statement", re.compile(r"not authorized")),
    ("column", re.compile(r"no such column: (?:\w+\.)?(.+)")),
    ("table", re.compile(r"no such table: (.+)")),
)


def _refused(error: str) -> dict[str, str]:
    """An error of SQLite by its kind."""
    for kind, pattern in _WHY:
        if found := pattern.search(error):
            return {"refused": kind, "what": found[1] if pattern.groups else ""}
    return {"refused": "error", "what": error}


def _authorizer(table: str, sql: str) -> Callable[..., int]:
    own = {name.lower() for name in _CTE.findall(sql)}
    own = {name for name in own if not name.startswith(("sqlite_", "pragma_"))}

    def may_read(name: str | None, column: str | None, schema: str | None) -> bool:
        """Rows that are only counted have neither column nor schema here."""
        if schema is None and not column:
            return name == table or (name or "").lower() in own
        return name == table and schema == "main"

    def authorize(
        action: int, one: str | None, two: str | None, schema: str | None, _: str | None
    ) -> int:
        is_allowed = (
            action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
            or (action == sqlite3.SQLITE_READ and may_read(one, two, schema))
            or (action == sqlite3.SQLITE_FUNCTION and (two or "").lower() in FUNCTIONS)
        )
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    return authorize


def _compared(one: str, other: str) -> int:
    one, other = one.lower(), other.lower()
    return (one > other) - (one < other)


def _as_number(value: Stored) -> Stored:
    """The number that a text is; other texts are refused, which SQLite would read as 0, or as their first digits."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(r"[\d.eE+\-\s]*+", value, re.ASCII):
        raise ValueError(value)
    return float(value)


def _fold(text: object) -> str | None:
    """As `pearl.tables.columns.fold`, nearly: without what needs a table of dashes and quotes."""
    if text is None:
        return None
    decomposed = unicodedata.normalize("NFKD", str(text))
    return " ".join(
        "".join(c for c in decomposed if not unicodedata.combining(c)).casefold().split()
    )
