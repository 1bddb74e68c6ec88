"""FIELD(ROWS, NAME): rows with one of their fields as their value."""

from dataclasses import replace

from pearl.actions.columns import read_column
from pearl.actions.values import Value
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
    """Take a field of every row; it may be a part of a date (`Date by month`).

    Example:
        >>> from pearl.documents.rows import Row
        >>> run(Rows((Row("A: 1", {"A": "1"}),)), "a").values
        ['1']
    """
    column = read_column(rows, name)
    return replace(
        rows,
        rows=tuple(row.valued(v) for row, v in zip(rows.rows, column.values, strict=True)),
        doubtful=tuple(
            row.valued(v) for row, v in zip(rows.doubtful, column.doubtful, strict=True)
        ),
        column=column.name,
        notes=tuple(dict.fromkeys((*rows.notes, *column.notes))),
        is_answered=False,
        columns=(),
    )
