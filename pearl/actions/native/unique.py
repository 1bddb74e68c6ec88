"""UNIQUE(ITEMS): a list without repeats."""

from pearl.actions.values import Value, without_repeats
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "UNIQUE",
    (Parameter("ITEMS", ValueType.LIST),),
    "Return ITEMS with repeated entries dropped, keeping the order in which they first appear",
    returns=ValueType.LIST,
    is_native=True,
)


def run(items: list[str]) -> Value:
    """Keep each entry where it stands first.

    Example:
        >>> run(["Oslo", "Bergen", "oslo"])
        ['Oslo', 'Bergen']
    """
    return without_repeats(items)
