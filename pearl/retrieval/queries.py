"""What a question says beside its own words: earlier questions of a conversation, and years."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

FOLLOWING_WEIGHT = 0.6
"""Weight of earlier questions between the first and this one. Recall at 10 on ConvFinQA hardly depends on
it: 0.6 gives .815, joined questions, which all weigh 1, .812 (experiments/convfinqa_retrieval.py)."""

MAX_YEARS = 30
"""Of a range of years, so many are named by it at most; of a longer one only its ends are."""

_YEAR = r"(?:1[89]|20)\d\d"
_RANGE = re.compile(
    rf"(?<![\w.,$€£¥])(?:FY\s?)?(?P<first>{_YEAR})\s*(?P<mark>[-–—/]|to|through|until|and)\s*"
    rf"(?:FY\s?)?(?P<last>{_YEAR}|(?<=[-–—/])\d\d)(?!\w|\s?%|[-.,]\d)",
    re.IGNORECASE,
)
_ONE = re.compile(
    rf"(?<![\w.,$€£¥])(?:FY\s?)?(?P<year>{_YEAR})(?!\w|\s?%|[.,]\d)|\bFY\s?['’]?(?P<short>\d\d)\b",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\bbetween\s*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WeightedQuery:
    """Texts that are searched together."""

    parts: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """All of it, as an embedder or a reranker is given it."""
        return "\n".join(text for text, _ in self.parts)

    def terms(self, analyse: Callable[[str], list[str]]) -> dict[str, float]:
        """Its different terms, each with the weight of the weightiest text that has it."""
        known = dict.fromkeys(analyse(self.text), 0.0)
        for text, weight in self.parts:
            for term in analyse(text):
                if term in known:
                    known[term] = max(known[term], weight)
        return known


def contextual_query(question: str, history: Sequence[str] = ()) -> WeightedQuery:
    """A question with the earlier ones, whose words it may leave out ("and in 2009?").

    The question and the first of the conversation, which names what it is about, count in full, the
    others less.

    Example:
        >>> contextual_query("and in 2009?", ["net sales in 2008?", "the change?"]).parts
        (('net sales in 2008?', 1.0), ('the change?', 0.6), ('and in 2009?', 1.0))
    """
    said = [text for text in history if text.strip()]
    weights = [1.0, *[FOLLOWING_WEIGHT] * (len(said) - 1)] if said else []
    return WeightedQuery((*zip(said, weights, strict=True), (question, 1.0)))


def years_in(text: str) -> tuple[int, ...]:
    """The years from 1800 that a text names, calendar or fiscal, in ascending order.

    Ranges name the years between their ends, too. Amounts and percents are no years.

    Example:
        >>> years_in("Sales in fiscal 2008 and FY09, not $2010 or 2,011")
        (2008, 2009)
        >>> years_in("from 2005 to 2007"), years_in("2005 and 2007"), years_in("2010-12")
        ((2005, 2006, 2007), (2005, 2007), (2010, 2011, 2012))
    """
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
