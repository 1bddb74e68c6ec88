"""Questions about a window: every kind of OOLONG's, in words, as a plan and with its right answers.

Comparisons are asked only where the shares differ by more than two points or are equal. Where several
answers are tied, each is right; a question of which the tie would be the point, or which has no answer,
is not asked.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import cycle, islice

from aggregation.queries import Ask, Query, answers, asked_about
from aggregation.windows import Window

N_QUESTIONS = 25
"""Questions asked of each window, as OOLONG does."""

_POINTS = 0.02
_TRIES = 30

Draw = Callable[[Window, random.Random], Query]


@dataclass(frozen=True)
class Question:
    """A question with its right answers."""

    template: str
    query: Query
    right: frozenset[str]


def draw_questions(window: Window, seed: int, n: int = N_QUESTIONS) -> list[Question]:
    """Draw questions of as many different templates as there are.

    A question about all entries comes first: whatever is labelled for it is labelled for all.
    """
    draw = random.Random(seed)
    names = [*_TEMPLATES]
    draw.shuffle(names)
    names.sort(key=lambda name: name != "most label")
    found = [question for name in names if (question := _drawn(name, window, draw))]
    more = (question for name in cycle(names) if (question := _drawn(name, window, draw)))
    return [*found[:n], *islice(more, max(0, n - len(found)))]


def _drawn(name: str, window: Window, draw: random.Random) -> Question | None:
    """A question of a template, or None if no try gives one worth asking."""
    tried = set()
    for _ in range(_TRIES):
        query = _TEMPLATES[name](window, draw)
        if query in tried:
            continue
        tried.add(query)
        right = answers(query, window.entries)
        if right and _is_clear(query, right, window):
            return Question(name, query, right)
    return None


def _is_clear(query: Query, right: frozenset[str], window: Window) -> bool:
    """Whether the answer does not hang on a few entries that are labelled otherwise."""
    rows = asked_about(query, window.entries)
    if query.of == "user" and query.ask == "most" and len(query.users) == 2:
        return len(right) == 1
    if query.ask == "second":
        return len(answers(replace(query, ask="most"), window.entries)) == 1
    if query.of == "label" and query.ask in ("most", "least", "count", "compare"):
        counts = Counter(entry.label for entry in rows)
        if len(counts) < len(window.labels):
            return False  # is a label that does not occur the least common?
        gap = abs(counts[query.label] - counts[query.other]) / len(rows)
        return query.ask != "compare" or gap == 0 or gap > _POINTS
    if query.ask == "shares":
        early = [entry.label for entry in rows if entry.date < query.day]
        late = [entry.label for entry in rows if entry.date > query.day]
        one, other = (side.count(query.label) / len(side) for side in (early, late))
        return one == other or abs(one - other) > _POINTS
    return True


def _some_users(window: Window, draw: random.Random, n: int | None = None) -> tuple[str, ...]:
    """Users, the busy ones more likely."""
    wanted = n or draw.randint(8, 20)
    entries = window.entries
    found: dict[str, None] = {}
    for _ in range(20 * wanted):
        found[draw.choice(entries).user] = None
        if len(found) == wanted:
            break
    return tuple(found)


def _some_range(window: Window, draw: random.Random) -> tuple[date, date]:
    days = sorted({entry.date for entry in window.entries})
    start = draw.choice(days[: max(1, len(days) // 2)])
    return start, start + timedelta(days=draw.randint(120, 500))


def _middle_day(window: Window, draw: random.Random) -> date:
    days = sorted({entry.date for entry in window.entries})
    return draw.choice(days[len(days) // 4 : 3 * len(days) // 4 + 1])


def _label(window: Window, draw: random.Random) -> str:
    return draw.choice(window.labels)


def _counting(scope: Draw) -> dict[str, Draw]:
    """The four questions about labels, within a scope."""

    def two(window: Window, draw: random.Random) -> Query:
        one, other = draw.sample(window.labels, 2)
        return replace(scope(window, draw), ask="compare", label=one, other=other)

    return {
        "most label": scope,
        "least label": lambda w, d: replace(scope(w, d), ask="least"),
        "compare labels": two,
        "count label": lambda w, d: replace(scope(w, d), ask="count", label=_label(w, d)),
    }


def _two(ask: Ask, window: Window, draw: random.Random) -> Query:
    one, other = draw.sample(window.labels, 2)
    return Query(ask, label=one, other=other)


def _n_times(window: Window, draw: random.Random) -> int:
    seen = Counter(Counter(entry.date for entry in window.entries).values())
    return draw.choice(sorted(seen))


_SCOPES: dict[str, Draw] = {
    "": lambda w, d: Query("most"),
    " of users": lambda w, d: Query("most", users=_some_users(w, d)),
    " in a month": lambda w, d: Query("most", month=d.randint(1, 12)),
    " in a range": lambda w, d: Query("most", between=_some_range(w, d)),
}

_TEMPLATES: dict[str, Draw] = {
    **{
        f"{name}{scope}": draw
        for scope, of in _SCOPES.items()
        for name, draw in _counting(of).items()
    },
    "most user": lambda w, d: Query("most", "user"),
    "second user": lambda w, d: Query("second", "user"),
    "most user of some": lambda w, d: Query("most", "user", users=_some_users(w, d)),
    "second user of some": lambda w, d: Query("second", "user", users=_some_users(w, d)),
    "user with most of a label": lambda w, d: Query("most", "user", _label(w, d)),
    "user of some with most of a label": lambda w, d: Query(
        "most", "user", _label(w, d), users=_some_users(w, d)
    ),
    "which of two users": lambda w, d: Query(
        "most", "user", _label(w, d), users=_some_users(w, d, 2)
    ),
    "most date": lambda w, d: Query("most", "date"),
    "second date": lambda w, d: Query("second", "date"),
    "dates seen n times": lambda w, d: Query("dates_seen", "date", n=_n_times(w, d)),
    "before and after": lambda w, d: Query("shares", label=_label(w, d), day=_middle_day(w, d)),
    "first month with more": lambda w, d: _two("first_month", w, d),
    "months with more": lambda w, d: _two("months_more", w, d),
    "months with most": lambda w, d: Query("months_top", label=_label(w, d)),
}
