"""COUNT_OF(ROWS, KEY): how many rows a value has."""

from pearl.actions.conditions import wanted_by
from pearl.actions.groups import are_groups, n_of_any
from pearl.actions.values import Value, bounded
from pearl.documents.comparisons import key_of
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import Action, Parameter

ACTION = Action(
    "COUNT_OF",
    (Parameter.named("ROWS"), Parameter("KEY", reads="value")),
    "Return how many rows the group KEY of ROWS has, or how many of ROWS have the value KEY",
    is_native=True,
    counts=True,
)


def run(rows: Rows, key: Value) -> Value:
    """The size of a group, or how often a value occurs; 0 if it does not.

    Of several keys, the sum.

    Example:
        >>> run(Rows((Row("a"), Row("b"), Row("a"))), "a").value
        2
    """
    wanted = wanted_by(key, is_list=False)
    sure = {key_of(text) for text in wanted.sure}
    possible = {key_of(text) for text in wanted.possible}
    is_grouped = are_groups(rows) and not rows.is_answered

    def parts(row: Row) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
        return (row.members, row.possible) if is_grouped else ((row,), ())

    found: list[Row] = []
    unsure: list[Row] = []
    for row in rows:
        if row.value is None:
            unsure.append(row)
        elif key_of(row.value) in sure:
            certain, maybe = parts(row)
            found += certain
            unsure += maybe
        elif wanted.may_be_any or key_of(row.value) in possible:
            unsure += (each for some in parts(row) for each in some)
    for row in rows.doubtful:
        if row.value is None:
            unsure.append(row)
        elif wanted.may_be_any or key_of(row.value) in sure | possible:
            unsure += (each for some in parts(row) for each in some)
    n, n_unsure = len(found), len(unsure)
    if is_grouped:
        n_unsure += n_of_any(rows) - sum(row.value is None for row in rows.doubtful)
    behind = Rows(tuple(found), rows.column, tuple(unsure), rows.notes, sample=rows.sample)
    return bounded(n, behind, n, n + n_unsure)
