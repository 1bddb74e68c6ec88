"""MATCH(A, B, NAME): the pairs of rows with the same value in a field."""

from pearl.actions.columns import read_column
from pearl.actions.pairing import check_n_pairs, identity, pair, unread_pairs
from pearl.actions.values import Value
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "MATCH",
    (
        Parameter("A", ValueType.LIST, "rows"),
        Parameter("B", ValueType.LIST, "rows"),
        Parameter("NAME"),
    ),
    "Return every pair of a row of A and a row of B that have the same value in the field NAME",
    returns=ValueType.LIST,
    is_native=True,
)


def run(a: Rows, b: Rows, name: str) -> Value:
    r"""Join on a field; empty values match nothing. Rows of one collection are not their own match.

    Example:
        >>> left = Rows((Row("x", {"User": "1"}), Row("y", {"User": "2"})))
        >>> [row.value for row in run(left, Rows((Row("z", {"User": "2"}),)), "User")]
        ['A: y\nB: z']
    """
    left, right = read_column(a, name), read_column(b, name)
    partners: dict[str, list[tuple[Row, bool]]] = {}
    for rows, values, is_sure in (
        (b.rows, right.values, True),
        (b.doubtful, right.doubtful, False),
    ):
        for row, value in zip(rows, values, strict=True):
            if value and value.strip():
                partners.setdefault(value.strip(), []).append((row, is_sure))
    both = [
        (row, value.strip(), is_sure)
        for rows, values, is_sure in (
            (a.rows, left.values, True),
            (a.doubtful, left.doubtful, False),
        )
        for row, value in zip(rows, values, strict=True)
        if value and value.strip() in partners
    ]
    check_n_pairs(sum(len(partners[value]) for _, value, _ in both))
    sure: list[Row] = []
    unsure: list[Row] = []
    seen: set[tuple[object, object]] = set()
    for row, value, is_sure in both:
        for other, is_other_sure in partners[value]:
            one, two = identity(row), identity(other)
            if one == two or (two, one) in seen:
                continue
            seen.add((one, two))
            (sure if is_sure and is_other_sure else unsure).append(pair(row, other))
    unread = [
        *unread_pairs(_unread(a, [*left.values, *left.doubtful]), (*b, *b.doubtful)),
        *unread_pairs(_unread(b, [*right.values, *right.doubtful]), (*a, *a.doubtful)),
    ]
    notes = tuple(dict.fromkeys((*a.notes, *b.notes, *left.notes, *right.notes)))
    return Rows(tuple(sure), "pair", (*unsure, *unread), notes)


def _unread(rows: Rows, values: list[str | None]) -> list[Row]:
    every = (*rows.rows, *rows.doubtful)
    return [row for row, value in zip(every, values, strict=True) if value is None]
