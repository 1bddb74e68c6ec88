"""Native actions that pair rows of two collections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

from msgspec.structs import replace

from pearl.actions.columns import Column, read_column
from pearl.actions.groups import spelling_note
from pearl.actions.native import Family
from pearl.actions.values import Value
from pearl.documents.comparisons import are_mostly, is_no_key, plain_numbers, spelling_of
from pearl.documents.numbers import CODE, read_number
from pearl.documents.rows import Row, Rows, without_duplicates
from pearl.dsl.signatures import Parameter, ValueType

PLUGINS = Family()

MAX_PAIRS = 1_000_000  # maximum pairs: more would fill the memory


def identity(row: Row) -> object:
    """A key that is equal only for the same row of the document."""
    return row.key if row.spans else id(row)


class _Pairs:
    """Collects pairs of rows with the fields of both; the second's are `name (2)` where names clash."""

    def __init__(self, a: Rows, b: Rows, key: str = "") -> None:
        self.a, self.b = a, b
        self.sure: list[Row] = []
        self.unsure: list[Row] = []
        self._key = key
        self._names_a, self._names_b = a.names, b.names
        self._shared = frozenset(self._names_a).intersection(self._names_b)

    def add(self, row: Row, other: Row, *, is_sure: bool) -> None:
        """Add a pair: the values on separate lines, and the fields of both."""
        is_read = row.value is not None and other.value is not None
        text = f"A: {row.value}\nB: {other.value}" if is_read else None
        fields = self._fields(row.fields, other.fields)
        pair = Row(text, fields, text=text or "", members=(row, other))
        (self.sure if is_sure else self.unsure).append(pair)

    def _fields(
        self, a: Mapping[str, str | None], b: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        fields = dict(a)
        for name, value in b.items():
            if name not in self._shared:
                fields[name] = value
            elif name != self._key or fields.get(name) != value:
                fields[f"{name} (2)"] = value
        return fields

    def rows(self, unread_a: Sequence[Row], unread_b: Sequence[Row], *notes: str) -> Rows:
        """The result. An unread row may match any row of the other side, so one doubtful row represents all of its pairs."""
        unknown_a, unknown_b = dict.fromkeys(self._names_a), dict.fromkeys(self._names_b)
        open_rows = [
            *((row, self._fields(row.fields, unknown_b), self.b) for row in unread_a),
            *((row, self._fields(unknown_a, row.fields), self.a) for row in unread_b),
        ]
        unread = [
            Row(None, fields, row.spans, row.text, possible=others.every)
            for row, fields, others in open_rows
        ]
        result = Rows(tuple(self.sure), "pair", (*self.unsure, *unread))
        return result.noting(*self.a.notes, *self.b.notes, *notes)


def check_n_pairs(n: int) -> None:
    """Refuse more pairs than fit in memory."""
    if n > MAX_PAIRS:
        raise ValueError(
            f"{n:,} pairs are too many; at most {MAX_PAIRS:,} are made: select rows first"
        )


@PLUGINS.action(
    "PAIRS", (Parameter("A", ValueType.LIST, "rows"), Parameter("B", ValueType.LIST, "rows")),
    "Return every pair of two different values, one of A and one of B, each once",
    returns=ValueType.LIST, traits=["multiplies"],
)  # fmt: skip
def pairs(a: Rows, b: Rows) -> Value:
    """Pair the values of two collections, in ascending order; numbers by size."""
    sure_a, sure_b = _by_key(a.rows), _by_key(b.rows)
    all_a, all_b = _by_key(a.every), _by_key(b.every)
    is_same = all_a.keys() == all_b.keys()
    check_n_pairs(len(all_a) * (len(all_a) - 1) // 2 if is_same else len(all_a) * len(all_b))
    every = list({**all_a, **all_b})
    try:  # by number if all values are numbers, else alphabetically
        in_order = sorted(every, key=lambda key: (read_number(key), key))
    except ValueError:
        in_order = sorted(every)
    place = {key: i for i, key in enumerate(in_order)}
    keys: Iterable[tuple[str, str]] = combinations(place, 2)
    if not is_same:
        others = ((x, y) for x, y in product(all_a, all_b) if x != y)
        ordered = {(x, y) if place[x] < place[y] else (y, x) for x, y in others}
        keys = sorted(ordered, key=lambda pair: (place[pair[0]], place[pair[1]]))
    rows = {**all_b, **all_a}
    result = _Pairs(a, b)
    for x, y in keys:
        is_sure = (x in sure_a and y in sure_b) or (y in sure_a and x in sure_b)
        row = Row(f"({x}, {y})", members=(rows[x], rows[y]))
        (result.sure if is_sure else result.unsure).append(row)
    both = result.rows(_unread(a), _unread(b))
    return replace(both, doubtful=without_duplicates(both.doubtful))


def _by_key(rows: Iterable[Row]) -> dict[str, Row]:
    """The first row of each value."""
    first: dict[str, Row] = {}
    for row in rows:
        if row.value is not None:
            first.setdefault(row.value.strip(), row)
    return first


def _unread(rows: Rows) -> list[Row]:
    return [row for row in rows.every if row.value is None]


@PLUGINS.action(
    "JOIN",
    (
        Parameter("A", ValueType.LIST, "rows"),
        Parameter("B", ValueType.LIST, "rows"),
        Parameter("FIELD"),
    ),
    "Return every pair of a row of A and a row of B that have the same value in FIELD",
    returns=ValueType.LIST, traits=["multiplies"],
)  # fmt: skip
def join(a: Rows, b: Rows, name: str) -> Value:
    """Join on a field. Empty values and placeholders such as `n/a` match nothing, and no row matches itself.

    If A and B both contain two matching rows, these are one pair; the row that comes first in the document counts as A's.
    """
    left, right = read_column(a, name), read_column(b, name)
    keys, other_keys = _join_keys(left.values, right.values)
    partners: dict[object, list[tuple[Row, bool]]] = {}
    for i, (row, value) in enumerate(zip(b.every, right.values, strict=True)):
        if (key := other_keys[value]) is not None:
            partners.setdefault(key, []).append((row, i < len(b)))
    keyed = [
        (row, key, i < len(a))
        for i, (row, value) in enumerate(zip(a.every, left.values, strict=True))
        if (key := keys[value]) in partners
    ]
    check_n_pairs(sum(len(partners[key]) for _, key, _ in keyed))
    result = _Pairs(a, b, left.name if left.name == right.name else "")
    in_a = {identity(row): is_sure for row, _, is_sure in keyed}
    in_b = {identity(row): is_sure for rows in partners.values() for row, is_sure in rows}
    place = {identity(row): row.spans[0].start if row.spans else i for i, row in enumerate(a.every)}
    for row, key, is_sure in keyed:
        for other, is_other_sure in partners[key]:
            one, two = identity(row), identity(other)
            is_pair_sure = is_sure and is_other_sure
            if one in in_b and two in in_a and place[two] < place[one]:
                # The pair the other way round goes before this one, wherever it exists.
                if a is b or (in_a[two] and in_b[one]):
                    continue
                is_pair_sure = False
            if one != two:
                result.add(row, other, is_sure=is_pair_sure)
    unkeyed_a, unkeyed_b = (
        [row for row, value in zip(rows.every, column.values, strict=True) if value is None]
        for rows, column in ((a, left), (b, right))
    )
    notes = spelling_note(
        [key for each in (keys, other_keys) for key in each.values() if isinstance(key, str)],
        name,
        "do not match",
    )
    notes += [] if a is b else _join_notes(left, right, (keys, other_keys))
    return result.rows(unkeyed_a, unkeyed_b, *left.notes, *right.notes, *notes)


def _join_keys(
    left: Sequence[str | None], right: Sequence[str | None]
) -> list[dict[str | None, object | None]]:
    """A key for each value of each side, equal for values that match; None for one that matches nothing."""
    every = [value for value in dict.fromkeys((*left, *right)) if value and not is_no_key(value)]
    is_numeric = not any(map(CODE.fullmatch, every)) and all(
        are_mostly("number", values) for values in (left, right)
    )
    numbers = plain_numbers(every) if is_numeric else {}
    keys: list[dict[str | None, object | None]] = []
    for values in (left, right):
        stated = {*values}
        filled = [value for value in every if value in stated]
        own = plain_numbers(filled) if is_numeric else {}
        # One side may have decimal commas and the other one decimal points.
        read = own if len(own) > sum(value in numbers for value in filled) else numbers
        keys.append(dict.fromkeys(values))
        keys[-1].update({value: read.get(value, spelling_of(value)) for value in filled})
    return keys


def _join_notes(
    left: Column, right: Column, keys: Sequence[Mapping[str | None, object]]
) -> list[str]:
    """Notes on rows that a join leaves out and on values that it multiplies."""
    sides = list(zip((left, right), keys, strict=True))
    counts = [Counter(own[value] for value in each.values) for each, own in sides]
    notes = []
    for i, (side, (column, key_of)) in enumerate(zip("AB", sides, strict=True)):
        own, other = counts[i], counts[1 - i]
        n_empty = sum(value is not None and key_of[value] is None for value in column.values)
        n_alone = sum(n for key, n in own.items() if key is not None and key not in other)
        if n_empty:
            notes.append(f"rows of {side} without {column.name}: {n_empty:,}")
        if n_alone:
            notes.append(f"rows of {side} without a match: {n_alone:,} of {len(column.values):,}")
    both = [key for key, n in counts[0].items() if key is not None and n > 1 < counts[1][key]]
    if both:
        what = "value stands" if len(both) == 1 else "values stand"
        n_pairs = sum(counts[0][key] * counts[1][key] for key in both)
        notes.append(
            f"{left.name}: {len(both):,} {what} in several rows of A and of B, which makes {n_pairs:,} pairs"
        )
    return notes
