"""WHERE(ROWS, NAME, OP, X): the rows with a certain value."""

from dataclasses import replace

from pearl.actions.conditions import judge
from pearl.actions.groups import are_groups
from pearl.actions.native import having
from pearl.actions.values import Value, as_text
from pearl.documents.comparisons import OPERATORS
from pearl.documents.numbers import read_number
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "WHERE",
    (
        Parameter.named("ROWS"),
        Parameter("NAME"),
        Parameter("OP", choices=OPERATORS),
        Parameter("X", reads="value"),
    ),
    f"Return those ROWS whose field NAME compares with X as OP says: {', '.join(OPERATORS)}",
    returns=ValueType.LIST,
    is_native=True,
)


def run(rows: Rows, name: str, operator: str, x: Value) -> Value:
    """Select rows; those of which it is undecided are doubtful.

    Example:
        >>> from pearl.documents.rows import Row
        >>> rows = Rows(tuple(Row(d, {"Date": d}) for d in ("2023-05-31", "2023-06-01", "")))
        >>> run(rows, "Date", "before", "June 2023").values
        ['2023-05-31']
    """
    if name == "count" and rows.shows_possible and are_groups(rows):
        return having.run(rows, operator, read_number(as_text(x)))
    judged = judge(rows, name, operator, x)
    return replace(
        rows,
        rows=tuple(row for row, verdict in judged.rows if verdict),
        doubtful=(
            *(row for row, verdict in judged.rows if verdict is None),
            *(row for row, verdict in judged.doubtful if verdict is not False),
        ),
        notes=tuple(dict.fromkeys((*rows.notes, *judged.notes))),
    )
