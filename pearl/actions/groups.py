"""Rows by key and in order, and how far undecided rows may change sizes and places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pearl.actions.columns import Column
from pearl.actions.values import Scalar
from pearl.documents.numbers import read_number
from pearl.documents.rows import EMPTY, Row, Rows, shortened

MAX_SPELLINGS = 3  # maximum pairs of spellings in a note


def group(rows: Rows, column: Column) -> Rows:
    """One row for each key, in order of first occurrence, with the rows that have it as members.

    A doubtful row is a possible member. A row whose key is undecided may be in any group, or in one
    of its own: it becomes a doubtful group without a key.
    """
    members: dict[str, list[Row]] = {}
    possible: dict[str, list[Row]] = {}
    unread: list[Row] = []
    for i, (row, key) in enumerate(zip(rows.every, column.values, strict=True)):
        if key is None:
            unread.append(row)
        else:
            (members if i < len(rows) else possible).setdefault(key.strip(), []).append(row)
    name = column.name
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
    groups = Rows(tuple(sure), name, (*unsure, *keyless), rows.notes, sample=rows.sample)
    return groups.noting(*column.notes, *_spelling_note([*members, *possible], name))


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
    """The least and the most rows of a group."""
    return len(row.members), len(row.members) + len(row.possible) + n_any


def _spelling_note(keys: Iterable[str], name: str) -> list[str]:
    """A note on keys that differ only in case, which are different."""
    spelled: dict[str, dict[str, None]] = {}
    for key in keys:
        spelled.setdefault(key.casefold(), {})[key] = None
    alike = [list(each) for each in spelled.values() if len(each) > 1]
    if not alike:
        return []
    shown = "; ".join(", ".join(map(shortened, each)) for each in alike[:MAX_SPELLINGS])
    more = "; ..." if len(alike) > MAX_SPELLINGS else ""
    return [f"{name}: different, although only in case: {shown}{more}"]


NONE = "none"  # the result of an empty ranking


@dataclass(frozen=True, slots=True)
class RankedEntry:
    """An entry of a ranking."""

    name: str
    row: Row
    score: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class EntryRanking:
    """Entries before sorting."""

    rows: Rows
    sure: tuple[RankedEntry, ...]
    unsure: tuple[RankedEntry, ...]


def ranking(rows: Rows) -> EntryRanking:
    """Choose the scores: the sizes of groups, or the ratings of rows by a model.

    All other rows are ranked by how often their value occurs.
    """
    if (rated := _by_number(rows)) is not None:
        return rated
    if rows.is_answered or not are_groups(rows):
        rows = group(rows, Column(rows.column, [row.value for row in rows.every]))
    n_any = n_of_any(rows)
    sure = tuple(_by_size(row, n_any) for row in rows)
    unsure = [_by_size(row, n_any) for row in rows.doubtful if row.value is not None]
    if n_any:
        unsure.append(RankedEntry("", Row(None), 1, 1, n_any))
    return EntryRanking(rows, sure, tuple(unsure))


def _by_size(row: Row, n_any: int) -> RankedEntry:
    low, high = size_range(row, n_any)
    return RankedEntry(row.value or EMPTY, row, low, max(1, low), high)


def _by_number(rows: Rows) -> EntryRanking | None:
    """Rows by a model's reply about each, if those are numbers."""
    if not (rows.is_answered and rows.values):
        return None
    try:
        sure = tuple(_rated(row) for row in rows if row.value is not None)
        unsure = [_rated(row) for row in rows.doubtful if row.value is not None]
    except ValueError:
        return None
    unsure += [
        RankedEntry("", row, 0, -math.inf, math.inf) for row in rows.undecided if row.value is None
    ]
    return EntryRanking(rows, sure, tuple(unsure))


def _rated(row: Row) -> RankedEntry:
    score = read_number(row.value or "")
    return RankedEntry(shortened(row.text) or row.value or EMPTY, row, score, score, score)


def ranked(ranking: EntryRanking, *, least_first: bool = False) -> list[RankedEntry]:
    """The entries in order; those of the same score in order of first occurrence."""
    return sorted(ranking.sure, key=lambda e: e.score, reverse=not least_first)


def place(rows: Rows, k: int, *, least_first: bool = False) -> Scalar:
    """Name the entries that share a place in the ranking."""
    given = ranking(rows)
    order = ranked(given, least_first=least_first)
    if k > len(order):
        there = f"there are only {len(order):,}" if order else "there is nothing to rank"
        return Scalar(NONE, given.rows.where(()).noting(there))
    score = order[k - 1].score
    tied = [entry for entry in order if entry.score == score]
    first = next(i for i, entry in enumerate(order) if entry.score == score)
    before, after = order[:first], [*order[first + len(tied) :], *given.unsure]
    is_certain = _is_apart(before, tied, after, -1 if least_first else 1)
    named = tuple(entry.row for entry in tied)
    open_rows = _open(given.rows)
    behind = Rows(
        named, given.rows.column, () if is_certain else open_rows, given.rows.notes,
        is_answered=given.rows.is_answered,
    )  # fmt: skip
    if is_certain and open_rows:
        behind = behind.noting(f"{len(open_rows):,} undecided cannot change it")
    return Scalar("; ".join(entry.name for entry in tied), behind)


def _is_apart(
    before: list[RankedEntry], tied: list[RankedEntry], after: list[RankedEntry], sign: int
) -> bool:
    """Whether the tied entries keep their places with every possible score."""

    def lowest(entries: list[RankedEntry]) -> float:
        return min((e.low if sign > 0 else -e.high for e in entries), default=math.inf)

    def highest(entries: list[RankedEntry]) -> float:
        return max((e.high if sign > 0 else -e.low for e in entries), default=-math.inf)

    is_exact = len(tied) == 1 or all(entry.low == entry.high for entry in tied)
    return is_exact and lowest(before) > highest(tied) and lowest(tied) > highest(after)


def _open(rows: Rows) -> tuple[Row, ...]:
    """All rows that may change a ranking."""
    possible = (row for each in rows for row in each.possible)
    return (*(row for row in rows if row.value is None), *possible, *rows.doubtful)


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
