"""Grouping and ranking of rows, and how far undecided rows may change sizes and ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from pearl.actions.columns import Column
from pearl.actions.values import MAY_CHANGE, Scalar
from pearl.documents.comparisons import is_no_key, spelling_of
from pearl.documents.numbers import read_number
from pearl.documents.rows import EMPTY, Row, Rows, Stated, shortened

MAX_SPELLINGS = 3  # maximum pairs of spellings in a note


def group(rows: Rows, column: Column) -> Rows:
    """One row for each key, in order of first occurrence, with the rows that have it as members."""
    members: dict[str, list[Row]] = {}
    possible: dict[str, list[Row]] = {}
    unread: list[Row] = []
    name = column.name
    n_without = 0
    is_reply = rows.is_answered and name == rows.column
    for i, (row, key) in enumerate(zip(rows.every, column.values, strict=True)):
        if key is None:
            unread.append(row)
        elif is_no_key(key) if not is_reply else not key.strip():
            n_without += 1
        else:
            (members if i < len(rows) else possible).setdefault(spelling_of(key), []).append(row)
    sure = (
        Row(key, {name: key}, members=tuple(each), possible=tuple(possible.get(key, ())))
        for key, each in members.items()
    )
    unsure = (
        Row(key, {name: key}, possible=tuple(each))
        for key, each in possible.items()
        if key not in members
    )
    keyless = (Row(None, {name: None}, row.spans, row.text, possible=(row,)) for row in unread)
    n_with = sum(map(len, members.values()))
    groups = Rows(
        tuple(sure),
        name,
        (*unsure, *keyless),
        rows.notes,
        sample=rows.sample,
        n_unread=rows.n_unread,
        stated=Stated(-1, n_with, n_without, name),  # how many groups there are is another number
    )
    without = [f"rows without {name}, which are in no group: {n_without:,}"] if n_without else []
    return groups.noting(
        *column.notes,
        *without,
        *spelling_note([*members, *possible], name, "are counted separately"),
    )


def counted(groups: Rows) -> Rows:
    """Show the sizes of groups, also as a field `count`."""
    name = "count" if groups.column != "count" else "rows"
    rows = tuple(row.with_fields({name: str(len(row.members))}) for row in groups)
    return replace(groups, rows=rows, shows_possible=True)


def are_groups(rows: Rows) -> bool:
    """Whether any row has members or possible members."""
    return any(row.members or row.possible for row in rows.every)


def n_of_any(groups: Rows) -> int:
    """The number of rows that may belong to any group, because their key is undecided."""
    return sum(max(1, len(row.possible)) for row in groups.doubtful if row.value is None)


def size_range(row: Row, n_any: int) -> tuple[int, int]:
    """The minimum and the maximum number of rows of a group."""
    return len(row.members), len(row.members) + len(row.possible) + n_any


def spelling_note(keys: Iterable[str], name: str, what: str) -> list[str]:
    """A note on keys that differ only in case, which are different."""
    spelled: dict[str, dict[str, None]] = {}
    for key in keys:
        spelled.setdefault(key.casefold(), {})[key] = None
    alike = [list(each) for each in spelled.values() if len(each) > 1]
    if not alike:
        return []
    pairs = "; ".join(", ".join(map(shortened, each)) for each in alike[:MAX_SPELLINGS])
    more = "; ..." if len(alike) > MAX_SPELLINGS else ""
    return [f"{name}: keys that differ only in case {what}: {pairs}{more}"]


NONE = "none"  # the result for an empty ranking


class RankedEntry(NamedTuple):
    """An entry of a ranking, with the bounds of its score over all values of undecided rows."""

    name: str
    row: Row
    score: float
    low: float
    high: float


def ranking(
    rows: Rows, *, least_first: bool = False
) -> tuple[Rows, list[RankedEntry], list[RankedEntry]]:
    """Rank groups by size, rows by a model's ratings, other rows by how often their value occurs.

    Returns the ranked rows, their entries in order, and entries whose rank is unknown. Equal
    entries are in order of first occurrence. If the least comes first, scores are negated.
    """
    sure, unsure = _rated(rows) or ([], [])
    if not sure:
        if rows.is_answered or not are_groups(rows):
            rows = group(rows, Column(rows.column, [row.value for row in rows.every]))
        n_any = n_of_any(rows)
        sure, unsure = (
            [
                RankedEntry(row.value or EMPTY, row, low, max(1, low), high)
                for row in some
                for low, high in [size_range(row, n_any)]
            ]
            # A group keeps its place without a name; doubtful rows without one count in `n_any`.
            for some in (rows.rows, [row for row in rows.doubtful if row.value is not None])
        )
        if n_any:
            unsure.append(RankedEntry("", Row(None), 1, 1, n_any))
    if least_first:
        sure, unsure = (
            [e._replace(score=-e.score, low=-e.high, high=-e.low) for e in some]
            for some in (sure, unsure)
        )
    return rows, sorted(sure, key=lambda entry: -entry.score), unsure


def _rated(rows: Rows) -> tuple[list[RankedEntry], list[RankedEntry]] | None:
    """Entries scored by a model's reply about each row, if the replies are numbers."""
    if not (rows.is_answered and rows.values):
        return None
    try:
        sure, unsure = (
            [
                RankedEntry(shortened(row.text) or row.value or EMPTY, row, score, score, score)
                for row in some
                if row.value is not None
                for score in [read_number(row.value)]
            ]
            for some in (rows.rows, rows.doubtful)
        )
    except ValueError:
        return None
    unread = (row for row in rows.undecided if row.value is None)
    return sure, [*unsure, *(RankedEntry("", row, 0, -math.inf, math.inf) for row in unread)]


