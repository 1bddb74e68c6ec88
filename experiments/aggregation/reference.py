"""Answers to queries by plain counting over entries. It shares no code with pearl."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from itertools import combinations

from aggregation.queries import Query, UserPredicate
from aggregation.windows import Entry

__all__ = ["answers", "asked_about"]


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
