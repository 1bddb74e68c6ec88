"""RANKED(ROWS): rows in order, most first."""

from dataclasses import replace

from pearl.actions.groups import counted
from pearl.actions.ranking import ranked, ranking
from pearl.actions.values import Value
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "RANKED",
    (Parameter.named("ROWS"),),
    "Return the groups of ROWS by size, the rows by rating, or the values by how often, most first",
    returns=ValueType.LIST,
    is_native=True,
)


def run(rows: Rows) -> Value:
    """Sort; what is equal stays in its order.

    Example:
        >>> from pearl.documents.rows import Row
        >>> run(Rows(tuple(map(Row, "abbccb")))).lines()
        ['b: 3', 'c: 2', 'a: 1']
    """
    given = ranking(rows)
    order = tuple(entry.row for entry in ranked(given))
    unread = tuple(row for row in given.rows if row.value is None)
    result = replace(given.rows, rows=(*order, *unread))
    return result if given.rows is rows else counted(result)