def place(rows: Rows, k: int, *, least_first: bool = False) -> Scalar:
    """Return the entries that share a place in the ranking."""
    rows, order, unsure = ranking(rows, least_first=least_first)
    if k > len(order):
        there = f"there are only {len(order):,}" if order else "there is nothing to rank"
        return Scalar(NONE, rows.where(()).noting(there))
    score = order[k - 1].score
    before = [entry for entry in order if entry.score > score]
    tied = [entry for entry in order if entry.score == score]
    after = [*(entry for entry in order if entry.score < score), *unsure]

    def keeps(n: int) -> bool:
        """Whether the tied entries keep the place with every possible score, and with `n` rows more for any of them."""
        return (
            (len(tied) == 1 or (not n and all(entry.low == entry.high for entry in tied)))
            and min((e.low for e in before), default=math.inf) > max(e.high for e in tied) + n
            and min(e.low for e in tied) > max((e.high for e in after), default=-math.inf) + n
        )

    is_certain = keeps(0)
    undecided = (
        *(row for row in rows if row.value is None),
        *(row for each in rows for row in each.possible),
        *rows.doubtful,
    )
    named = tuple(entry.row for entry in tied)
    behind = Rows(
        named, rows.column, () if is_certain else undecided, rows.notes,
        is_answered=rows.is_answered,
    )  # fmt: skip
    if is_certain and undecided:
        behind = behind.noting(f"{len(undecided):,} undecided rows cannot change it")
    name = "; ".join(entry.name for entry in tied)
    if not (rows.stated and rows.stated.field == rows.column and are_groups(rows)):
        return Scalar(name, behind)
    stated, n = rows.stated._replace(value=len(tied[0].row.members)), rows.stated.not_stated
    if not keeps(n):
        told = f"{stated.value:,} to {stated.value + n:,} of {stated.of + n:,}"
        behind = behind.noting(f"{MAY_CHANGE} '{shortened(name)}', which has {told}")
    return Scalar(name, behind, stated=stated if len(tied) == 1 else None)


def first_of(
    ranked: Sequence[tuple[Row, bool]], n_unranked: int, k: int
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The first `k` of ranked rows, some of which are doubtful.

    Example:
        >>> a, b, c = map(Row, "abc")
        >>> sure, doubtful = first_of([(a, True), (b, False), (c, True)], 0, 2)
        >>> [row.value for row in sure], [row.value for row in doubtful]
        (['a'], ['b', 'c'])
    """
    sure: list[Row] = []
    doubtful: list[Row] = []
    n_sure = 0
    for place, (row, is_sure) in enumerate(ranked, 1):
        if n_sure >= k:
            break
        (sure if is_sure and place + n_unranked <= k else doubtful).append(row)
        n_sure += is_sure
    return tuple(sure), tuple(doubtful)
