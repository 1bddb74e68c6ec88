"""Native actions that group, count and rank rows."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from pearl.actions.columns import read_column
from pearl.actions.groups import group, place
from pearl.actions.native import Family
from pearl.actions.values import EmptyListError, Scalar, Value
from pearl.documents.numbers import UnclearNumberError, whole_number
from pearl.documents.rows import Rows, without_duplicates
from pearl.dsl.signatures import Parameter, ValueType

PLUGINS = Family()

_ROWS_AND_FIELD = (Parameter.named("ROWS"), Parameter("FIELD"))


@PLUGINS.action(
    "GROUP", _ROWS_AND_FIELD,
    "Return one row for each value of FIELD in ROWS, with its rows as members and their number as the field count",
    returns=ValueType.LIST, traits=["groups", "by_field", "counts"],
)  # fmt: skip
def group_by(rows: Rows, name: str) -> Value:
    """Group by a field, or by parts of dates (`Date by month`); in order of first occurrence."""
    is_grouped = rows.shows_possible and rows.column == name
    return rows if is_grouped else group(rows, read_column(rows, name))


@PLUGINS.action(
    "NTH", (*_ROWS_AND_FIELD, Parameter("K", reads="number", least=None)),
    "Return what is on rank K of ROWS by FIELD, of groups by count, the largest first; -1 is the last",
    traits=["picks", "sums_up"],
)  # fmt: skip
def nth(rows: Rows, name: str, k: int | float) -> Value:
    """Return all that share a rank, joined by "; ": of the scores 5, 3, 3 and 1, the two 3s share the ranks 2 and 3."""
    return place(rows, name, whole_number(k, "K", least=None))


@PLUGINS.action(
    "SHARE", (Parameter("PART", ValueType.LIST, "rows"), Parameter("WHOLE", ValueType.LIST, "rows")),
    "Return the share of WHOLE that PART is, both rows or lists, from 0 to 1",
    traits=["counts"],
)  # fmt: skip
def share(part: Rows, whole: Rows) -> Value:
    """Return the share of PART in WHOLE among decided rows."""
    if not whole.every:
        raise EmptyListError("there are no rows to take a share of")
    sure, unsure = Counter(row.key for row in whole), Counter(row.key for row in part.doubtful)
    others = Counter(row.key for row in part) - sure
    if n_others := (others + (unsure - Counter(row.key for row in whole.every))).total():
        raise ValueError(f"PART is not a part of WHOLE: {n_others:,} of its rows are not in WHOLE")
    n_open = (unsure & sure).total()
    n_read = len(whole) - n_open
    if not n_read:
        raise UnclearNumberError("no row is decided, so there is no share")
    # A doubtful row changes only one bound.
    low = len(part) / (len(whole) + len(whole.doubtful))
    n_may = unsure.total() - n_open
    high = (len(part) + n_open + n_may) / (len(whole) + n_may)
    behind = replace(
        part, doubtful=without_duplicates((*part.doubtful, *whole.doubtful)), columns=(),
        shows_possible=False,
    ).noting(*whole.notes)  # fmt: skip
    is_of_all = part.stated is not None and part.stated.of + part.stated.not_stated == n_read
    stated = part.stated if is_of_all else None
    return Scalar(len(part) / n_read, behind, low=low, high=high, stated=stated)
