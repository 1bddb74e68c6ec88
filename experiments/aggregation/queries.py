"""Kinds of questions over entries: their queries, the queries about pairs, the reference that answers them, scores."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal

from aggregation.windows import Entry

Ask = Literal[
    "most", "least", "second", "count", "compare", "dates_seen", "shares",
    "first_month", "months_more", "months_top", "pairs",
]  # fmt: skip
Kind = Literal["label", "user", "date", "comparison", "month", "number", "pairs"]
"""What an answer is, which says how it is scored."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, slots=True)
class Condition:
    """A user has at least, or exactly, `n` entries with one of the labels."""

    labels: tuple[str, ...]
    n: int = 1
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class UserPredicate:
    """What a user of a pair has to fulfil."""

    conditions: tuple[Condition, ...]
    all_of: str = ""
    is_after: bool = True
    day: date = date(2023, 1, 6)


@dataclass(frozen=True, slots=True)
class Query:
    """A question about a window."""

    ask: Ask
    of: Literal["label", "user", "date"] = "label"
    label: str = ""
    other: str = ""
    users: tuple[str, ...] = ()
    month: int = 0
    between: tuple[date, date] | None = None
    day: date = date.min
    n: int = 0
    pair: tuple[UserPredicate, ...] = ()

    @property
    def kind(self) -> Kind:
        """What its answer is."""
        match self.ask:
            case "most" | "least" | "second":
                return self.of
            case "compare" | "shares":
                return "comparison"
            case "first_month":
                return "month"
            case "pairs":
                return "pairs"
            case _:
                return "number"

    @property
    def reads_labels(self) -> bool:
        """Whether it cannot be answered from users and dates alone."""
        return (self.of == "label" and self.ask != "dates_seen") or bool(self.label)


_ABBREVIATION, _ENTITY, _ABSTRACT, _HUMAN, _LOCATION, _NUMERIC = (
    "abbreviation", "entity", "description and abstract concept", "human being", "location", "numeric value",
)  # fmt: skip


def _some(*labels: str, n: int = 1) -> Condition:
    return Condition(labels, n)


def _exactly(n: int, label: str) -> Condition:
    return Condition((label,), n, is_exact=True)


def _one(
    *conditions: Condition, all_of: str = "", is_after: bool = True, day: date = date(2023, 1, 6)
) -> UserPredicate:
    return UserPredicate(conditions, all_of, is_after, day)


def _both(*conditions: Condition, **dated: Any) -> Query:
    return Query("pairs", pair=(_one(*conditions, **dated),))


PAIR_QUERIES: tuple[Query, ...] = (
    _both(_some(_NUMERIC, _LOCATION)),
    _both(_some(_ENTITY, _HUMAN)),
    _both(_some(_ABSTRACT, _ABBREVIATION)),
    _both(_some(_HUMAN, _LOCATION), all_of=_HUMAN),
    _both(_some(_ENTITY, _NUMERIC), all_of=_ENTITY, is_after=False, day=date(2023, 3, 15)),
    _both(_some(_LOCATION, _ABBREVIATION), all_of=_LOCATION, day=date(2022, 8, 20)),
    _both(_some(_ABSTRACT, _NUMERIC), all_of=_NUMERIC, is_after=False, day=date(2024, 2, 1)),
    _both(_some(_HUMAN, _ABSTRACT), all_of=_ABSTRACT, day=date(2023, 5, 10)),
    _both(_some(_ENTITY, n=2), _some(_LOCATION)),
    _both(_some(_NUMERIC, _HUMAN), all_of=_HUMAN, is_after=False, day=date(2023, 12, 24)),
    Query("pairs", pair=(_one(_some(_ENTITY), _some(_ABBREVIATION)), _one(_exactly(1, _ENTITY)))),
    Query("pairs", pair=(_one(_some(_NUMERIC, n=2)), _one(_some(_LOCATION), _some(_HUMAN)))),
    Query("pairs", pair=(_one(_exactly(1, _ABSTRACT)), _one(_some(_ABBREVIATION), _some(_ENTITY)))),
    Query("pairs", pair=(_one(_some(_HUMAN)), _one(_some(_ENTITY), _exactly(1, _ABBREVIATION)))),
    Query("pairs", pair=(_one(_some(_ENTITY, _LOCATION, n=2)), _one(_exactly(1, _NUMERIC)))),
    Query("pairs", pair=(
        _one(_some(_LOCATION), all_of=_LOCATION, is_after=True, day=date(2022, 11, 1)),
        _one(_some(_HUMAN, n=2)),
    )),
    Query("pairs", pair=(
        _one(_exactly(1, _NUMERIC)),
        _one(_some(_LOCATION, n=2), all_of=_LOCATION, is_after=False, day=date(2024, 6, 30)),
    )),
    Query("pairs", pair=(
        _one(_some(_ABBREVIATION), _exactly(1, _HUMAN)),
        _one(_some(_ENTITY), all_of=_ENTITY, is_after=True, day=date(2023, 1, 6)),
    )),
    Query("pairs", pair=(
        _one(_some(_LOCATION, n=2), _some(_ENTITY)),
        _one(_exactly(1, _ABSTRACT), all_of=_ABSTRACT, is_after=False, day=date(2024, 1, 31)),
    )),
    Query("pairs", pair=(
        _one(_some(_HUMAN, n=2), all_of=_HUMAN, is_after=True, day=date(2022, 5, 1)),
        _one(_exactly(1, _ENTITY), all_of=_ENTITY, is_after=False, day=date(2024, 9, 1)),
    )),
)  # fmt: skip


