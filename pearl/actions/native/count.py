"""COUNT(ITEMS): how many entries a list has."""

from pearl.actions.values import Value
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "COUNT",
    (Parameter("ITEMS", ValueType.LIST),),
    "Return how many entries ITEMS has, as a number",
    returns=ValueType.NUMBER,
    is_native=True,
    counts=True,
)


def run(items: list[str]) -> Value:
    """Count the entries.

    Example:
        >>> run(["a", "b", "a"])
        3
    """
    return len(items)


def bounds(rows: Rows) -> tuple[int, int]:
    """The least and the most that the count of rows is, whatever the undecided ones are."""
    n = len(rows.values)
    # A row without a value may stand for several: a pair whose key is not known.
    return n, n + sum(
        max(1, len(row.possible)) if row.value is None else 1 for row in rows.undecided
    )
