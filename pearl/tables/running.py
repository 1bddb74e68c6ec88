"""A query + a table → its result, with the rows of the table behind every line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pearl.documents.comparisons import ORDERED
from pearl.errors.escaping import counted
from pearl.tables.checking import check, nearest_values
from pearl.tables.compiling import Statement, compile_groups, compile_rows, compile_undecided
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
    """Answer a query.

    Example:
        >>> from pearl.documents.rows import Row, Rows
        >>> rows = [Row("", {"City": c, "Fee": f}) for c, f in [("Haifa", "90"), ("Eilat", "70"), ("haifa", "")]]
        >>> table = QueryTable(Rows(tuple(rows)))
        >>> where = Condition(column="city", op="is", value="HAIFA")
        >>> [(line.cells, line.rows) for line in run(Query(where=where), table).lines]
        [(('Haifa', '90'), (0,)), (('haifa', ''), (2,))]
        >>> mean = Query.model_validate({"aggregate": {"function": "mean", "column": "fee"}})
        >>> run(mean, table).lines
        (Line(cells=('80',), rows=(0, 1, 2)),)
    """
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
    """Rows that have no place in an order that a limit cuts, for each column that orders them."""
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
    """What is selected, then what is filtered on, so that it can be checked at a glance."""
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
            cells = (*(key.cells[rows[0]] for key in keys), *map(_figure, figures))
            lines.append(Line(cells, rows))
    return lines


def _unread_in(one: Aggregate, rows: Sequence[int], table: QueryTable) -> set[int]:
    """Rows that have a value which is not in a figure."""
    if one.column is None:
        return set()
    if one.function in ("count", "count different"):
        cells = table.known(one.column).cells
        return {row for row in rows if cells[row] is None}
    return table.unread_rows(one.column, rows)


def _headed(name: str, column: str | None, table: QueryTable) -> str:
    unit = table.known(column).unit if column else ""
    return f"{name} ({unit})" if unit and not name.startswith("count") else name


def _figure(value: object) -> str:
    """A number as text; "" for a figure of nothing."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return "" if value is None else str(value)


def describe(where: Where | None) -> str:
    """A condition in words.

    Example:
        >>> describe(Condition(column="City", op="in", value=["Haifa", "Eilat"]))
        'City in "Haifa", "Eilat"'
    """
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
    """Which condition leaves a query without rows, and what the column has instead.

    Example:
        >>> from pearl.documents.rows import Row, Rows
        >>> table = QueryTable(Rows((Row("", {"City": "Tel Aviv-Yafo"}),)))
        >>> why_empty(Query(where=Condition(column="City", op="is", value="Tel Aviv")), table)
        'no row meets: City is "Tel Aviv" (City has: Tel Aviv-Yafo)'
    """
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
    """What a column has that is like what was asked for."""
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
