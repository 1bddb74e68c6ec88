"""Group and rank rows, and compute how far undecided rows may change sizes and ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from pearl.actions.columns import MAX_SHOWN, Column, read_column
from pearl.actions.values import MAY_CHANGE, Scalar
from pearl.documents.comparisons import (
    BLANK,
    are_mostly,
    is_no_key,
    plain_numbers,
    sort_keys,
    spelling_of,
    spellings,
)
from pearl.documents.numbers import is_blank, listed
from pearl.documents.rows import EMPTY, Row, Rows, Stated, shortened

MAX_SPELLINGS = 3  # maximum pairs of spellings in a note


def group(rows: Rows, column: Column) -> Rows:
    """Return one row per key, in order of first occurrence: its rows are `members`, and a field has their number."""
    members: dict[str, list[Row]] = {}
    possible: dict[str, list[Row]] = {}
    unread: list[Row] = []
    name, size = column.name, size_field(column.name)
    n_without = 0
    is_reply = rows.is_answered and name == rows.column
    are_numbers = not is_reply and are_mostly("number", column.values)
    # Among numbers, `none` is a missing value, too; among texts it may be a name; a reply is meant as it is.
    is_without = is_blank if are_numbers else str.isspace if is_reply else is_no_key
    spelled = _one_spelling(column.values) if are_numbers else {}
    for i, (row, key) in enumerate(zip(rows.every, column.values, strict=True)):
        if key is None:
            unread.append(row)
        elif not key or is_without(key):
            n_without += 1
        else:
            key = spelled.get(key.strip(), spelling_of(key))
            (members if i < len(rows) else possible).setdefault(key, []).append(row)

    def one(key: str) -> Row:
        own, others = members.get(key, ()), possible.get(key, ())
        count = None if others or unread else str(len(own))
        return Row(key, {name: key, size: count}, members=tuple(own), possible=tuple(others))

    keys = {name: None, size: None}
    keyless = (Row(None, keys, row.spans, row.text, possible=(row,)) for row in unread)
    groups = Rows(
        tuple(map(one, members)), name,
        (*(one(key) for key in possible if key not in members), *keyless),
        rows.notes, shows_possible=True, n_unread=rows.n_unread,
        # `value` is -1, because the number of groups is not the number of rows that state a key.
        stated=Stated(-1, sum(map(len, members.values())), n_without, name),
    )  # fmt: skip
    notes = [f"rows without {name}, which are in no group: {n_without:,}"] if n_without else []
    if alike := [
        f"{shortened(value)} is {shortened(first)}"
        for value, first in spelled.items()
        if spelling_of(value) != first
    ]:
        shown = listed(alike, MAX_SPELLINGS)
        notes.append(f"{name}: one number in several spellings is one key: {shown}")
    return groups.noting(
        *column.notes,
        *notes,
        *spelling_note([*members, *possible], name, "are counted separately"),
    )


def _one_spelling(values: Sequence[str | None]) -> dict[str, str]:
    """Map each number to its first spelling (`100.0` to `100`); {} if a value is a code such as `007`."""
    different = [value.strip() for value in dict.fromkeys(values) if value]
    if any(value[:1] == "0" and value[1:2].isdigit() for value in different):
        return {}
    first: dict[Decimal, str] = {}
    numbers = plain_numbers(different)
    for value, number in numbers.items():
        first.setdefault(number, spelling_of(value))
    return {value: first[number] for value, number in numbers.items()}


def size_field(name: str) -> str:
    """The name of the field with the sizes of groups: `count`, or `rows` if they are grouped by `count`."""
    return "count" if name != "count" else "rows"


def sizes(rows: Rows, name: str) -> list[tuple[int, int]] | None:
    """The minimum and the maximum size of each group; None if `name` is not the field with the sizes."""
    if not rows.shows_possible or read_column(rows, name).name != size_field(rows.column):
        return None
    # Rows whose key is undecided may belong to any group.
    n_any = sum(max(1, len(row.possible)) for row in rows.doubtful if row.value is None)
    return [
        (len(row.members), len(row.members) + len(row.possible) + n_any)
        if row.value is not None
        else (0, n_any)
        for row in rows.every
    ]


def spelling_note(keys: Iterable[str], name: str, what: str) -> list[str]:
    """Note the keys that differ only in case and were not merged; [] without such keys."""
    alike = [", ".join(map(shortened, each)) for each in spellings(keys, str.casefold)]
    shown = listed(alike, MAX_SPELLINGS, "; ")
    return [f"{name}: keys that differ only in case {what}: {shown}"] if alike else []


NONE = "none"  # the result for an empty ranking


class RankedEntry(NamedTuple):
    """A row, its score, and the bounds of the score over all values of undecided rows."""

    row: Row
    score: float
    low: float
    high: float


def _entries(
    rows: Rows, name: str, bounds: Sequence[tuple[int, int]] | None
) -> tuple[list[RankedEntry], list[str]]:
    """The rows that have or may have a rank by a field, and notes; rows without a value are left out."""
    every = rows.every
    if bounds is not None:
        # A doubtful group exists only if it has a row, so its size is at least 1.
        pairs = zip(every, bounds, strict=True)
        return [RankedEntry(row, low, max(1, low), high) for row, (low, high) in pairs], []
    column = read_column(rows, name)
    keys, notes = sort_keys(column.values, column.name)
    places = {key: i for i, key in enumerate(sorted({*keys.values()} - {None, BLANK}))}
    entries = []
    for row, value in zip(every, column.values, strict=True):
        if (key := keys[value]) is None:  # undecided: its score may be any
            entries.append(RankedEntry(row, math.nan, -math.inf, math.inf))
        elif key != BLANK:
            entries.append(RankedEntry(row, *[places[key]] * 3))
    if n_blank := len(every) - len(entries):
        notes.append(f"rows without {column.name}, which have no rank: {n_blank:,}")
    return entries, [*column.notes, *notes]


def place(rows: Rows, name: str, k: int) -> Scalar:
    """Return the rows on rank K by a field: 1 is the largest value, -1 the smallest; ties share a rank."""
    bounds = sizes(rows, name)
    entries, notes = _entries(rows, name, bounds)
    rows = rows.noting(*notes)
    if k < 0:  # rank -1 is rank 1 of the negative scores
        entries = [e._replace(score=-e.score, low=-e.high, high=-e.low) for e in entries]
    doubtful = {*map(id, rows.doubtful)}
    sure = [e for e in entries if id(e.row) not in doubtful and not math.isnan(e.score)]
    order = sorted(sure, key=lambda entry: -entry.score)
    unsure = [e for e in entries if id(e.row) in doubtful or math.isnan(e.score)]
    of_groups = (row for each in rows for row in each.possible if bounds is not None)
    undecided = (*of_groups, *(entry.row for entry in unsure))
    if abs(k) > len(order):
        there = f"there are only {len(order):,}" if order else "there is nothing to rank"
        none = Rows((), rows.column, undecided, rows.notes, n_unread=rows.n_unread)
        return Scalar(NONE, none.noting(there))
    score = order[abs(k) - 1].score
    before = [entry for entry in order if entry.score > score]
    tied = [entry for entry in order if entry.score == score]
    after = [*(entry for entry in order if entry.score < score), *unsure]

    def keeps(n: int) -> bool:
        """Whether the tied entries keep the rank for all possible scores, even if any entry gains `n` rows."""
        return (
            # Ties stay together only if no score can change.
            (len(tied) == 1 or (not n and all(entry.low == entry.high for entry in tied)))
            and min((e.low for e in before), default=math.inf) > max(e.high for e in tied) + n
            and min(e.low for e in tied) > max((e.high for e in after), default=-math.inf) + n
        )

    is_certain = keeps(0)
    behind = Rows(
        tuple(entry.row for entry in tied), rows.column, () if is_certain else undecided, rows.notes,
        is_answered=rows.is_answered,
    )  # fmt: skip
    if is_certain and undecided:
        behind = behind.noting(f"{len(undecided):,} undecided rows cannot change it")
    # Ranked by their own value, rows are named by their text: the value would only repeat the score.
    is_own = read_column(rows, name).name == rows.column or rows.are_figures

    def named(those: Sequence[RankedEntry]) -> str:
        return "; ".join(
            (is_own and shortened(entry.row.text)) or entry.row.value or shortened(entry.row.text) or EMPTY
            for entry in those
        )  # fmt: skip

    text = named(tied)
    least, most = min(e.low for e in tied), max(e.high for e in tied)
    others = [e for e in (*before, *after) if e.low <= most and e.high >= least]
    if others and not is_certain:
        more = "; ..." * (len(others) > MAX_SHOWN)
        behind = behind.noting(
            f"undecided rows may put on rank {k}: {named(others[:MAX_SHOWN])}{more}"
        )
    if rows.stated is None or bounds is None:
        return Scalar(text, behind)
    stated, n = rows.stated._replace(value=len(tied[0].row.members)), rows.stated.not_stated
    if not keeps(n):
        told = f"{stated.value:,} to {stated.value + n:,} of {stated.of + n:,}"
        behind = behind.noting(f"{MAY_CHANGE} '{shortened(text)}', which has {told}")
    return Scalar(text, behind, stated=stated if len(tied) == 1 else None)


def first_of(
    ranked: Sequence[tuple[Row, bool]], n_unranked: int, k: int
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Take the first `k` of ranked rows: the rows that are surely among them, and the rows that may be."""
    sure: list[Row] = []
    doubtful: list[Row] = []
    n_sure = 0
    for place, (row, is_sure) in enumerate(ranked, 1):
        if n_sure >= k:
            break
        (sure if is_sure and place + n_unranked <= k else doubtful).append(row)
        n_sure += is_sure
    return tuple(sure), tuple(doubtful)
