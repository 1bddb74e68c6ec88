"""A checked query → SQL over the database of its table → its result, with the rows behind every line.

Every value is a parameter. A condition is true, false or NULL, which is undecided: a cell that is
undecided, cannot be read as what it is compared as, or of which only a part lies in a period.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pearl.documents.comparisons import ORDERED
from pearl.documents.dates import read_period
from pearl.errors.escaping import counted
from pearl.errors.patterns import lazy_pattern
from pearl.tables.checking import check, nearest_values
from pearl.tables.columns import (
    WEEK,
    TypedColumn,
    fold,
    number_in,
    read_moment,
    storable,
    word_form,
)
from pearl.tables.query_table import QueryTable
from pearl.tables.specification import (
    Aggregate,
    AllOf,
    AnyOf,
    Condition,
    Not,
    Query,
    Where,
    conditions,
)

_MARKS = lazy_pattern(r"[^\w\s'.,;:/&-]")  # characters other than those that join words


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
    """The ids of the rows for which the condition is undecided."""
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
        return Statement(f"f{i} <> '' AND n{i} = ?", [storable(found[0])])
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
        return Statement(f"f{i} <> '' AND n{i} {sign} ?", [storable(found[0])])
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


_SHOWN_IN_WHY = 5


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a result."""

    cells: tuple[str | None, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What a query found."""

    query: Query
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    n_lines: int
    undecided: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows behind all lines, each once, ascending."""
        return tuple(sorted({row for line in self.lines for row in line.rows}))


def run(query: Query, table: QueryTable) -> Result:
    """Answer a query."""
    query = check(query, table)
    undecided = _undecided(query, table)
    notes = [note for name in _named(query) for note in table.known(name).notes]
    if undecided:
        notes.append(
            f"of {counted(len(undecided), 'row')} it is undecided whether they meet the conditions"
        )
    notes += table.notes
    if query.aggregate:
        columns = (
            *query.group, *(_headed(one.name, one.column, table) for one in query.aggregate)
        )  # fmt: skip
        lines = _groups(query, table)
        n_lines = len(lines)
        rows = [row for line in lines for row in line.rows]
        unread = [(one.column, _unread_in(one, rows, table)) for one in query.aggregate]
        unread += _unplaced(query, rows, n_lines, table)
    else:
        columns = _shown(query, table)
        rows = [row for (row,) in _fetch(compile_rows(query, table), table)]
        n_lines = len(rows)
        unread = _unplaced(query, rows, n_lines, table)
        left_out = set().union(*(left for _, left in unread))
        cells = [table.known(name).cells for name in columns]
        shown = [row for row in rows if row not in left_out][: query.limit]
        lines = [Line(tuple(each[row] for each in cells), (row,)) for row in shown]
    for name, left in unread:
        notes += [f"{counted(len(left), 'cell')} of {name} cannot be read"] if left else []
        undecided |= left
    return Result(
        query, columns, tuple(lines[: query.limit]), n_lines, tuple(sorted(undecided)),
        tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _unplaced(
    query: Query, rows: Sequence[int], n_lines: int, table: QueryTable
) -> list[tuple[str | None, set[int]]]:
    """Rows without a sort key in a result that a limit cuts, for each sort column."""
    if query.limit is None or query.limit >= n_lines:
        return []
    return [(one.by, table.unread_rows(one.by, rows)) for one in query.sort if table.column(one.by)]


def _fetch(statement: Statement, table: QueryTable) -> list[tuple[Any, ...]]:
    with table.lock:
        return table.database.execute(statement.sql, statement.values).fetchall()


def _undecided(query: Query, table: QueryTable) -> set[int]:
    columns = [table.known(one.column) for one in conditions(query.where)]
    if all(column.kind == "text" and None not in column.cells for column in columns):
        return set()
    return {row for (row,) in _fetch(compile_undecided(query, table), table)}


def _named(query: Query) -> list[str]:
    """Columns that the query reads, other than to show them."""
    names = [one.column for one in conditions(query.where)]
    names += [one.column for one in query.aggregate if one.column]
    figures = {one.name for one in query.aggregate}
    names += [one.by for one in query.sort if one.by not in figures]
    return list(dict.fromkeys(names))


def _shown(query: Query, table: QueryTable) -> tuple[str, ...]:
    """The selected columns, then those of the conditions, so that a reader can check them."""
    if not query.select:
        return table.names
    filtered = [one.column for one in conditions(query.where)]
    return tuple(dict.fromkeys((*query.select, *filtered)))


def _groups(query: Query, table: QueryTable) -> list[Line]:
    keys = [table.known(name) for name in query.group]
    lines = []
    for ids, *figures in _fetch(compile_groups(query, table), table):
        rows = tuple(sorted(json.loads(ids)))
        if rows or not query.group:
            cells = (*(key.cells[rows[0]] for key in keys), *map(_figure_text, figures))
            lines.append(Line(cells, rows))
    return lines


def _unread_in(one: Aggregate, rows: Sequence[int], table: QueryTable) -> set[int]:
    """Rows with a value that a figure leaves out."""
    if one.column is None:
        return set()
    if one.function in ("count", "count different"):
        cells = table.known(one.column).cells
        return {row for row in rows if cells[row] is None}
    return table.unread_rows(one.column, rows)


def _headed(name: str, column: str | None, table: QueryTable) -> str:
    unit = table.known(column).unit if column else ""
    return f"{name} ({unit})" if unit and not name.startswith("count") else name


def _figure_text(value: object) -> str:
    """A number as text; "" for a figure of nothing."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return "" if value is None else str(value)


def describe(where: Where | None) -> str:
    """A condition in words."""
    match where:
        case None:
            return "no condition"
        case Condition():
            values = ", ".join(f'"{value}"' for value in where.value)
            return f"{where.column} {where.op} {values}".rstrip()
        case AllOf():
            return " and ".join(f"({describe(one)})" for one in where.all)
        case AnyOf():
            return " or ".join(f"({describe(one)})" for one in where.any)
        case Not():
            return f"not ({describe(where.no)})"


def why_empty(query: Query, table: QueryTable) -> str:
    """Which condition leaves a query without rows, and what the column has instead."""
    if not len(table):
        return "the table has no rows"
    parts = _parts(query.where)
    alone = [_count([one], table) for one in parts]
    failing = [one for one, n in zip(parts, alone, strict=True) if not n]
    if failing:
        said = [f"{describe(one)}{_instead(one, table)}" for one in failing[:_SHOWN_IN_WHY]]
        return f"no row meets: {'; '.join(said)}"
    counts = ", ".join(f"{describe(one)}: {n:,}" for one, n in zip(parts, alone, strict=True))
    without = [_count([*parts[:i], *parts[i + 1 :]], table) for i in range(len(parts))]
    best = max(range(len(parts)), key=lambda i: without[i], default=0)
    text = f"no row meets all conditions; rows that meet each: {counts}"
    if parts and without[best]:
        text += f". Without {describe(parts[best])} there are {without[best]:,}"
    return text


def _parts(where: Where | None) -> list[Where]:
    if isinstance(where, AllOf):
        return [part for one in where.all for part in _parts(one)]
    return [where] if where else []


def _count(parts: list[Where], table: QueryTable) -> int:
    where = AllOf(all=tuple(parts)) if parts else None
    return len(_fetch(compile_rows(Query(where=where), table), table))


def _instead(where: Where, table: QueryTable) -> str:
    """The values of a column that are similar to the requested one."""
    if not isinstance(where, Condition) or where.op not in ("is", "in", "contains", *ORDERED):
        return ""
    column = table.known(where.column)
    if column.kind in ("number", "date"):
        known = column.numbers if column.kind == "number" else column.dates
        values = sorted((cell for cell in column.values if cell in known), key=known.__getitem__)
        if len(values) > _SHOWN_IN_WHY:
            return f" ({where.column} has {len(values):,} values from {values[0]} to {values[-1]})"
        return f" ({where.column} has: {', '.join(values)})" if values else ""
    if column.kind != "text" or where.op in ORDERED:
        return ""
    near = [value for wanted in where.value for value in nearest_values(column, wanted)]
    return f" ({where.column} has: {', '.join(dict.fromkeys(near))})" if near else ""
