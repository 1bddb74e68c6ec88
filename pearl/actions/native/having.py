"""HAVING(ROWS, OP, N): the groups of a certain size."""

from dataclasses import replace

from pearl.actions.groups import are_groups, n_of_any, size_range
from pearl.actions.values import Value
from pearl.documents.numbers import whole_number
from pearl.documents.rows import Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

OPERATORS = ("is", "is not", "at least", "at most")

ACTION = Action(
    "HAVING",
    (
        Parameter.named("ROWS"),
        Parameter("OP", choices=OPERATORS),
        Parameter("N", reads="number"),
    ),
    f"Return those groups of ROWS that have as many rows as OP and N say: {', '.join(OPERATORS)}",
    returns=ValueType.LIST,
    is_native=True,
    counts=True,
)


def run(rows: Rows, operator: str, n: int | float) -> Value:
    """Select groups; those whose undecided rows might change it are doubtful.

    Example:
        >>> from pearl.documents.rows import Row
        >>> groups = Rows((Row("a", members=(Row("x"), Row("y"))), Row("b", members=(Row("z"),))))
        >>> run(groups, "at least", 2).values
        ['a']
    """
    if operator not in OPERATORS:
        raise ValueError(f"'{operator}' is no operator; operators are {', '.join(OPERATORS)}")
    size = whole_number(n, "N", least=0)
    if len(rows) and not are_groups(rows):
        raise ValueError("there are no groups; GROUP and COUNT_BY make some")
    n_any = n_of_any(rows)
    sure = [(row, _meets(operator, size, *size_range(row, n_any))) for row in rows]
    unsure = [
        row
        for row in rows.doubtful
        if row.value is None or _meets(operator, size, *size_range(row, n_any)) is not False
    ]
    return replace(
        rows,
        rows=tuple(row for row, verdict in sure if verdict),
        doubtful=(*(row for row, verdict in sure if verdict is None), *unsure),
    )


def _meets(operator: str, size: int, low: int, high: int) -> bool | None:
    """Whether a number from low to high meets the condition; None if some do and some do not."""
    match operator:
        case "at least":
            ends = low >= size, high >= size
        case "at most":
            ends = low <= size, high <= size
        case "is":
            ends = low == high == size, low <= size <= high
        case _:
            ends = low != size != high and not low < size < high, not low == high == size
    return ends[0] if ends[0] == ends[1] else None
