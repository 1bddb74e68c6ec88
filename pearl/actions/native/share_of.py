"""SHARE_OF(ROWS, NAME, X): which share of the rows has a value."""

from dataclasses import replace

from pearl.actions.conditions import judge
from pearl.actions.estimates import INTERVAL, wilson
from pearl.actions.values import EmptyListError, Scalar, Value
from pearl.documents.numbers import UnclearNumberError
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter

ACTION = Action(
    "SHARE_OF",
    (Parameter.named("ROWS"), Parameter("NAME"), Parameter("X", reads="value")),
    "Return which share of ROWS has the value X in the field NAME, a number from 0 to 1",
    is_native=True,
    counts=True,
)


def run(rows: Rows, name: str, x: Value) -> Value:
    """The share of those rows that are decided; of several values, the share that has one of them.

    Example:
        >>> from pearl.documents.rows import Row
        >>> rows = Rows(tuple(Row(each, {"label": each}) for each in ("a", "b", "a", "c")))
        >>> run(rows, "label", "a").value
        0.5
    """
    judged = judge(rows, name, "in" if isinstance(x, list | Rows) else "is", x)
    found = [row for row, verdict in judged.rows if verdict]
    others = [row for row, verdict in judged.rows if verdict is False]
    unsure = [row for row, verdict in judged.rows if verdict is None]
    n_found, n_read, n = len(found), len(found) + len(others), len(judged.rows)
    if not (n or judged.doubtful):
        raise EmptyListError("there are no rows to take a share of")
    if not n_read:
        raise UnclearNumberError("no row is decided, so there is no share")
    # Doubtful rows count for one end or the other, where they can.
    n_not = sum(verdict is not True for _, verdict in judged.doubtful)
    n_may = sum(verdict is not False for _, verdict in judged.doubtful)
    low = n_found / (n + n_not)
    high = (n_found + len(unsure) + n_may) / (n + n_may)
    notes = tuple(dict.fromkeys((*rows.notes, *judged.notes)))
    if rows.sample:
        ends = wilson(n_found, n_read)
        notes += (f"{INTERVAL} of the share: {ends[0]:.3f} to {ends[1]:.3f}",)
    doubtful = (*unsure, *(row for row, _ in judged.doubtful))
    behind = replace(rows, rows=tuple(found), doubtful=doubtful, notes=notes)
    return Scalar(n_found / n_read, behind, low=low, high=high)
