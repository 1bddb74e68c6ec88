"""Rankers: query + passages → one score a passage. Every other module of this folder is one.

A ranker module has `rank(query: str, passages: Sequence[str]) -> list[float]`: as many scores as
passages, in their order, all finite and none below zero; higher is better and 0 means that nothing
matches. The same call gives the same scores, and a passage's place does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["CONTRACT", "DEFAULT_RANKER", "Ranker"]

DEFAULT_RANKER = "bm25"


class Ranker(Protocol):
    """What a module of this folder looks like to its users."""

    def rank(self, query: str, passages: Sequence[str]) -> list[float]:
        """Score every passage for a query."""
        ...


CONTRACT = Ranker
