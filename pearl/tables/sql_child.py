"""A program: one SQL statement over one table, in a process that can reach nothing else.

It runs on its own (`python -I -S sql_child.py ENGINE [FOLDER]`) and imports the standard library only;
DuckDB is imported from FOLDER. Its parent sends the table and then the statement, each by
`pearl.documents.confinement.Child.ask`. Before the statement is read, limits of the operating
system are set: no file can be opened or written, and memory and processor time are bounded.

Each engine has locks of its own. SQLite: limits of length and depth, an authorizer that allows reads of
one table and calls of listed functions, a handler that stops long statements (source:
sqlite.org/security.html). DuckDB has no authorizer, and neither its memory limit nor an interrupt binds:
the limits of the process do. Its statement is parsed (`json_serialize_sql`), and refused unless it is one
SELECT of one table, its own subqueries and listed functions; it runs in a transaction that can only
read, without access to files, extensions and settings (source: duckdb.org/docs, "Securing DuckDB").
"""

from __future__ import annotations

import json
import math
import re
import signal
import sqlite3
import sys
import time
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_MAX_REPLY = 64_000_000  # maximum characters of a result
_MAX_STATEMENT = 10_000  # maximum characters of a statement


def main() -> None:
    """Read the table, then answer one statement."""
    engine, *folders = sys.argv[1:]
    sys.path += folders
    open_table, answer = _ENGINES[engine]
    request = json.loads(sys.stdin.buffer.readline())
    connection = open_table(request, sys.stdin.buffer.read(request["n_bytes"]))
    _confine(request["memory_bytes"], request["seconds"] + request["grace_seconds"])
    _send('{"is_ready": true}')
    try:
        reply = answer(connection, request | json.loads(sys.stdin.buffer.readline()))
        if "rows" in reply:
            reply["rows"] = [
                [_shown(value, request["max_cell"]) for value in row] for row in reply["rows"]
            ]
        text = json.dumps(reply)
        if len(text) > _MAX_REPLY:
            text = '{"refused": "length"}'
    except MemoryError:
        text = '{"refused": "memory"}'
    except Exception as error:  # noqa: BLE001 - standard error is a file, which can no longer grow
        text = json.dumps({"failed": repr(error)})
    _send(text)


def _send(reply: str) -> None:
    sys.stdout.write(f"{reply}\n")
    sys.stdout.flush()


def _confine(memory_bytes: int, seconds: float) -> None:
    """Forbid opening files, sockets and processes from here on, and bound memory and processor time."""
    if resource is None:
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal kills the process
    most = _reserved() + memory_bytes
    for kind, limit in (
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 3),
    ):
        try:
            resource.setrlimit(kind, (limit, limit))
        except (ValueError, OSError):  # macOS has RLIMIT_AS and refuses it
            continue


