"""LAST(ITEMS): the entry that stands last."""

from pearl.actions.values import EmptyListError, Value
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "LAST",
    (Parameter("ITEMS", ValueType.LIST),),
    "Return the entry that stands last in ITEMS",
    returns=ValueType.TEXT,
    is_native=True,
)


def run(items: list[str]) -> Value:
    """Take the last entry.

    Example:
        >>> run(["a", "b"])
        'b'
    """
    if not items:
        raise EmptyListError("the list is empty, it has no last entry")
    return items[-1]
