"""MOST(ROWS): what there is most of."""

from pearl.actions.ranking import place
from pearl.actions.values import Value
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter

ACTION = Action(
    "MOST",
    (Parameter.named("ROWS"),),
    "Return the largest group of ROWS, the row rated highest, or the value that occurs most often",
    is_native=True,
    counts=True,
)


def run(rows: Rows) -> Value:
    """Name the first of the ranking, and all that share its place, with "; " between.

    Example:
        >>> from pearl.documents.rows import Row
        >>> run(Rows(tuple(map(Row, "abcba")))).value
        'a; b'
    """
    return place(rows, 1)
