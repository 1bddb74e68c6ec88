"""English synonyms and opposites, as stemmed terms."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from pearl.documents.passages import terms
from pearl.retrieval.queries import read_groups

__all__ = ["opposites", "synonyms"]


@cache
def synonyms() -> dict[str, frozenset[str]]:
    """Term → the terms of every group that contains it."""
    groups: dict[str, set[str]] = {}
    for group in map(_stems, _rows("synonyms.txt")):
        for term in group:
            groups.setdefault(term, set()).update(group)
    return {term: frozenset(group - {term}) for term, group in groups.items()}


@cache
def opposites() -> dict[str, frozenset[str]]:
    """Term → the terms that mean the opposite."""
    pairs: dict[str, set[str]] = {}
    for row in _rows("opposites.txt"):
        middle = row.index("|")
        left, right = _stems(row[:middle]), _stems(row[middle + 1 :])
        for term in left:
            pairs.setdefault(term, set()).update(right)
        for term in right:
            pairs.setdefault(term, set()).update(left)
    return {term: frozenset(others) for term, others in pairs.items()}


def _rows(name: str) -> list[list[str]]:
    return read_groups(Path(__file__).with_name(name))


def _stems(words: Iterable[str]) -> list[str]:
    return [term for word in words for term in terms(word)]
