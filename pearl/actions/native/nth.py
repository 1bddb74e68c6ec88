"""NTH(ROWS, K): what has a place in the ranking."""

from pearl.actions.ranking import place
from pearl.actions.values import Value
from pearl.documents.numbers import whole_number
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter

ACTION = Action(
    "NTH",
    (Parameter.named("ROWS"), Parameter("K", reads="number")),
    "Return what has place K in the ranking of ROWS, most first",
    is_native=True,
    counts=True,
)


def run(rows: Rows, k: int | float) -> Value:
    """Name what has a place, and all that share it: of 5, 3, 3 and 1, two share the places 2 and 3.

    Example:
        >>> from pearl.documents.rows import Row
        >>> run(Rows(tuple(map(Row, "aaabbcc"))), 2).value
        'b; c'
    """
    return place(rows, whole_number(k, "K", least=1))
