"""COUNT(ITEMS): how many entries a list has."""

from pearl.actions.native import Value
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "COUNT",
    (Parameter("ITEMS", ValueType.LIST),),
    "Return how many entries ITEMS has, as a number",
    returns=ValueType.NUMBER,
    is_native=True,
)


def run(items: list[str]) -> Value:
    """Count the entries.

    Example:
        >>> run(["a", "b", "a"])
        3
    """
    return len(items)
