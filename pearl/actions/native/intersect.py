"""INTERSECT(A, B): the entries that two lists share."""

from pearl.actions.values import Value, without_repeats
from pearl.documents.comparisons import key_of
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "INTERSECT",
    (Parameter("A", ValueType.LIST), Parameter("B", ValueType.LIST)),
    "Return the entries that are in A and in B alike",
    returns=ValueType.LIST,
    is_native=True,
)


def run(a: list[str], b: list[str]) -> Value:
    """Keep the entries of the first list that the second has, too, each once, as the first has them.

    Example:
        >>> run(["Iron", "salt", "iron"], ["iron", "gold"])
        ['Iron']
    """
    shared = {key_of(item) for item in b}
    return without_repeats(item for item in a if key_of(item) in shared)
