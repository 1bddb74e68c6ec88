"""UNION(A, B, ...): the entries of several lists, without repeats."""

from itertools import chain

from pearl.actions.values import Value, without_repeats
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "UNION",
    (Parameter("A", ValueType.LIST), Parameter("B", ValueType.LIST)),
    "Return the entries of A, B and any further lists as one list without repeats",
    is_variadic=True,
    returns=ValueType.LIST,
    is_native=True,
)


def run(*lists: list[str]) -> Value:
    """Put the lists one after the other and keep each entry where it stands first.

    Example:
        >>> run(["a", "b"], ["B", "c"], ["d"])
        ['a', 'b', 'c', 'd']
    """
    return without_repeats(chain.from_iterable(lists))
