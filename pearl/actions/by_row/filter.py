"""FILTER(ROWS, X): the rows of which a condition is true."""

from collections.abc import Sequence

from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

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

    Example:
        >>> from pearl.documents.rows import Row
        >>> found = collect(Rows((Row("a"), Row("b"), Row("c"))), ["yes", "no", None], "kept")
        >>> found.values, [row.value for row in found.doubtful]
        (['a'], ['c'])
    """
    pairs = list(zip(rows, replies, strict=True))
    return rows.where(
        (row for row, reply in pairs if reply == "yes"),
        (row for row, reply in pairs if reply is None),
    )
