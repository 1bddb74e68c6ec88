"""DIFFERENCE(A, B): the entries of one list that another lacks."""

from pearl.actions.values import Value
from pearl.documents.comparisons import key_of
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "DIFFERENCE",
    (Parameter("A", ValueType.LIST), Parameter("B", ValueType.LIST)),
    "Return the entries of A that are not in B",
    returns=ValueType.LIST,
    is_native=True,
)


def run(a: list[str], b: list[str]) -> Value:
    """Keep the entries of the first list that the second lacks, repeats and order included.

    Example:
        >>> run(["Iron", "salt", "gold"], ["iron"])
        ['salt', 'gold']
    """
    taken = {key_of(item) for item in b}
    return [item for item in a if key_of(item) not in taken]
