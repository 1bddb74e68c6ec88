"""Native actions that pair rows of two collections."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product

from pearl.actions.columns import read_column
from pearl.actions.native import Family
from pearl.actions.values import Value
from pearl.documents.numbers import read_number, whole_number
from pearl.documents.passages import terms
from pearl.documents.rows import Row, Rows, without_duplicates
from pearl.dsl.signatures import Parameter, ValueType

PLUGINS = Family()

MAX_PAIRS = 1_000_000  # maximum pairs: more would fill the memory


def pair(a: Row, b: Row) -> Row:
    """Two rows as one: their values under one another, and the fields of both."""
    is_read = a.value is not None and b.value is not None
    text = f"A: {a.value}\nB: {b.value}" if is_read else None
    fields = dict(a.fields)
    for name, value in b.fields.items():
        if name in fields and fields[name] != value:
            name = f"{name} (2)"
        fields[name] = value
    return Row(text, fields, text=text or "", members=(a, b))


def identity(row: Row) -> object:
    """A key that is equal only for the same row of the document."""
    return row.key if row.spans else id(row)


def unread_pairs(unread: Iterable[Row], others: tuple[Row, ...]) -> list[Row]:
    """One doubtful row for each unread row, with its possible partners."""
    return [Row(None, row.fields, row.spans, row.text, possible=others) for row in unread]


def check_n_pairs(n: int) -> None:
    """Refuse more pairs than fit in memory."""
    if n > MAX_PAIRS:
        raise ValueError(f"{n:,} pairs are too many, {MAX_PAIRS:,} the most; select rows first")


@PLUGINS.action(
    "PAIRS",
    (Parameter("A", ValueType.LIST, "rows"), Parameter("B", ValueType.LIST, "rows")),
    "Return every pair of two different values, one of A and one of B, the lower first, each once",
    returns=ValueType.LIST,
)
def pairs(a: Rows, b: Rows) -> Value:
    """Pair the values of two collections, in ascending order; numbers by size."""
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


@PLUGINS.action(
    "MATCH",
    (
        Parameter("A", ValueType.LIST, "rows"),
        Parameter("B", ValueType.LIST, "rows"),
        Parameter("NAME"),
    ),
    "Return every pair of a row of A and a row of B that have the same value in the field NAME",
    returns=ValueType.LIST,
)
def match(a: Rows, b: Rows, name: str) -> Value:
    """Join on a field; empty values match nothing. Rows of one collection are not their own match."""
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
        *unread_pairs(_unkeyed(a, [*left.values, *left.doubtful]), (*b, *b.doubtful)),
        *unread_pairs(_unkeyed(b, [*right.values, *right.doubtful]), (*a, *a.doubtful)),
    ]
    notes = tuple(dict.fromkeys((*a.notes, *b.notes, *left.notes, *right.notes)))
    return Rows(tuple(sure), "pair", (*unsure, *unread), notes)


def _unkeyed(rows: Rows, values: list[str | None]) -> list[Row]:
    every = (*rows.rows, *rows.doubtful)
    return [row for row, value in zip(every, values, strict=True) if value is None]


@PLUGINS.action(
    "NEAR",
    (
        Parameter("A", ValueType.LIST, "rows"),
        Parameter("B", ValueType.LIST, "rows"),
        Parameter("K", reads="number"),
    ),
    "Return each row of A with those K rows of B that have most words in common with it, as pairs",
    returns=ValueType.LIST,
)
def near(a: Rows, b: Rows, k: int | float) -> Value:
    """Pair rows with the K best by BM25 that share a word; no row with itself, no pair twice."""
    n_best = whole_number(k, "K", least=1)
    lefts = [(row, i < len(a)) for i, row in enumerate((*a, *a.doubtful)) if row.value is not None]
    rights = [(row, i < len(b)) for i, row in enumerate((*b, *b.doubtful)) if row.value is not None]
    check_n_pairs(len(lefts) * min(n_best, len(rights)))
    from pearl.retrieval.weighting import TermRanker  # late: `pearl check` ranks nothing

    index = TermRanker([_words(row) for row, _ in rights])
    n_unsure = sum(not is_sure for _, is_sure in rights)
    sure: list[Row] = []
    unsure: list[Row] = []
    seen: set[tuple[object, object]] = set()
    for row, is_sure in lefts:
        # One more: the row itself may be among them.
        n_before = n_sure_before = 0
        for i in index.best(_words(row), n_best + n_unsure + 1):
            other, is_other_sure = rights[i]
            one, two = identity(row), identity(other)
            if one == two:
                continue
            if n_sure_before >= n_best:
                break
            if (two, one) not in seen:
                seen.add((one, two))
                is_in = is_sure and is_other_sure and n_before < n_best
                (sure if is_in else unsure).append(pair(row, other))
            n_before += 1
            n_sure_before += is_other_sure
    unread = [
        *unread_pairs(_unread(a), (*b, *b.doubtful)),
        *unread_pairs(_unread(b), (*a, *a.doubtful)),
    ]
    notes = tuple(dict.fromkeys((*a.notes, *b.notes)))
    return Rows(tuple(sure), "pair", (*unsure, *unread), notes)


def _words(row: Row) -> list[str]:
    return list(terms(row.value or "", drop_stop_words=True))
