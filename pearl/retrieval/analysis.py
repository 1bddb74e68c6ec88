"""Text → search terms, by one rule for passages and queries: `pearl.documents.passages.terms`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from pearl.documents.passages import Stem, terms


@cache
def analyzer(stem: Stem) -> Callable[[str], list[str]]:
    """What makes the terms of a query, in order, with repeats.

    Stop words are left out, unless the query has nothing else. Passages are indexed with theirs,
    however they are stemmed, and these count in their length: otherwise no query of stop words
    could be answered.

    Example:
        >>> analyse = analyzer("english")
        >>> analyse("Who kept the keys?"), analyse("To be or not")
        (['keep', 'key'], ['to', 'be', 'or', 'not'])
    """

    def analyse(query: str) -> list[str]:
        return terms(query, drop_stop_words=True, stem=stem) or terms(query, stem=stem)

    return analyse
