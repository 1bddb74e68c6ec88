"""Rows in order of how many, how often or how much, and whether undecided rows may change that."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pearl.actions.columns import Column
from pearl.actions.groups import are_groups, group, n_of_any, size_range
from pearl.actions.values import Scalar
from pearl.documents.numbers import read_number
from pearl.documents.rows import EMPTY, Row, Rows, shortened

NONE = "none"
"""What is named where nothing can be."""


@dataclass(frozen=True, slots=True)
class RankedEntry:
    """What is ranked."""

    name: str
    row: Row
    score: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class EntryRanking:
    """Entries in no order yet."""

    rows: Rows
    sure: tuple[RankedEntry, ...]
    unsure: tuple[RankedEntry, ...]


def ranking(rows: Rows) -> EntryRanking:
    """What is ranked by what: groups by size, rows that a model rated by number.

    All other rows are ranked by how often their value occurs.
    """
    if (rated := _by_number(rows)) is not None:
        return rated
    if rows.is_answered or not are_groups(rows):
        column = Column(
            rows.column, [row.value for row in rows], [row.value for row in rows.doubtful]
        )
        rows = group(rows, column)
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
    """Name what has a place in the ranking, and all that share it."""
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
    """Whether the tied entries have the same places with every score that is possible."""

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
