"""COUNT_BY(ROWS, NAME): how many rows have each value."""

from pearl.actions.columns import read_column
from pearl.actions.groups import are_groups, counted, group
from pearl.actions.values import Value
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "COUNT_BY",
    (Parameter.named("ROWS"), Parameter("NAME")),
    "Return one row for each value of the field NAME in ROWS, with how many rows have it",
    returns=ValueType.LIST,
    is_native=True,
    counts=True,
)


def run(rows: Rows, name: str) -> Value:
    """Count by a field, or by parts of dates; of groups by this field, give their sizes.

    Example:
        >>> from pearl.documents.rows import Row
        >>> run(Rows(tuple(Row(user, {"User": user}) for user in "aba")), "User").lines()
        ['a: 2', 'b: 1']
    """
    if are_groups(rows) and rows.column == name:
        return counted(rows)
    return counted(group(rows, read_column(rows, name)))
