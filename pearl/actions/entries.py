"""Actions on lists, over the values of rows."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import islice, product
from operator import and_, or_
from typing import Any

from pearl.actions.values import Value, argument
from pearl.documents.rows import Row, Rows, without_duplicates
from pearl.dsl.signatures import Parameter

_MAX_CASES = 16
"""Combinations of certain and possible entries that are computed."""


def over_rows(
    run: Callable[..., Value], parameters: Sequence[Parameter], values: Sequence[Value]
) -> Value:
    """Run an action on lists over the values of rows; entries that come back are rows again.

    Entries that it only returns with, or only without, the undecided rows are undecided.
    """
    collections = [value for value in values if isinstance(value, Rows)]
    certain = run(*map(argument, values, parameters))
    if not isinstance(certain, list):
        return certain
    sure = [row for each in collections for row in each]
    every = sure + [row for each in collections for row in each.doubtful]
    known = [row for row in every if row.value is not None]
    unread = without_duplicates(row for row in every if row.value is None)
    # An unread value may be any of those that are there; another one changes no result.
    anything = [row.value for row in known]
    cases: list[tuple[Any, ...]] = [
        (value.values, [*value.values, *_maybe(value, anything)])
        if isinstance(value, Rows) and value.undecided
        else (value,)
        for value in values
    ]
    results: list[Iterable[str | None]] = [certain]
    if 1 < math.prod(map(len, cases)) <= _MAX_CASES:
        for case in product(*cases):
            result = run(*map(argument, case, parameters))
            results.append(result if isinstance(result, list) else [])
    elif any(len(case) > 1 for case in cases):
        results += [], anything
    counts = [Counter(each) for each in results]
    least, most = Counter(reduce(and_, counts)), Counter(reduce(or_, counts))
    places: dict[str | None, deque[Row]] = {}
    for row in known:
        places.setdefault(row.value, deque()).append(row)
    found: list[Row] = []
    unsure: list[Row] = []
    for item in certain:
        is_sure, least[item] = least[item] > 0, least[item] - 1
        most[item] -= 1
        rows = places.get(item)
        (found if is_sure else unsure).append(rows.popleft() if rows else Row(item, text=item))
    for text, n in most.items():
        unsure += islice(places.get(text, ()), max(0, n))
    return replace(
        collections[0],
        rows=tuple(found),
        doubtful=(*unsure, *unread),
        notes=tuple(dict.fromkeys(note for each in collections for note in each.notes)),
        sample=None,
    )


def _maybe(rows: Rows, anything: Sequence[str | None]) -> list[str | None]:
    """The values that undecided rows may bring."""
    if any(row.value is None for row in (*rows.rows, *rows.doubtful)):
        return list(anything)
    return [row.value for row in rows.doubtful]
