"""LEAST(ROWS): what there is least of."""

from pearl.actions.ranking import place
from pearl.actions.values import Value
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter

ACTION = Action(
    "LEAST",
    (Parameter.named("ROWS"),),
    "Return the smallest group of ROWS, the row rated lowest, or the value that occurs least often",
    is_native=True,
    counts=True,
)


def run(rows: Rows) -> Value:
    """Name the last of the ranking, and all that share its place, with "; " between.

    Example:
        >>> from pearl.documents.rows import Row
        >>> run(Rows(tuple(map(Row, "abcba")))).value
        'c'
    """
    return place(rows, 1, least_first=True)
