"""FILTER(ROWS, X): the rows of which a condition is true."""

from collections.abc import Sequence

from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType
from pearl.replies.items import NOT_STATED

ACTION = Action(
    "FILTER",
    (Parameter.named("ROWS"), Parameter("X")),
    "Say of each of ROWS, on its own, whether X is true of it, and keep those of which it is",
    returns=ValueType.LIST,
)
KIND = "yes_no"
READING = Action(
    "IS_TRUE",
    (Parameter.named("CTX"), Parameter("X")),
    "Say whether X is true of CTX, yes or no",
    returns=ValueType.BOOL,
)


def collect(rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
    """Keep the rows with the reply "yes"; without a reply, it is undecided whether one belongs here.

    A note says how many of the others do not state it.

    Example:
        >>> from pearl.documents.rows import Row
        >>> kept = collect(Rows(tuple(map(Row, "abcd"))), ["yes", "no", None, "not stated"], "kept")
        >>> kept.values, [row.value for row in kept.doubtful], kept.notes
        (['a'], ['c'], ('kept: 1 yes, 1 no, 1 not stated',))
    """
    pairs = list(zip(rows, replies, strict=True))
    n_unstated = replies.count(NOT_STATED)
    if n_unstated:
        n_yes, n_no = replies.count("yes"), replies.count("no")
        rows = rows.noting(f"{column}: {n_yes:,} yes, {n_no:,} no, {n_unstated:,} {NOT_STATED}")
    return rows.where(
        (row for row, reply in pairs if reply == "yes"),
        (row for row, reply in pairs if reply is None),
    )
