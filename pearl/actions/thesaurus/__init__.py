"""English synonyms and opposites, as stemmed terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from pearl.documents.passages import terms

__all__ = ["opposites", "synonyms"]


@cache
def synonyms() -> dict[str, frozenset[str]]:
    """Term → the terms of every group it is in.

    Not transitive: a word with two meanings is in two groups.

    Example:
        >>> "motiv" in synonyms()["reason"]
        True
    """
    found: dict[str, set[str]] = {}
    for row in _rows("synonyms.txt"):
        group = _stems(row.split())
        for term in group:
            found.setdefault(term, set()).update(group)
    return {term: frozenset(group - {term}) for term, group in found.items()}


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Term → the terms that mean the opposite.

    Example:
        >>> "last" in opposites()["first"]
        True
    """
    found: dict[str, set[str]] = {}
    for row in _rows("opposites.txt"):
        left, right = (_stems(side.split()) for side in row.split("|"))
        for term in left:
            found.setdefault(term, set()).update(right)
        for term in right:
            found.setdefault(term, set()).update(left)
    return {term: frozenset(others) for term, others in found.items()}


def _rows(name: str) -> Iterator[str]:
    for row in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if not row.startswith("#"):
            yield row


def _stems(words: Iterable[str]) -> list[str]:
    return [term for word in words for term in terms(word)]
