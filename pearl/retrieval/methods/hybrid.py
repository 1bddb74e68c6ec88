"""Search by words and by meaning: the rankings of `bm25` and `dense`, merged by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, depth_for, find_method, rank_fusion

if TYPE_CHECKING:
    from pearl.retrieval.index import Index

NEEDS_VECTORS = True

LEGS = ("bm25", "dense")


def rank(query: Query, index: Index, settings: SearchSettings, k: int) -> Ranking:
    """The `k` best passages of both rankings."""
    depth = depth_for(k)
    return rank_fusion([find_method(name).rank(query, index, settings, depth) for name in LEGS], k)


def without_vectors(settings: SearchSettings) -> str:
    """The ranking by words, which is used alone if no vectors are available."""
    return LEGS[0]
