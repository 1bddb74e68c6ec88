"""TOP(ROWS, X, K): the best rows, compared with each other in groups."""

from collections.abc import Sequence
from dataclasses import replace

from pearl.actions.by_row import rate
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "TOP",
    (Parameter.named("ROWS"), Parameter("X"), Parameter("K", ValueType.TEXT, "number")),
    "Compare ROWS by X and return the first K of them, the first one first",
    returns=ValueType.LIST,
)
KIND = "pick"
READING = rate.READING


def collect(rows: Rows, replies: Sequence[str | None], column: str) -> Rows:
    """Order the rows by their place, a number from 1; those without one are left out.

    Example:
        >>> from pearl.documents.rows import Row
        >>> collect(Rows((Row("a"), Row("b"), Row("c"))), ["2", "", "1"], "top").values
        ['c', 'a']
    """
    placed = [(int(reply), row) for row, reply in zip(rows, replies, strict=True) if reply]
    doubtful = [row for row, reply in zip(rows, replies, strict=True) if reply is None]
    ordered = tuple(row for _, row in sorted(placed, key=lambda pair: pair[0]))
    return replace(rows.where(ordered, doubtful), is_answered=False)
