"""GROUP(ROWS, NAME): the rows with the same value together."""

from pearl.actions.columns import read_column
from pearl.actions.groups import group
from pearl.actions.values import Value
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "GROUP",
    (Parameter.named("ROWS"), Parameter("NAME")),
    "Return one row for each value of the field NAME in ROWS, with the rows that have it as members",
    returns=ValueType.LIST,
    is_native=True,
)


def run(rows: Rows, name: str) -> Value:
    """Group by a field, or by parts of dates (`Date by month`); in order of first occurrence.

    Example:
        >>> from pearl.documents.rows import Row
        >>> rows = Rows(tuple(Row(user, {"User": user}) for user in "abca"))
        >>> [(row.value, len(row.members)) for row in run(rows, "User")]
        [('a', 2), ('b', 1), ('c', 1)]
    """
    return group(rows, read_column(rows, name))
