"""PAIRS(A, B): every pair of two different keys."""

from collections.abc import Iterable
from itertools import combinations, product

from pearl.actions.pairing import check_n_pairs, unread_pairs
from pearl.actions.values import Value
from pearl.documents.numbers import read_number
from pearl.documents.rows import Row, Rows, without_duplicates
from pearl.dsl.signatures import Action, Parameter, ValueType

ACTION = Action(
    "PAIRS",
    (Parameter("A", ValueType.LIST, "rows"), Parameter("B", ValueType.LIST, "rows")),
    "Return every pair of two different values, one of A and one of B, the lower first, each once",
    returns=ValueType.LIST,
    is_native=True,
)


def run(a: Rows, b: Rows) -> Value:
    """Pair the values of two collections, in ascending order; numbers by size.

    Example:
        >>> rows = Rows(tuple(map(Row, ("10", "9", "11"))))
        >>> run(rows, rows).values
        ['(9, 10)', '(9, 11)', '(10, 11)']
    """
    sure_a, sure_b = _by_key(a.rows), _by_key(b.rows)
    all_a, all_b = _by_key((*a, *a.doubtful)), _by_key((*b, *b.doubtful))
    is_same = all_a.keys() == all_b.keys()
    check_n_pairs(len(all_a) * (len(all_a) - 1) // 2 if is_same else len(all_a) * len(all_b))
    place = {key: i for i, key in enumerate(_in_order({**all_a, **all_b}))}
    found = (
        combinations(place, 2)
        if is_same
        else sorted(
            {(x, y) if place[x] < place[y] else (y, x) for x, y in product(all_a, all_b) if x != y},
            key=lambda both: (place[both[0]], place[both[1]]),
        )
    )
    rows = {**all_b, **all_a}
    sure: list[Row] = []
    unsure: list[Row] = []
    for x, y in found:
        is_sure = (x in sure_a and y in sure_b) or (y in sure_a and x in sure_b)
        members = rows[x], rows[y]
        (sure if is_sure else unsure).append(Row(f"({x}, {y})", members=members))
    unread = [
        *unread_pairs(_unread(a), (*b, *b.doubtful)),
        *unread_pairs(_unread(b), (*a, *a.doubtful)),
    ]
    notes = tuple(dict.fromkeys((*a.notes, *b.notes)))
    return Rows(tuple(sure), "pair", (*unsure, *without_duplicates(unread)), notes)


def _by_key(rows: Iterable[Row]) -> dict[str, Row]:
    """The first row of each value."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.value is not None:
            found.setdefault(row.value.strip(), row)
    return found


def _unread(rows: Rows) -> list[Row]:
    return [row for row in (*rows.rows, *rows.doubtful) if row.value is None]


def _in_order(keys: Iterable[str]) -> list[str]:
    """By number if all are numbers, else by letter."""
    every = list(keys)
    try:
        return sorted(every, key=lambda key: (read_number(key), key))
    except ValueError:
        return sorted(every)
