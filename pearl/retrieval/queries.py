"""Text → the terms of a query, and its years."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pearl.documents.passages import Stem, terms
from pearl.errors.patterns import lazy_pattern


@cache
def analyzer(stem: Stem) -> Callable[[str], list[str]]:
    """The function that splits a query into terms, in order, with repeats."""

    def analyse(query: str) -> list[str]:
        return terms(query, drop_stop_words=True, stem=stem) or terms(query, stem=stem)

    return analyse


MAX_YEARS = 30
"""Years from the first to the last of a range that includes all years between; a longer range counts as its ends."""

_YEAR = r"(?:1[89]|20)\d\d"
_RANGE = lazy_pattern(
    rf"(?<![\w.,$€£¥])(?:FY\s?)?(?P<first>{_YEAR})\s*(?P<mark>[-–—/]|to|through|until|and)\s*"
    rf"(?:FY\s?)?(?P<last>{_YEAR}|(?<=[-–—/])\d\d)(?!\w|\s?%|[-.,]\d)",
    re.IGNORECASE,
)
_ONE = lazy_pattern(
    rf"(?<![\w.,$€£¥])(?:FY\s?)?(?P<year>{_YEAR})(?!\w|\s?%|[.,]\d)|\bFY\s?['’]?(?P<short>\d\d)\b",
    re.IGNORECASE,
)
_BETWEEN = lazy_pattern(r"\bbetween\s*\Z", re.IGNORECASE)


def years_in(text: str) -> tuple[int, ...]:
    """The years from 1800 that a text names, ascending, with those within ranges; amounts and percentages are none."""
    found: set[int] = set()
    for match in _RANGE.finditer(text):
        first, last = int(match["first"]), int(match["last"])
        if last < 100:
            last += first - first % 100
        is_range = match["mark"].lower() != "and" or _BETWEEN.search(text, 0, match.start())
        if is_range and first < last <= first + MAX_YEARS:
            found.update(range(first, last + 1))
    for match in _ONE.finditer(text):
        found.add(int(match["year"] or f"20{match['short']}"))
    return tuple(sorted(found))


@cache
def read_synonyms(path: Path) -> dict[tuple[str, ...], dict[str, None]]:
    """Stems of a phrase → the other phrases of its groups; a line of a list is a group, of words or between commas."""
    others: dict[tuple[str, ...], dict[str, None]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        phrases = [] if line.startswith("#") else line.split("," if "," in line else None)
        stems = {phrase.strip(): tuple(terms(phrase)) for phrase in phrases}
        for own in filter(None, stems.values()):
            different = (phrase for phrase in stems if stems[phrase] != own)
            others.setdefault(own, {}).update(dict.fromkeys(different))
    return others
