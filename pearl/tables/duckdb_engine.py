"""SQL in DuckDB (extra `duckdb`): an engine of `sql_child`.

DuckDB has no authorizer, and neither its memory limit nor an interrupt binds: the limits of the process do. Its
locks: the statement is parsed (`json_serialize_sql`), and refused unless it is one SELECT that reads one table, what
it defines itself and functions of a list; it runs in a transaction that can only read, without access to
files, extensions and settings. Source: duckdb.org/docs, "Securing DuckDB".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Stored = str | int | float | None

FUNCTIONS = frozenset(
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

_MAX_STATEMENT = 10_000  # maximum characters of a statement

_SETTINGS = (
    ("temp_directory", "''"),
    ("autoinstall_known_extensions", "false"),
    ("autoload_known_extensions", "false"),
    ("allow_community_extensions", "false"),
    ("python_enable_replacements", "false"),
    ("enable_progress_bar", "false"),  # it would be written among the replies
    ("enable_external_access", "false"),
    ("lock_configuration", "true"),  # the last one
)


class _RefusedError(Exception):
    """The statement is refused."""

    def __init__(self, kind: str, what: str = "") -> None:
        super().__init__(kind, what)
        self.reply = {"refused": kind, "what": what}


def folders() -> list[str]:
    """The folder of the package."""
    found = find_spec("duckdb")
    return [str(Path(found.origin).parents[1])] if found and found.origin else []


def dumped(table: str, columns: Sequence[tuple[str, str, Sequence[Stored]]]) -> bytes:
    """The table as JSON, a list for each column, which DuckDB reads by itself."""
    typed = []
    for name, kind, cells in columns:
        is_whole = all(isinstance(cell, int) for cell in cells if cell is not None)
        type_ = {"number": "BIGINT" if is_whole else "DOUBLE", "date": "DATE"}.get(kind, "VARCHAR")
        typed.append((name, type_, json.dumps(cells, ensure_ascii=False)))
    return json.dumps({"table": table, "columns": typed}, ensure_ascii=False).encode()


def opened(request: Mapping[str, Any], data: bytes) -> DuckDBPyConnection:
    """A locked connection to the table."""
    import duckdb

    said = json.loads(data)
    limit = f"{request['memory_bytes'] // 2_000_000 + len(data) // 250_000}MB"
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": limit})
    defined = ", ".join(
        f"{_quoted(name)} {type_}{' COLLATE NOCASE' if type_ == 'VARCHAR' else ''}"
        for name, type_, _ in said["columns"]
    )
    table = _quoted(said["table"])
    connection.execute(f"CREATE TABLE {table} ({defined})")
    read = ", ".join(
        f"unnest(from_json(${i}::VARCHAR, '[\"{type_}\"]'))"
        for i, (_, type_, _) in enumerate(said["columns"], start=1)
    )
    cells = [values for _, _, values in said["columns"]]
    connection.execute(f"INSERT INTO {table} SELECT {read}", cells)
    connection.execute(
        "CREATE MACRO fold(x) AS "
        "lower(strip_accents(trim(regexp_replace(CAST(x AS VARCHAR), '\\s+', ' ', 'g'))))"
    )
    for name, value in _SETTINGS:
        connection.execute(f"SET {name} = {value}")
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("\0", "") + '"'


def answer(connection: DuckDBPyConnection, request: Mapping[str, Any]) -> dict[str, Any]:
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
        return _refused(str(error))
    return {
        "columns": columns,
        "rows": [[_plain(value) for value in row] for row in rows[: request["max_rows"]]],
        "is_cut": len(rows) > request["max_rows"],
    }


def _parsed(connection: DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """The tree of the one SELECT that a statement is."""
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
    """Refuse a tree that has anything but a SELECT of the table."""
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
        _check(entry["value"], table, own)  # which knows those before it alone
        own |= {str(entry["key"]).lower()}
    for key, value in node.items():
        if key != "cte_map":
            _check(value, table, own)


def _check_expression(node: Mapping[str, Any]) -> None:
    is_qualified = bool(node.get("schema") or node.get("catalog"))
    if node["class"] in ("FUNCTION", "WINDOW"):
        name = str(node["function_name"])
        if is_qualified or not (name.lower() in FUNCTIONS or not re.search(r"\w", name)):
            raise _RefusedError("function", name)
    elif is_qualified or node["class"] not in _EXPRESSIONS:
        raise _RefusedError("statement")


def _check_part(node: Mapping[str, Any], kind: str, table: str, own: frozenset[str]) -> None:
    """Check a query, what it reads from, or what orders and limits it."""
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


_WHY = (
    ("time", re.compile(r"(?i:interrupt)")),
    ("memory", re.compile(r"(?i:out of memory|bad allocation|failed to allocate)")),
    ("column", re.compile(r'[Rr]eferenced column "(.+?)" not found')),
    ("column", re.compile(r'does not have a column named "(.+?)"')),
    ("access", re.compile(r"(Permission Error.*)")),
)


def _refused(error: str) -> dict[str, str]:
    """An error of DuckDB by its kind."""
    for kind, pattern in _WHY:
        if found := pattern.search(error):
            return {"refused": kind, "what": found[1] if pattern.groups else ""}
    return {"refused": "error", "what": error.partition("\n")[0]}


def _plain(value: Any) -> Any:
    """A value in the types that SQLite has, which JSON has, too."""
    if isinstance(value, list | tuple | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return float(value) if isinstance(value, Decimal) else value