def answers(query: Query, entries: Iterable[Entry]) -> frozenset[str]:
    """Every answer that is right, or for `pairs` every pair; empty if there is none."""
    rows = asked_about(query, entries)
    counts = Counter(str(getattr(row, query.of)) for row in rows)
    match query.ask:
        case "most" | "least" | "second":
            ranked = sorted(set(counts.values()), reverse=query.ask != "least")
            place = 1 if query.ask == "second" else 0
            wanted = ranked[place] if len(ranked) > place else None
            return frozenset(key for key, n in counts.items() if n == wanted)
        case "count":
            return frozenset({str(counts[query.label])})
        case "compare":
            return frozenset({_compare(counts[query.label], counts[query.other])})
        case "dates_seen":
            return frozenset({str(sum(n == query.n for n in counts.values()))})
        case "shares":
            early = [row.label for row in rows if row.date < query.day]
            late = [row.label for row in rows if row.date > query.day]
            if not early or not late:
                return frozenset()
            parts = [Fraction(side.count(query.label), len(side)) for side in (early, late)]
            return frozenset({_compare(*parts)})
        case "pairs":
            return _pairs(query.pair, rows)
        case _:
            return _months(query, rows)


def asked_about(query: Query, entries: Iterable[Entry]) -> list[Entry]:
    """The entries that a query is about."""
    users, (start, end) = frozenset(query.users), query.between or (date.min, date.max)
    return [
        entry
        for entry in entries
        if (not users or entry.user in users)
        and (not query.month or entry.date.month == query.month)
        and start <= entry.date <= end
        and (query.of == "label" or not query.label or entry.label == query.label)
    ]


def _compare(one: Fraction | int, other: Fraction | int) -> str:
    return "same" if one == other else "more" if one > other else "less"


def _months(query: Query, rows: Sequence[Entry]) -> frozenset[str]:
    by_month: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by_month[row.date.isoformat()[:7]][row.label] += 1
    if query.ask == "months_top":
        top = {
            month
            for month, counts in by_month.items()
            if all(counts[query.label] > n for key, n in counts.items() if key != query.label)
        }
        return frozenset({str(sum(by_month[month][query.label] > 0 for month in top))})
    more = [month for month, seen in by_month.items() if seen[query.label] > seen[query.other]]
    if query.ask == "months_more":
        return frozenset({str(len(more))})
    return frozenset({min(more)}) if more else frozenset()


def _pairs(predicates: Sequence[UserPredicate], rows: Sequence[Entry]) -> frozenset[str]:
    by_user: dict[str, list[Entry]] = defaultdict(list)
    for row in rows:
        by_user[row.user].append(row)
    one, other = (
        {user for user, own in by_user.items() if _fulfils(predicate, own)}
        for predicate in (predicates[0], predicates[-1])
    )
    return frozenset(
        f"{low}, {high}"
        for low, high in combinations(sorted(one | other, key=int), 2)
        if (low in one and high in other) or (high in one and low in other)
    )


def _fulfils(predicate: UserPredicate, own: Sequence[Entry]) -> bool:
    for condition in predicate.conditions:
        n = sum(entry.label in condition.labels for entry in own)
        if n < condition.n or (condition.is_exact and n > condition.n):
            return False
    days = [entry.date for entry in own if entry.label == predicate.all_of]
    return all(day > predicate.day if predicate.is_after else day < predicate.day for day in days)


def score(kind: Kind, said: str, right: Collection[str]) -> float:
    """What an answer is worth, from 0 to 1.

    Numbers get 0.75 to the power of their distance, pairs their F1, all else is right or wrong. Where
    answers are tied, one of them is right, and so are several; one wrong among them is wrong.

    Example:
        >>> score("number", "12", {"13"}), score("label", "Entity", {"entity", "location"})
        (0.75, 1.0)
    """
    named = answers_in(kind, said)
    if kind == "pairs":
        return f1(named, frozenset(right))
    if kind == "number":
        numbers = [int(each) for each in named if re.fullmatch(r"-?\d+", each)]
        return 0.75 ** abs(numbers[0] - int(next(iter(right)))) if len(numbers) == 1 else 0.0
    return float(bool(named) and named <= set(right))


def answers_in(kind: Kind, said: str) -> frozenset[str]:
    """What an answer names, apart at lines and semicolons; "none", why there is none, and "Nothing found." are nothing."""
    if kind == "pairs":
        found = re.findall(r"\b(\d+), (\d+)\b", said)
        return frozenset(f"{one}, {other}" for one, other in found)
    lines = said.replace(";", "\n").splitlines()
    entries = (line.strip().removeprefix("- ").casefold() for line in lines)
    named = [each for each in entries if each and not each.startswith(("none", "nothing found"))]
    if kind == "number":
        return frozenset(each.replace(",", "") for each in named)
    if kind == "date":  # as the window writes it; the reference writes 2023-02-11
        return frozenset(
            str(datetime.strptime(each, "%b %d, %Y").date()) if "," in each else each
            for each in named
        )
    return frozenset(named)


def f1(said: frozenset[str], right: frozenset[str]) -> float:
    """F1 of pairs; 1 if there are none and none are named."""
    if not said or not right:
        return float(said == right)
    return 2 * len(said & right) / (len(said) + len(right))
