"""FIELD(ROWS, NAME): rows with one of their fields as their value."""

from dataclasses import replace

from pearl.actions.columns import find_column
from pearl.actions.native import Value
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "FIELD",
    (Parameter.named("ROWS"), Parameter("NAME")),
    'Return the same rows with their field NAME as their value, or all that they read for "text"',
    returns=ValueType.LIST,
    is_native=True,
)


def run(rows: Rows, name: str) -> Value:
    """Take a field of every row.

    Raises:
        ValueError: No row has such a field.

    Example:
        >>> from pearl.documents.rows import Row
        >>> run(Rows((Row("A: 1", {"A": "1"}),)), "a").values
        ['1']
    """
    column = find_column(rows, name)
    taken = tuple(replace(row, value=column.value(row)) for row in rows)
    return replace(rows, rows=taken, column=column.name, is_answered=False)
