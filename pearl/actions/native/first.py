"""FIRST(ITEMS): the entry that stands first."""

from pearl.actions.values import EmptyListError, Value
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "FIRST",
    (Parameter("ITEMS", ValueType.LIST),),
    "Return the entry that stands first in ITEMS",
    returns=ValueType.TEXT,
    is_native=True,
)


def run(items: list[str]) -> Value:
    """Take the first entry.

    Example:
        >>> run(["a", "b"])
        'a'
    """
    if not items:
        raise EmptyListError("the list is empty, it has no first entry")
    return items[0]
