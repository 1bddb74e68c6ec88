"""A program: one SQL statement over one table, in a process that can reach nothing else.

It is run on its own (`python -I -S sqlite_child.py`), reads a line of JSON and a database from
standard input, writes a line of JSON and ends. It imports the standard library only. In this order:
limits of the operating system (no file can be opened, and nothing written), SQLite's limits of
length and depth, an authorizer that allows reads of one table and functions of a list, a handler
that stops what takes too long. Source: sqlite.org/security.html. The parent kills it in the end.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
import unicodedata
from collections.abc import Callable
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

FUNCTIONS = frozenset(
    [
        "abs",
        "avg",
        "ceil",
        "ceiling",
        "char",
        "coalesce",
        "concat",
        "count",
        "cume_dist",
        "date",
        "datetime",
        "dense_rank",
        "exp",
        "first_value",
        "floor",
        "fold",
        "format",
        "glob",
        "group_concat",
        "hex",
        "ifnull",
        "iif",
        "instr",
        "julianday",
        "lag",
        "last_value",
        "lead",
        "length",
        "like",
        "ln",
        "log",
        "log10",
        "lower",
        "ltrim",
        "max",
        "min",
        "mod",
        "nth_value",
        "ntile",
        "nullif",
        "percent_rank",
        "pow",
        "power",
        "printf",
        "rank",
        "replace",
        "round",
        "row_number",
        "rtrim",
        "sign",
        "sqrt",
        "strftime",
        "string_agg",
        "substr",
        "substring",
        "sum",
        "time",
        "total",
        "trim",
        "trunc",
        "typeof",
        "unicode",
        "upper",
    ]
)
"""What SQL may call: of values, and without effects."""

_OPS_BETWEEN_CHECKS = 1_000
_LENGTH = 64_000
"""Bytes of a text while it runs: one operation on it cannot be interrupted."""
_CTE = re.compile(
    r"(\w+)\s*(?:\([^()]*\)\s*)?\bas\s*(?:(?:not\s+)?materialized\s*)?\(", re.IGNORECASE
)
"""Names that a statement may give to its own subqueries."""
MAX_CELL = 4_000
"""Characters of a cell of the result."""


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


def main() -> None:
    """Serve one request."""
    request = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    _confine(request["memory_bytes"])
    try:
        reply = _answer(request, data)
    except sqlite3.Error as error:
        # A statement that asks for several is sqlite3.Warning before Python 3.12.
        reply = {"error": str(error)}
    except sqlite3.Warning as error:
        reply = {"error": str(error)}
    except MemoryError:
        reply = {"error": "out of memory"}
    sys.stdout.write(json.dumps(reply))


def _confine(memory_bytes: int) -> None:
    """From here on no file, socket or process can be opened, and memory is bounded."""
    if resource is None:
        return
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        try:
            resource.setrlimit(kind, (most, most))
        except (ValueError, OSError):  # macOS has RLIMIT_AS and refuses it
            continue


def _answer(request: dict[str, Any], data: bytes) -> dict[str, Any]:
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    connection.deserialize(data)
    connection.create_function("fold", 1, _fold, deterministic=True)
    for pragma in (
        "query_only = ON",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "temp_store = MEMORY",
        f"hard_heap_limit = {request['memory_bytes'] // 2}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    for limit, most in _limits(request["n_columns"]).items():
        connection.setlimit(limit, most)
    connection.set_authorizer(_authorizer(request["table"], request["sql"]))
    deadline = request["deadline"]
    connection.set_progress_handler(lambda: time.time() > deadline, _OPS_BETWEEN_CHECKS)
    cursor = connection.execute(request["sql"])
    if cursor.description is None:
        return {"error": "it is no SELECT"}
    rows = cursor.fetchmany(request["max_rows"] + 1)
    return {
        "columns": [column[0] for column in cursor.description],
        "rows": [[_shown(value) for value in row] for row in rows[: request["max_rows"]]],
        "is_cut": len(rows) > request["max_rows"],
    }


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


def _fold(text: object) -> str | None:
    """As `pearl.tables.folding.fold`, nearly: without what needs a table of dashes and quotes."""
    if text is None:
        return None
    decomposed = unicodedata.normalize("NFKD", str(text))
    return " ".join(
        "".join(c for c in decomposed if not unicodedata.combining(c)).casefold().split()
    )


def _shown(value: object) -> object:
    if isinstance(value, bytes):
        value = value.hex()
    return value[:MAX_CELL] if isinstance(value, str) else value


if __name__ == "__main__":
    main()
