"""Run a checked query on its table: the answer has the rows behind every line; undecided cells make rows undecided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from operator import itemgetter
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.comparisons import (
    ORDERED,
    Range,
    Test,
    Verdict,
    all_of,
    any_of,
    has_one_order,
    is_no_key,
    negated,
    placed,
    truth_words,
)
from pearl.documents.dates import read_period
from pearl.documents.numbers import is_blank, scale_of
from pearl.documents.rows import Row, Stated
from pearl.documents.table import scale_word
from pearl.documents.table.totals import names_total
from pearl.errors.escaping import counted
from pearl.tables.checking import check
from pearl.tables.columns import QueryTable, TypedColumn, fold, plain_number, word_form
from pearl.tables.specification import (
    Aggregate,
    AllOf,
    AnyOf,
    Arithmetic,
    Column,
    Condition,
    Not,
    Query,
    Where,
    conditions,
    describe,
)

_CONNECTING = frozenset("_'.,;:/&-")  # Marks within and between words
_MAX_NAMED = (
    5  # Maximum conditions, or values of a column, named in a message about an empty answer
)

_T = TypeVar("_T")


class Line(Struct, frozen=True):
    """A line of an answer."""

    cells: tuple[str | None, ...]
    rows: tuple[int, ...]


class Answer(Struct, frozen=True):
    """The answer to a query."""

    query: Query
    columns: tuple[str, ...]  # The headings of the cells in each line
    lines: tuple[Line, ...]
    n_lines: int
    units: tuple[str, ...] = ()
    """Units and scales, by column, that the cells do not contain: unit and scale of computed numbers, scale of others."""
    undecided: tuple[int, ...] = ()
    doubtful: tuple[Row, ...] = ()  # The doubtful rows of the table that may meet the conditions
    notes: tuple[str, ...] = ()
    n_repairs: int = 0
    stated: Stated | None = None  # For a count: the number of rows it is based on


def run(query: Query, table: QueryTable) -> Answer:
    """Run a query."""
    query = check(query, table)
    verdicts = list(_verdicts(query.where, table))
    stated = _stated(query, table, verdicts)
    doubtful: tuple[Row, ...] = ()
    if table.rows.totals or table.rows.doubtful:
        table, verdicts, doubtful = _with_others(query, table, verdicts)
    rows = [row for row, verdict in enumerate(verdicts) if verdict]
    undecided = {row for row, verdict in enumerate(verdicts) if verdict is None}
    notes = [note for name in _named(query) for note in table.known(name).notes]
    if undecided:
        notes.append(
            f"it is undecided for {counted(len(undecided), 'row')} whether the conditions are met"
        )
    if doubtful:
        notes.append(f"{counted(len(doubtful), 'doubtful row')} left out")
    if query.aggregate:
        columns = (*query.group, *(_heading(one, table) for one in query.aggregate))
        units = (*("" for _ in query.group), *(_unit(one, table) for one in query.aggregate))
        lines = _groups(query, rows, table)
        if n_without := len(rows) - len(_keyed(query, rows, table)):
            names = ", ".join(map(str, query.group))
            notes.append(f"rows without {names}, which are in no group: {n_without:,}")
        n_lines = len(lines)
        unread = [(one.column, _unread_in(one, rows, table)) for one in query.aggregate]
        unread += _unplaced(query, rows, n_lines, table)
    else:
        shown_columns = [table.known(name) for name in _selected_columns(query, table)]
        is_computed = [isinstance(name, Arithmetic) for name in _selected_columns(query, table)]
        units = tuple(
            unit_with_scale(column if computed else replace(column, unit=""))
            for column, computed in zip(shown_columns, is_computed, strict=True)
        )
        columns = tuple(
            f"{column.name} ({unit})" if computed and unit else column.name
            for column, unit, computed in zip(shown_columns, units, is_computed, strict=True)
        )
        for one in reversed(query.sort):
            column = table.known(one.by)
            keys = [_sort_key(column, column.cells[row]) for row in rows]
            rows = _ordered(rows, keys, descending=one.descending)
        if query.limit is not None and query.sort and rows:
            by = table.known(query.sort[0].by)
            if _sort_key(by, by.cells[rows[0]]) is None:  # Rows without a key come last
                notes.append(f"no row has a value of {by.name}")
                undecided, rows = undecided | set(rows), []
        n_lines = len(rows)
        unread = _unplaced(query, rows, n_lines, table)
        left_out = set().union(*(left for _, left in unread))
        cells = [column.cells for column in shown_columns]
        shown = [row for row in rows if row not in left_out][: query.limit]
        lines = [Line(tuple(each[row] for each in cells), (row,)) for row in shown]
    for name, left in unread:
        notes += [f"{counted(len(left), 'cell')} of {name} cannot be read"] if left else []
        undecided |= left
    return Answer(
        query, columns, tuple(lines[: query.limit]), n_lines, units, tuple(sorted(undecided)), doubtful,
        tuple(dict.fromkeys(notes)), stated=stated,
    )  # fmt: skip


def _stated(query: Query, table: QueryTable, verdicts: Sequence[Verdict]) -> Stated | None:
    """For a count whose condition compares one column: count the rows that meet the other conditions and state this column."""
    parts = _parts(query.where)
    ordered = [one for one in parts if isinstance(one, Condition) and one.op in ORDERED]
    is_count = not query.group and [one.function for one in query.aggregate] == ["count"]
    if not is_count or len({str(one.column) for one in ordered}) != 1:
        return None
    column = table.known(ordered[0].column)
    others = tuple(one for one in parts if one not in ordered)
    meets = _verdicts(AllOf(all=others) if others else None, table)
    cells = [cell for cell, verdict in zip(column.cells, meets, strict=True) if verdict]
    n_empty = sum(cell is not None and is_blank(cell) for cell in cells)
    return Stated(sum(map(bool, verdicts)), len(cells) - n_empty, n_empty, column.name)


def _with_others(
    query: Query, table: QueryTable, verdicts: list[Verdict]
) -> tuple[QueryTable, list[Verdict], tuple[Row, ...]]:
    """Add the total rows that a query asks for by name; also return the doubtful rows that may meet it."""
    n, n_totals, whole = len(table), len(table.rows.totals), table.with_others
    others = list(_verdicts(query.where, whole))[n:]
    # A name that other rows have, too, means those rows: "Total" occurs in "Total Wine & More".
    is_named = any(
        one.op in ("is", "in", "contains")
        and table.known(one.column).kind == "text"
        and (not any(verdicts) or (one.op != "contains" and any(map(names_total, one.value))))
        for one in conditions(query.where)
    )
    chosen = others[:n_totals] if is_named else [False] * n_totals
    unsure = {row.key for row in table.rows.doubtful}
    doubtful = tuple(
        row
        for i, (row, verdict) in enumerate(zip(whole.rows.rows[n:], others, strict=True))
        if verdict is not False and row.key in unsure and not (i < n_totals and chosen[i])
    )
    left = [False] * (len(others) - n_totals)
    return whole, [*verdicts, *chosen, *left], doubtful


def _verdicts(
    where: Where | None, table: QueryTable, *, is_negated: bool = False
) -> Iterable[Verdict]:
    """Whether each row meets a condition or, if negated, does not meet it."""
    match where:
        case None:
            return [True] * len(table)
        case Not():
            return _verdicts(where.no, table, is_negated=not is_negated)
        case AllOf(all=those) | AnyOf(any=those):
            each = (_verdicts(one, table, is_negated=is_negated) for one in those)
            joined = all_of if isinstance(where, AllOf) is not is_negated else any_of
            return map(joined, zip(*each, strict=True))
        case Condition():
            column = table.known(where.column)
            meets = _test(where, column)
            # Most columns have few distinct cells.
            verdicts = {cell: cell if cell is None else meets(cell) for cell in set(column.cells)}
            if is_negated:  # An empty cell is neither at least 65 nor less than 65
                is_ordered = where.op in ORDERED
                verdicts = {
                    cell: False
                    if is_ordered and cell is not None and is_blank(cell)
                    else negated(one)
                    for cell, one in verdicts.items()
                }
            return map(verdicts.__getitem__, column.cells)


_OPPOSITES = {
    "is not empty": "is empty", "is not": "is", "not in": "in", "does not contain": "contains",
}  # fmt: skip


def _test(one: Condition, column: TypedColumn) -> Test:
    match one.op:
        case "is not empty" | "is not" | "not in" | "does not contain":
            meets = _test(one.model_copy(update={"op": _OPPOSITES[one.op]}), column)
            return lambda cell: negated(meets(cell))
        case "is empty":
            return column.is_without
        case "is" | "in":
            tests = [_equality(column, value) for value in one.value]
            return lambda cell: any_of(test(cell) for test in tests)
        case "contains":
            return _containment(one.value[0])
        case operator:
            wanted = _range(column, one.value[0])
            assert wanted
            return lambda cell: _read(
                column, cell, lambda low, high: placed(operator, (low, high), wanted)
            )


def _equality(column: TypedColumn, value: str) -> Test:
    form = fold(value)
    wanted = _range(column, value)
    if wanted is None:
        truth = truth_words(set(map(fold, column.values))) if column.kind == "text" else {}
        form = truth.get(form, form)
        return lambda cell: truth.get(own := fold(cell), own) == form
    return lambda cell: _read(column, cell, lambda *own: placed("is", own, wanted))


def _range(column: TypedColumn, value: str) -> Range | None:
    """The range of a value, by the kind of column: the number twice, or the first and last day of a period; None for text."""
    if column.kind == "number" and (found := plain_number(value)):
        return found.value, found.value
    if column.kind == "date":
        return read_period(value, column.is_day_first)[0]
    return None


def _read(column: TypedColumn, cell: str, test: Callable[[Any, Any], Verdict]) -> Verdict:
    """Test the number or period in a cell: an empty cell fails, an unreadable one is undecided."""
    if is_blank(cell):
        return False
    parsed = column.parsed.get(cell)
    if parsed is None:
        return None
    return test(*parsed) if column.kind == "date" else test(parsed, parsed)


def _containment(value: str) -> Test:
    """A test whether a cell contains a text at the start of a word, including special characters as in C++."""
    text = fold(value)
    words = word_form(text).rstrip()
    if not text.isascii() or not words:
        return lambda cell: text in fold(cell)
    is_marked = any(not (c.isalnum() or c.isspace() or c in _CONNECTING) for c in text)
    marked = text if is_marked else ""
    return lambda cell: words in word_form(fold(cell)) and marked in fold(cell)


def _sort_key(column: TypedColumn, cell: str | None) -> Any:
    """The sort key of a cell; None if it is empty or cannot be read."""
    if cell is None:
        return None
    match column.kind:
        case "number":
            return column.parsed.get(cell)
        case "date":
            return column.parsed[cell].first if cell in column.parsed else None
        case _:
            return None if is_no_key(cell) else fold(cell)


def _ordered(items: Sequence[_T], keys: Sequence[Any], *, descending: bool) -> list[_T]:
    """Sort items by their keys; items without a key come last, whatever the direction."""
    pairs = list(zip(keys, items, strict=True))
    known = sorted((p for p in pairs if p[0] is not None), key=itemgetter(0), reverse=descending)
    return [item for _, item in (*known, *(pair for pair in pairs if pair[0] is None))]


def _groups(query: Query, rows: Sequence[int], table: QueryTable) -> list[Line]:
    """One line per group, or one for all rows if the query has no groups."""
    columns = [table.known(name) for name in query.group]
    grouped: dict[tuple[Any, ...], list[int]] = {} if columns else {(): list(rows)}
    for row in _keyed(query, rows, table) if columns else ():
        key = tuple(_group_key(each, each.cells[row]) for each in columns)
        grouped.setdefault(key, []).append(row)
    names: list[Column] = [one.name for one in query.aggregate]
    groups = [
        (members, [_figure(one, members, table) for one in query.aggregate])
        for members in grouped.values()
    ]
    for one in reversed(query.sort):
        if one.by in names:
            at = names.index(one.by)
            keys = [figures[at] for _, figures in groups]
        else:
            column = table.known(one.by)
            keys = [_sort_key(column, column.cells[members[0]]) for members, _ in groups]
        groups = _ordered(groups, keys, descending=one.descending)
    lines = []
    for members, figures in groups:
        of_group = [each.cells[members[0]] for each in columns]
        shown = ("" if figure is None else str(figure) for figure in figures)
        lines.append(Line((*of_group, *shown), tuple(members)))
    return lines


def _keyed(query: Query, rows: Sequence[int], table: QueryTable) -> list[int]:
    """The rows that have a key in every grouping column."""
    columns = [table.known(name).cells for name in query.group]
    return [
        row
        for row in rows
        if not any(cell is not None and is_no_key(cell) for cell in (each[row] for each in columns))
    ]


def _group_key(column: TypedColumn, cell: str | None) -> str | float | None:
    number = column.parsed.get(cell or "") if column.kind == "number" else None
    return fold(cell) if number is None and cell is not None else number


def _figure(one: Aggregate, rows: Sequence[int], table: QueryTable) -> int | float | date | None:
    if one.column is None:
        return len(rows)
    column = table.known(one.column)
    is_without = column.is_without
    cells = [c for row in rows if (c := column.cells[row]) is not None and not is_without(c)]
    numbers: list[Any] = [column.parsed[cell] for cell in cells if cell in column.parsed]
    match one.function:
        case "count":
            return len(cells)
        case "count different":
            return len({_group_key(column, cell) for cell in cells})
        case "min" | "max" if column.kind == "date":
            days = (day for period in numbers for day in period)
            return (min if one.function == "min" else max)(days, default=None)
        case _ if not numbers:
            return None
        case "min":
            exact = min(numbers)
        case "max":
            exact = max(numbers)
        case "sum":
            exact = sum(numbers)
        case _:
            exact = sum(numbers) / len(numbers)
    if isinstance(one.column, Arithmetic) and exact != int(exact):
        exact = Decimal(f"{exact:.15g}")  # So that three thirds are 1
    return int(exact) if exact == int(exact) else float(exact)


def _unplaced(
    query: Query, rows: Sequence[int], n_lines: int, table: QueryTable
) -> list[tuple[Column | None, set[int]]]:
    """For each sort column, the rows without a sort key, if a limit cuts the answer."""
    if query.limit is None or query.limit >= n_lines:
        return []
    unplaced: list[tuple[Column | None, set[int]]] = []
    for one in query.sort:
        if column := table.column(one.by):
            is_clear = column.kind != "text" or has_one_order(column.values)
            unplaced.append((one.by, table.unread_rows(one.by, rows) if is_clear else set(rows)))
    return unplaced


def _named(query: Query) -> list[Column]:
    """The columns that the query uses for more than display."""
    names: list[Column] = [one.column for one in conditions(query.where)]
    names += [one.column for one in query.aggregate if one.column]
    names += [one for one in query.select if isinstance(one, Arithmetic)]
    figures: set[Column] = {one.name for one in query.aggregate}
    names += [one.by for one in query.sort if one.by not in figures]
    return list(dict.fromkeys(names))


def _selected_columns(query: Query, table: QueryTable) -> tuple[Column, ...]:
    """The selected columns, then those of conditions, so that a reader can check them."""
    if not query.select:
        return table.names
    filtered = [one.column for one in conditions(query.where)]
    return tuple(dict.fromkeys((*query.select, *filtered)))


def _unread_in(one: Aggregate, rows: Sequence[int], table: QueryTable) -> set[int]:
    """The rows that a figure omits because their value is undecided or cannot be read."""
    if one.column is None:
        return set()
    if one.function in ("count", "count different"):
        cells = table.known(one.column).cells
        return {row for row in rows if cells[row] is None}
    return table.unread_rows(one.column, rows)


def unit_with_scale(column: TypedColumn) -> str:
    """The unit and scale of a numeric column: `€`, `in thousands`, `€ in thousands`."""
    scale = f"in {scale_word(column.scale)}" if column.scale else ""
    return f"{column.unit} {scale}".strip()


def _unit(one: Aggregate, table: QueryTable) -> str:
    is_number = one.column is not None and not one.function.startswith("count")
    return unit_with_scale(table.known(one.column)) if is_number and one.column else ""


def _heading(one: Aggregate, table: QueryTable) -> str:
    unit = _unit(one, table)
    if unit and one.column and (column := table.known(one.column)) and scale_of(column.name):
        unit = column.unit  # The name contains the scale
    return f"{one.name} ({unit})" if unit else one.name


Nearest = Callable[[str], Mapping[str, Sequence[str]]]
"""A text → the values of each column that are most like it."""


def why_empty(query: Query, table: QueryTable, nearest: Nearest) -> str:
    """Which condition leaves a query without rows, and similar values in its column."""
    if not len(table):
        return "the table has no rows"
    parts = _parts(query.where)
    alone = [_count([one], table) for one in parts]
    failing = [one for one, n in zip(parts, alone, strict=True) if not n]
    if failing:
        shown = [f"{describe(one)}{_instead(one, table, nearest)}" for one in failing[:_MAX_NAMED]]
        return f"no row meets: {'; '.join(shown)}"
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
    return sum(verdict is True for verdict in _verdicts(where, table))


def _instead(where: Where, table: QueryTable, nearest: Nearest) -> str:
    """Values of a column that are similar to the requested one."""
    if not isinstance(where, Condition) or where.op not in ("is", "in", "contains", *ORDERED):
        return ""
    column = table.known(where.column)
    if column.kind in ("number", "date"):
        values = [value for value in column.values if value in column.parsed]
        values.sort(key=lambda value: _sort_key(column, value))
        if len(values) > _MAX_NAMED:
            return f" ({where.column} has {len(values):,} values from {values[0]} to {values[-1]})"
        return f" ({where.column} has: {', '.join(values)})" if values else ""
    if column.kind != "text" or where.op in ORDERED:
        return ""
    is_short = len(column.values) <= _MAX_NAMED  # Such as yes and no: shown in any case
    near = [value for wanted in where.value for value in nearest(wanted).get(column.name, ())]
    near += column.values if is_short else []
    return f" ({where.column} has: {', '.join(dict.fromkeys(near))})" if near else ""
