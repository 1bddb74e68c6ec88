"""MOST_BY(ROWS, NAME): the value that occurs most, for each key."""

from dataclasses import replace

from pearl.actions.columns import read_column
from pearl.actions.groups import group
from pearl.actions.ranking import place
from pearl.actions.values import Value
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "MOST_BY",
    (Parameter.named("ROWS"), Parameter("NAME")),
    "Return one row for each value of the field NAME in ROWS, with the value that its rows have most",
    returns=ValueType.LIST,
    is_native=True,
    counts=True,
)


def run(rows: Rows, name: str) -> Value:
    """Group rows by a field and name the most frequent value of each group; ties are all named.

    A value that undecided rows may change is undecided.

    Example:
        >>> days = [("a", "1"), ("b", "1"), ("a", "1"), ("a", "2"), ("b", "2")]
        >>> rows = Rows(tuple(Row(label, {"Day": day}) for label, day in days), "label")
        >>> [(row.fields["Day"], row.value) for row in run(rows, "Day")]
        [('1', 'a'), ('2', 'a; b')]
    """
    groups = group(rows, read_column(rows, name))
    of_any = [row for each in groups.doubtful if each.value is None for row in each.possible]

    def most(each: Row) -> Row:
        own = replace(
            rows, rows=each.members, doubtful=(*each.possible, *of_any), is_answered=False
        )
        found = place(own, 1)
        return each.with_column(rows.column, None if found.rows.undecided else str(found.value))

    return replace(
        groups,
        rows=tuple(map(most, groups)),
        doubtful=tuple(map(most, groups.doubtful)),
        column=rows.column,
    )
