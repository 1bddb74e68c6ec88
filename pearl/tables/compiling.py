"""A checked query → SQL over the database of its table, with every value a parameter.

A condition is true, false or NULL, which is undecided: a cell that is undecided, cannot be read as
what it is compared as, or of which only a part lies in a period.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pearl.documents.dates import read_period
from pearl.tables.columns import TypedColumn, number_in
from pearl.tables.folding import fold, word_form
from pearl.tables.opening import WEEK, read_moment
from pearl.tables.query_table import QueryTable
from pearl.tables.specification import Aggregate, AllOf, AnyOf, Condition, Not, Query, Where

_MARKS = re.compile(r"[^\w\s'.,;:/&-]")
"""What does not merely join words."""


@dataclass
class Statement:
    """SQL and the values of its parameters.

    Example:
        >>> from pearl.documents.rows import Row, Rows
        >>> table = QueryTable(Rows((Row("a", {"City": "Haifa", "Fee": "120"}),)))
        >>> where = Condition(column="City", op="is", value="HAIFA")
        >>> compile_rows(Query(where=where), table)
        Statement(sql='SELECT id FROM cells WHERE f0 = ? ORDER BY id', values=['haifa'])
    """

    sql: str
    values: list[str | int | float] = field(default_factory=list)


def compile_rows(query: Query, table: QueryTable) -> Statement:
    """The ids of the rows that meet the query, in its order, without its limit."""
    condition = _where(query.where, table)
    keys = [_order_of_column(one.by, one.descending, table) for one in query.sort]
    order = ", ".join([*keys, "id"])
    return Statement(
        f"SELECT id FROM cells WHERE {condition.sql} ORDER BY {order}", condition.values
    )


def compile_undecided(query: Query, table: QueryTable) -> Statement:
    """The ids of the rows of which it is undecided whether they meet the query."""
    condition = _where(query.where, table)
    return Statement(f"SELECT id FROM cells WHERE ({condition.sql}) IS NULL", condition.values)


def compile_groups(query: Query, table: QueryTable) -> Statement:
    """One row for each group: its ids as JSON, and its figures.

    Without `group`, all rows that meet the query are one group.
    """
    condition = _where(query.where, table)
    figures = [_figure(one, table) for one in query.aggregate]
    keys = ", ".join(_group_key(name, table) for name in query.group)
    order = []
    names = [one.name for one in query.aggregate]
    for one in query.sort:
        if one.by in names:
            at = names.index(one.by)
            order.append(f"{figures[at]} IS NULL, {figures[at]}{' DESC' if one.descending else ''}")
        else:
            order.append(_order_of_column(one.by, one.descending, table))
    sql = f"SELECT json_group_array(id), {', '.join(figures)} FROM cells WHERE {condition.sql}"
    if keys:
        sql += f" GROUP BY {keys} ORDER BY {', '.join([*order, 'min(id)'])}"
    return Statement(sql, condition.values)


def _column(name: str, table: QueryTable) -> tuple[int, TypedColumn]:
    i = table.number(name)
    return i, table.known(name)


def _group_key(name: str, table: QueryTable) -> str:
    i, column = _column(name, table)
    return f"coalesce(n{i}, f{i})" if column.kind == "number" else f"f{i}"


def _figure(one: Aggregate, table: QueryTable) -> str:
    if one.column is None:
        return "count(*)"
    i, column = _column(one.column, table)
    match one.function:
        case "count":
            return f"count(nullif(f{i}, ''))"
        case "count different":
            return f"count(DISTINCT nullif({_group_key(one.column, table)}, ''))"
        case "sum" | "mean":
            return f"{one.function}_of(n{i})"
        case "min":
            return f"min({'a' if column.kind == 'date' else 'n'}{i})"
        case "max":
            return f"max({'z' if column.kind == 'date' else 'n'}{i})"


def _order_of_column(name: str, descending: bool, table: QueryTable) -> str:
    """Cells that are empty or cannot be read come last in any order."""
    i, column = _column(name, table)
    key = {"number": f"n{i}", "date": f"a{i}"}.get(column.kind, f"nullif(f{i}, '')")
    return f"{key} IS NULL, {key}{' DESC' if descending else ''}"


def _where(where: Where | None, table: QueryTable) -> Statement:
    match where:
        case None:
            return Statement("1")
        case Not():
            inner = _where(where.no, table)
            return Statement(f"NOT ({inner.sql})", inner.values)
        case AllOf():
            return _joined(" AND ", [_where(one, table) for one in where.all])
        case AnyOf():
            return _joined(" OR ", [_where(one, table) for one in where.any])
        case Condition():
            return _condition(where, table)


def _joined(word: str, parts: list[Statement]) -> Statement:
    sql = word.join(f"({part.sql})" for part in parts)
    return Statement(sql, [value for part in parts for value in part.values])


def _condition(one: Condition, table: QueryTable) -> Statement:
    i, column = _column(one.column, table)
    match one.op:
        case "is empty":
            return Statement(f"f{i} = ''")
        case "is not empty":
            return Statement(f"f{i} <> ''")
        case "is" | "in":
            return _any([_equal(i, column, value) for value in one.value])
        case "is not" | "not in":
            equal = _any([_equal(i, column, value) for value in one.value])
            return Statement(f"NOT ({equal.sql})", equal.values)
        case "contains":
            return _contains(i, column, one.value[0])
        case "does not contain":
            found = _contains(i, column, one.value[0])
            return Statement(f"NOT ({found.sql})", found.values)
        case "open":
            return _open(i, one.value[0])
        case _:
            return _ordered(i, column, one.op, one.value[0])


def _contains(i: int, column: TypedColumn, value: str) -> Statement:
    """Latin letters are found where a word begins: Urology is not in Neurology.

    Marks other than those that join words have to be there as well: C++ is not any word in C.
    """
    text = fold(value)
    words = word_form(text).rstrip()
    if not text.isascii() or not words:
        return Statement(f"instr(f{i}, ?) > 0", [text])
    form = f"w{i}" if column.kind in ("text", "hours") else f"words(f{i})"
    if _MARKS.search(text):
        return Statement(f"instr({form}, ?) > 0 AND instr(f{i}, ?) > 0", [words, text])
    return Statement(f"instr({form}, ?) > 0", [words])


def _any(parts: list[Statement]) -> Statement:
    if len({part.sql for part in parts}) == 1 and parts[0].sql.endswith(" = ?") and len(parts) > 1:
        name = parts[0].sql.removesuffix(" = ?")
        places = ", ".join("?" * len(parts))
        return Statement(f"{name} IN ({places})", [part.values[0] for part in parts])
    return parts[0] if len(parts) == 1 else _joined(" OR ", parts)


def _equal(i: int, column: TypedColumn, value: str) -> Statement:
    if column.kind == "number" and (found := number_in(value)):
        return Statement(f"f{i} <> '' AND n{i} = ?", [_bound(found[0])])
    if column.kind == "date" and (days := _days(column, value)):
        first, last = days
        return Statement(
            f"f{i} <> '' AND CASE WHEN a{i} >= ? AND z{i} <= ? THEN 1 "
            f"WHEN z{i} < ? OR a{i} > ? THEN 0 END",
            [first, last, first, last],
        )
    return Statement(f"f{i} = ?", [fold(value)])


def _ordered(i: int, column: TypedColumn, operator: str, value: str) -> Statement:
    """A comparison of size or time; an empty cell meets none."""
    if column.kind == "number":
        found = number_in(value)
        assert found
        sign = {"before": "<", "after": ">", "at least": ">=", "at most": "<="}[operator]
        return Statement(f"f{i} <> '' AND n{i} {sign} ?", [_bound(found[0])])
    days = _days(column, value)
    assert days
    first, last = days
    yes, no, day = {
        "before": (f"z{i} < ?", f"a{i} >= ?", first),
        "after": (f"a{i} > ?", f"z{i} <= ?", last),
        "at least": (f"a{i} >= ?", f"z{i} < ?", first),
        "at most": (f"z{i} <= ?", f"a{i} > ?", last),
    }[operator]
    return Statement(f"f{i} <> '' AND CASE WHEN {yes} THEN 1 WHEN {no} THEN 0 END", [day, day])


def _bound(number: float) -> float:
    """A number as the database takes it."""
    return float(number) if isinstance(number, int) and abs(number) >= 2**63 else number


def _days(column: TypedColumn, value: str) -> tuple[str, str] | None:
    """The first and the last day of a period, read in the column's order of day and month."""
    is_day_first = column.reading.is_day_first if column.reading else None
    period, _ = read_period(value, is_day_first)
    return (period.first.isoformat(), period.last.isoformat()) if period else None


def _open(i: int, value: str) -> Statement:
    """Open at a moment or all through a range; of a day alone, at some time of it."""
    moment = read_moment(value)
    assert moment
    start, end = moment.start, moment.end
    within = f"id IN (SELECT id FROM h{i} WHERE opens <= ? AND closes >= ?)"
    if not moment.is_whole:
        asked = Statement(
            f"id IN (SELECT id FROM h{i} WHERE opens < ? AND closes > ?)", [end, start]
        )
    elif start == end:
        asked = Statement(within, [start, start + 1])
    elif end <= WEEK:
        asked = Statement(within, [start, end])
    else:
        asked = Statement(f"{within} AND {within}", [start, WEEK, 0, end - WEEK])
    return Statement(
        f"CASE WHEN f{i} IS NULL THEN NULL WHEN f{i} = '' THEN 0 WHEN r{i} IS NULL THEN NULL "
        f"ELSE {asked.sql} END",
        asked.values,
    )
