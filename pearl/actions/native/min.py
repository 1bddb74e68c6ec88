"""MIN(NUMBERS): the smallest number."""

from pearl.actions.values import EmptyListError, Value, written_out
from pearl.documents.table.columns import numbers_of
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "MIN",
    (Parameter("NUMBERS", ValueType.LIST),),
    "Return the smallest of NUMBERS",
    returns=ValueType.NUMBER,
    is_native=True,
    counts=True,
)


def run(items: list[str]) -> Value:
    """Take the smallest.

    Example:
        >>> run(["12 mg", "1,000 mg", "-5"])
        -5
    """
    if not items:
        raise EmptyListError("the list is empty, it has no smallest number")
    return written_out(min(numbers_of(items)))
