"""MAX(NUMBERS): the largest number."""

from pearl.actions.values import EmptyListError, Value, written_out
from pearl.documents.table.columns import numbers_of
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "MAX",
    (Parameter("NUMBERS", ValueType.LIST),),
    "Return the largest of NUMBERS",
    returns=ValueType.NUMBER,
    is_native=True,
    counts=True,
)


def run(items: list[str]) -> Value:
    """Take the largest.

    Example:
        >>> run(["12 mg", "1,000 mg", "-5"])
        1000
    """
    if not items:
        raise EmptyListError("the list is empty, it has no largest number")
    return written_out(max(numbers_of(items)))
