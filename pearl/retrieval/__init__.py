"""Query + passages → one score per passage. Every other module of this folder is a ranker.

A ranker module has `rank(query: str, passages: Sequence[str]) -> list[float]`: as many scores as
passages, in their order, all finite and none below zero; higher is better and 0 means that nothing
matches. Scores are deterministic and independent of the order of the passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["CONTRACT", "DEFAULT_RANKER", "Ranker"]

DEFAULT_RANKER = "bm25"


class Ranker(Protocol):
    """The interface of the modules of this folder."""

    def rank(self, query: str, passages: Sequence[str]) -> list[float]:
        """Score every passage for a query."""
        ...


CONTRACT = Ranker