def _reserved() -> int:
    """Bytes of address space that the process has reserved; an engine reserves more than it uses."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux
        return 0


def _shown(value: Any, max_cell: int) -> str | int | float | None:
    """A value as JSON, the same for all engines; one character beyond the maximum marks a longer text."""
    if value is None or isinstance(value, int):
        return None if value is None else int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return (value.hex() if isinstance(value, bytes) else str(value))[: max_cell + 1]


def _refused(error: str, kinds: tuple[tuple[str, re.Pattern[str]], ...]) -> dict[str, str]:
    """The reply for an error of an engine, by its kind."""
    for kind, pattern in kinds:
        if match := pattern.search(error):
            return {"refused": kind, "what": match[1] if pattern.groups else ""}
    return {"refused": "error", "what": error}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


# SQLite ------------------------------------------------------------------------------------------

_SQLITE_FUNCTIONS = frozenset(
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
        sqlite3.SQLITE_LIMIT_SQL_LENGTH: _MAX_STATEMENT,
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


_SQLITE_ERRORS = (
    ("time", re.compile(r"interrupted")),
    ("text", re.compile(r"user-defined function raised")),
    ("memory", re.compile(r"out of memory")),
    ("access", re.compile(r"(.*prohibited.*)")),
    ("function", re.compile(r"not authorized to use function: (\w+)")),
    ("statement", re.compile(r"not authorized")),
    ("column", re.compile(r"no such column: (?:\w+\.)?(.+)")),
    ("table", re.compile(r"no such table: (.+)")),
)


def _open_sqlite(request: Mapping[str, Any], data: bytes) -> sqlite3.Connection:
    """A connection to the table that can only be read."""
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
    connection.deserialize(data)
    connection.create_function("fold", 1, _fold, deterministic=True)
    connection.create_function("as_number", 1, _as_number, deterministic=True)
    connection.create_collation("NOCASE", _compared)  # SQLite's own folds the case of ASCII only
    for pragma in (
        "query_only = ON",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "temp_store = MEMORY",
        f"hard_heap_limit = {request['memory_bytes'] // 2 + len(data)}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    # Parses the schema before the limits of statements are set: with many columns it exceeds them.
    connection.execute(f"SELECT 1 FROM {_quoted(request['table'])} LIMIT 0")
    return connection


def _answer_sqlite(connection: sqlite3.Connection, request: Mapping[str, Any]) -> dict[str, Any]:
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
        return _refused(str(error), _SQLITE_ERRORS)
    return {
        "columns": [column[0] for column in cursor.description],
        "rows": rows[: request["max_rows"]],
        "is_cut": len(rows) > request["max_rows"],
    }


def _authorizer(table: str, sql: str) -> Callable[..., int]:
    own = {name.lower() for name in _CTE.findall(sql)}
    own = {name for name in own if not name.startswith(("sqlite_", "pragma_"))}

    def may_read(name: str | None, column: str | None, schema: str | None) -> bool:
        """Whether a table may be read; `count(*)` names neither column nor schema."""
        if schema is None and not column:
            return name == table or (name or "").lower() in own
        return name == table and schema == "main"

    def authorize(
        action: int, one: str | None, two: str | None, schema: str | None, _: str | None
    ) -> int:
        is_allowed = (
            action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
            or (action == sqlite3.SQLITE_READ and may_read(one, two, schema))
            or (action == sqlite3.SQLITE_FUNCTION and (two or "").lower() in _SQLITE_FUNCTIONS)
        )
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    return authorize


def _compared(one: str, other: str) -> int:
    one, other = one.lower(), other.lower()
    return (one > other) - (one < other)


def _as_number(value: str | float | None) -> float | None:
    """Convert a text to a number or raise ValueError; SQLite would read 0, or the first digits."""
    if not isinstance(value, str):
        return value
    if not re.fullmatch(r"[\d.eE+\-\s]*+", value, re.ASCII):
        raise ValueError(value)
    return float(value)


def _fold(text: object) -> str | None:
    """As `pearl.tables.columns.fold`, but dashes and quotes stay different."""
    if text is None:
        return None
    decomposed = unicodedata.normalize("NFKD", str(text))
    return " ".join(
        "".join(c for c in decomposed if not unicodedata.combining(c)).casefold().split()
    )


# DuckDB ------------------------------------------------------------------------------------------

_DUCKDB_FUNCTIONS = frozenset(
    """
    abs age any_value approx_count_distinct approx_quantile arg_max arg_min argmax argmin array_agg avg bool_and
    bool_or ceil ceiling char_length chr coalesce concat concat_ws contains corr count count_if count_star countif
    covar_pop covar_samp cume_dist date date_add date_diff date_part date_sub date_trunc datediff datepart
    datesub datetrunc day dayname dayofmonth dayofweek dayofyear decade dense_rank editdist3 ends_with
    entropy exp first first_value floor fold format generate_series geomean greatest group_concat hour if ifnull
    instr isodow isoyear jaccard jaro_similarity jaro_winkler_similarity kurtosis lag last last_day last_value lcase lead
    least left length levenshtein like_escape list list_aggregate list_apply list_contains list_distinct list_filter
    list_sort list_sum list_transform list_value listagg ln log log10 log2 lower ltrim mad make_date max max_by mean
    median min min_by minute mod mode month monthname not_like_escape nth_value ntile nullif percent_rank position pow
    power prefix printf product quantile quantile_cont quantile_disc quarter range rank regexp_extract regexp_extract_all
    regexp_full_match regexp_matches regexp_replace regr_intercept regr_r2 regr_slope replace reverse right round
    row row_number rtrim second sem sign skewness split_part sqrt starts_with stddev stddev_pop stddev_samp
    str_split strftime string_agg string_split strip_accents strlen strpos strptime struct_extract
    struct_pack substr substring suffix sum to_days to_hours to_minutes to_months to_quarters to_seconds to_weeks to_years
    trim trunc try_strptime typeof ucase unicode unnest upper var_pop
    var_samp variance week weekday weekofyear year yearweek
    """.split()  # noqa: SIM905 - one a line is a hundred lines
)
"""Functions that SQL may call: of values, without side effects. Operators have no letters in their names."""

_TABLE_FUNCTIONS = frozenset(["generate_series", "range", "unnest"])

_EXPRESSIONS = frozenset(
    [
        "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT", "FUNCTION",
        "LAMBDA", "OPERATOR", "POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW",
    ]
)  # fmt: skip
_NODES = frozenset(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"])
_SOURCES = frozenset(
    ["BASE_TABLE", "EMPTY", "EXPRESSION_LIST", "JOIN", "SUBQUERY", "TABLE_FUNCTION"]
)
_MODIFIERS = re.compile(r"(?:ORDER|LIMIT|LIMIT_PERCENT|DISTINCT)_MODIFIER")
_ORDERS = frozenset(["ASCENDING", "DESCENDING", "ORDER_DEFAULT"])

_SETTINGS = (
    ("temp_directory", "''"),
    ("autoinstall_known_extensions", "false"),
    ("autoload_known_extensions", "false"),
    ("allow_community_extensions", "false"),
    ("python_enable_replacements", "false"),
    ("enable_progress_bar", "false"),  # it would mix with the replies on standard output
    ("enable_external_access", "false"),
    ("lock_configuration", "true"),  # has to be the last setting
)


class _RefusedError(Exception):
    """The statement is refused."""

    def __init__(self, kind: str, what: str = "") -> None:
        super().__init__(kind, what)
        self.reply = {"refused": kind, "what": what}


_DUCKDB_ERRORS = (
    ("time", re.compile(r"(?i:interrupt)")),
    ("memory", re.compile(r"(?i:out of memory|bad allocation|failed to allocate)")),
    ("column", re.compile(r'[Rr]eferenced column "(.+?)" not found')),
    ("column", re.compile(r'does not have a column named "(.+?)"')),
    ("access", re.compile(r"(Permission Error.*)")),
)


def _open_duckdb(request: Mapping[str, Any], data: bytes) -> DuckDBPyConnection:
    """A locked connection to the table."""
    import duckdb

    table_data = json.loads(data)
    limit = f"{request['memory_bytes'] // 2_000_000 + len(data) // 250_000}MB"
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": limit})
    defined = ", ".join(
        f"{_quoted(name)} {type_}{' COLLATE NOCASE' if type_ == 'VARCHAR' else ''}"
        for name, type_, _ in table_data["columns"]
    )
    table = _quoted(table_data["table"])
    connection.execute(f"CREATE TABLE {table} ({defined})")
    read = ", ".join(
        f"unnest(from_json(${i}::VARCHAR, '[\"{type_}\"]'))"
        for i, (_, type_, _) in enumerate(table_data["columns"], start=1)
    )
    cells = [values for _, _, values in table_data["columns"]]
    connection.execute(f"INSERT INTO {table} SELECT {read}", cells)
    connection.execute(
        "CREATE MACRO fold(x) AS "
        "lower(strip_accents(trim(regexp_replace(CAST(x AS VARCHAR), '\\s+', ' ', 'g'))))"
    )
    for name, value in _SETTINGS:
        connection.execute(f"SET {name} = {value}")
    return connection


def _answer_duckdb(connection: DuckDBPyConnection, request: Mapping[str, Any]) -> dict[str, Any]:
    """The result lines of a statement, or the reason of its refusal."""
    import duckdb

    try:
        _check(_parsed(connection, request["sql"]), request["table"])
        connection.execute("BEGIN TRANSACTION READ ONLY")
        cursor = connection.execute(request["sql"])
        rows = cursor.fetchmany(request["max_rows"] + 1)
        columns = [column[0] for column in cursor.description or []]
    except _RefusedError as error:
        return error.reply
    except RecursionError:
        return {"refused": "error", "what": "the statement is nested too deeply"}
    except duckdb.OutOfMemoryException:
        return {"refused": "memory"}
    except duckdb.Error as error:
        return _refused(str(error).partition("\n")[0], _DUCKDB_ERRORS)
    return {
        "columns": columns,
        "rows": [[_plain(value) for value in row] for row in rows[: request["max_rows"]]],
        "is_cut": len(rows) > request["max_rows"],
    }


def _parsed(connection: DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """The syntax tree of a single SELECT."""
    if len(sql) > _MAX_STATEMENT:
        raise _RefusedError("error", f"the statement has more than {_MAX_STATEMENT:,} characters")
    row = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    tree: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
    if tree["error"]:
        if tree.get("error_type") == "parser":
            raise _RefusedError("error", str(tree.get("error_message")))
        raise _RefusedError("statement")
    if len(tree["statements"]) != 1:
        raise _RefusedError("error", "one statement at a time")
    node: dict[str, Any] = tree["statements"][0]["node"]
    return node


def _check(node: Any, table: str, own: frozenset[str] = frozenset()) -> None:
    """Refuse a tree with anything but SELECTs of the table."""
    if isinstance(node, list):
        for each in node:
            _check(each, table, own)
    if not isinstance(node, dict):
        return
    if "class" in node:
        _check_expression(node)
    elif isinstance(kind := node.get("type"), str):
        _check_part(node, kind, table, own)
    if node.get("type") == "RECURSIVE_CTE_NODE":
        own |= {str(node["cte_name"]).lower()}
    for entry in (node.get("cte_map") or {}).get("map", []):
        _check(entry["value"], table, own)  # a subquery may use only earlier ones
        own |= {str(entry["key"]).lower()}
    for key, value in node.items():
        if key != "cte_map":
            _check(value, table, own)


def _check_expression(node: Mapping[str, Any]) -> None:
    is_qualified = bool(node.get("schema") or node.get("catalog"))
    if node["class"] in ("FUNCTION", "WINDOW"):
        name = str(node["function_name"])
        if is_qualified or not (name.lower() in _DUCKDB_FUNCTIONS or not re.search(r"\w", name)):
            raise _RefusedError("function", name)
    elif is_qualified or node["class"] not in _EXPRESSIONS:
        raise _RefusedError("statement")


def _check_part(node: Mapping[str, Any], kind: str, table: str, own: frozenset[str]) -> None:
    """Check a query, a source, or a modifier such as LIMIT."""
    if kind == "BASE_TABLE":
        name, schema = str(node["table_name"]), str(node["schema_name"])
        is_table = name.lower() == table.lower() and schema in ("", "main")
        if node["catalog_name"] or not (is_table or (not schema and name.lower() in own)):
            is_plain = not schema and re.fullmatch(
                r"(?!sqlite_|duckdb_|pragma_|pg_)\w+", name, re.I
            )
            raise _RefusedError("table" if is_plain else "access", name)
    elif kind == "TABLE_FUNCTION":
        name = str(node["function"]["function_name"])
        if name.lower() not in _TABLE_FUNCTIONS:
            raise _RefusedError("access", name)
    elif not (kind in _NODES or kind in _SOURCES or kind in _ORDERS or _MODIFIERS.fullmatch(kind)):
        raise _RefusedError("statement")


def _plain(value: Any) -> Any:
    """A value as JSON; lists and structures become text."""
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return float(value) if isinstance(value, Decimal) else value


_ENGINES: dict[str, tuple[Callable[..., Any], Callable[..., dict[str, Any]]]] = {
    "sqlite": (_open_sqlite, _answer_sqlite),
    "duckdb": (_open_duckdb, _answer_duckdb),
}

if __name__ == "__main__":
    main()
