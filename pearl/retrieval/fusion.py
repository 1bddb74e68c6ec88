"""Rankings → one ranking: several are fused, or one is reordered; the originals are kept as legs."""

from __future__ import annotations

from collections.abc import Mapping

from pearl.retrieval.methods import Ranking, top

RANK_CONSTANT = 60
"""`k` of reciprocal rank fusion. Source: Cormack, Clarke and Büttcher 2009."""

LEAST_DEPTH = 100

DEPTH_FACTOR = 5


def depth_for(k: int) -> int:
    """The number of passages to rank before rankings are merged or reordered and the `k` best taken."""
    return max(LEAST_DEPTH, DEPTH_FACTOR * k)


def rank_fusion(legs: Mapping[str, Ranking], k: int) -> Ranking:
    """The `k` best by the sum of 1 / (60 + rank) over the legs that have the passage."""
    import numpy as np

    none = np.zeros(0, np.int32)
    numbers = np.unique(np.concatenate([none, *(leg.passages for leg in legs.values())]))
    total = np.zeros(len(numbers))
    for leg in legs.values():
        ranks = np.arange(1, len(leg.passages) + 1)
        total[np.searchsorted(numbers, leg.passages)] += 1 / (RANK_CONSTANT + ranks)
    best = top(numbers, total, k)
    return Ranking(best.passages, best.scores, dict(legs))
