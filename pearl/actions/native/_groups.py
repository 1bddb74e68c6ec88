"""Native actions that group, count and rank rows."""

from __future__ import annotations

from dataclasses import replace

from pearl.actions.columns import read_column, wanted_by
from pearl.actions.groups import are_groups, counted, group, n_of_any, place, ranking, size_range
from pearl.actions.native import Family
from pearl.actions.values import MAY_CHANGE, Value, bounded
from pearl.documents.comparisons import key_of
from pearl.documents.numbers import whole_number
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import Parameter, ValueType

PLUGINS = Family()

_ROWS = (Parameter.named("ROWS"),)
_ROWS_AND_NAME = (*_ROWS, Parameter("NAME"))


@PLUGINS.action(
    "GROUP", _ROWS_AND_NAME,
    "Return one row for each value of the field NAME in ROWS, with the rows that have it as members",
    returns=ValueType.LIST, traits=["groups", "by_field"],
)  # fmt: skip
def group_by(rows: Rows, name: str) -> Value:
    """Group by a field, or by parts of dates (`Date by month`); in order of first occurrence."""
    return group(rows, read_column(rows, name))


@PLUGINS.action(
    "COUNT_BY", _ROWS_AND_NAME,
    "Return one row for each value of the field NAME in ROWS, with how many rows have it",
    returns=ValueType.LIST, traits=["groups", "by_field", "counts"],
)  # fmt: skip
def count_by(rows: Rows, name: str) -> Value:
    """Count by a field, or by parts of dates; of groups by this field, give their sizes."""
    if are_groups(rows) and rows.column == name:
        return counted(rows)
    return counted(group(rows, read_column(rows, name)))


@PLUGINS.action(
    "COUNT_OF", (Parameter.named("ROWS"), Parameter("KEY", reads="value")),
    "Return how many rows the group KEY of ROWS has, or how many of ROWS have the value KEY",
    traits=["counts"],
)  # fmt: skip
def count_of(rows: Rows, key: Value) -> Value:
    """The size of a group, or how often a value occurs; 0 if it does not."""
    if len(rows) and rows.are_figures:
        raise ValueError(
            f"the rows are the {rows.column} of groups; count the rows or the result of COUNT_BY"
        )
    wanted = wanted_by(key, is_list=False)
    sure = {key_of(text) for text in wanted.sure}
    possible = {key_of(text) for text in wanted.possible}
    is_grouped = are_groups(rows) and not rows.is_answered

    counted_rows: list[Row] = []
    unsure: list[Row] = []
    for i, row in enumerate(rows.every):
        if row.value is None:
            unsure.append(row)
            continue
        members, others = (row.members, row.possible) if is_grouped else ((row,), ())
        value = key_of(row.value)
        if i < len(rows) and value in sure:
            counted_rows += members
            unsure += others
        elif wanted.may_be_any or value in sure | possible:
            unsure += (*members, *others)
    n, n_unsure = len(counted_rows), len(unsure)
    groups = rows if is_grouped else group(rows, read_column(rows, rows.column))
    stated = groups.stated and groups.stated._replace(value=n)
    if is_grouped:
        n_unsure += n_of_any(rows) - sum(row.value is None for row in rows.doubtful)
    behind = Rows(tuple(counted_rows), rows.column, tuple(unsure), rows.notes, sample=rows.sample)
    return bounded(n, behind, n, n + n_unsure, stated)


OPERATORS = ("is", "is not", "at least", "at most")


@PLUGINS.action(
    "HAVING",
    (Parameter.named("ROWS"), Parameter("OP", choices=OPERATORS), Parameter("N", reads="number", least=0)),
    f"Return those groups of ROWS that have as many rows as OP and N say: {', '.join(OPERATORS)}",
    returns=ValueType.LIST, traits=["selects", "sums_up"],
)  # fmt: skip
def having(rows: Rows, operator: str, n: int | float) -> Value:
    """Select groups; groups whose undecided rows might change the selection are doubtful."""
    if operator not in OPERATORS:
        raise ValueError(f"unknown operator '{operator}'; operators are {', '.join(OPERATORS)}")
    size = whole_number(n, "N", least=0)
    if len(rows) and not are_groups(rows):
        raise ValueError("the rows are not groups; use GROUP or COUNT_BY first")
    n_any = n_of_any(rows)
    n_without = rows.stated.not_stated if rows.stated else 0
    judged = [(row, _meets(operator, size, *size_range(row, n_any))) for row in rows.every]
    # A row that does not state its key may belong to any group.
    may_change = sum(
        verdict is not None and verdict != _meets(operator, size, *size_range(row, n_any + n_without))
        for row, verdict in judged
    )  # fmt: skip
    told = (
        f"{MAY_CHANGE} which of {may_change:,} groups there are: {n_without:,} rows are in no group"
    )
    sure, unsure = judged[: len(rows)], judged[len(rows) :]
    return replace(
        rows,
        rows=tuple(row for row, verdict in sure if verdict),
        doubtful=(
            *(row for row, verdict in sure if verdict is None),
            *(row for row, verdict in unsure if row.value is None or verdict is not False),
        ),
    ).noting(*[told] * bool(may_change))


def _meets(operator: str, size: int, low: int, high: int) -> bool | None:
    """Whether a number from low to high meets the condition; None if some do and some do not."""
    match operator:
        case "at least":
            ends = low >= size, high >= size
        case "at most":
            ends = low <= size, high <= size
        case "is":
            ends = low == high == size, low <= size <= high
        case _:
            ends = low != size != high and not low < size < high, not low == high == size
    return ends[0] if ends[0] == ends[1] else None


@PLUGINS.action(
    "MOST", _ROWS,
    "Return the largest group of ROWS, the row rated highest, or the value that occurs most often",
    traits=["picks", "sums_up"],
)  # fmt: skip
def most(rows: Rows) -> Value:
    """Return the first entry of the ranking and all that share its place, joined by "; "."""
    return place(rows, 1)


@PLUGINS.action(
    "LEAST", _ROWS,
    "Return the smallest group of ROWS, the row rated lowest, or the value that occurs least often",
    traits=["picks", "sums_up"],
)  # fmt: skip
def least(rows: Rows) -> Value:
    """Return the last entry of the ranking and all that share its place, joined by "; "."""
    return place(rows, 1, least_first=True)


@PLUGINS.action(
    "NTH", (Parameter.named("ROWS"), Parameter("K", reads="number")),
    "Return what has place K in the ranking of ROWS, most first", traits=["picks", "sums_up"],
)  # fmt: skip
def nth(rows: Rows, k: int | float) -> Value:
    """Return the entries at a place: of the scores 5, 3, 3 and 1, the two 3s share the places 2 and 3."""
    return place(rows, whole_number(k, "K", least=1))


@PLUGINS.action(
    "RANKED", _ROWS,
    "Return the groups of ROWS by size, the rows by rating, or the values by how often, most first",
    returns=ValueType.LIST, traits=["selects"],
)  # fmt: skip
def in_order(rows: Rows) -> Value:
    """Sort; equal entries keep their order."""
    groups, order, _ = ranking(rows)
    ranked = tuple(entry.row for entry in order)
    unread = (row for row in groups if row.value is None) if len(ranked) < len(groups) else ()
    result = replace(groups, rows=(*ranked, *unread))
    result = result if groups is rows else counted(result)
    by = result.column if result.is_answered else "count"
    return result.reordered(by=by if by in result.names else "")


@PLUGINS.action(
    "MOST_BY", _ROWS_AND_NAME,
    "Return one row for each value of the field NAME in ROWS, with the value that its rows have most",
    returns=ValueType.LIST, traits=["sums_up"],
)  # fmt: skip
def most_by(rows: Rows, name: str) -> Value:
    """Group rows by a field and return the most frequent value of each group, or all tied values."""
    groups = group(rows, read_column(rows, name))
    of_any = [row for each in groups.doubtful if each.value is None for row in each.possible]

    def most(each: Row) -> Row:
        own = replace(
            rows, rows=each.members, doubtful=(*each.possible, *of_any), is_answered=False
        )
        winner = place(own, 1)
        return each.with_column(rows.column, None if winner.rows.undecided else str(winner.value))

    return replace(
        groups,
        rows=tuple(map(most, groups)),
        doubtful=tuple(map(most, groups.doubtful)),
        column=rows.column,
    )
