"""Rankings → one ranking: several are fused, or one is reordered; the originals are kept as legs."""

from __future__ import annotations

from collections.abc import Mapping

from pearl.errors import ModelError
from pearl.retrieval import Reranker
from pearl.retrieval.index import Index
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


MAX_RERANKED = 1_000
"""Maximum number of passages for a reranker."""

RERANK = "rerank"
"""Name of the leg of the reranker."""


async def reranked(
    index: Index, name: str, ranking: Ranking, query: str, reranker: Reranker, n: int
) -> Ranking:
    """Order the `n` best by a reranker; the others follow in their old order."""
    import numpy as np

    best = ranking.passages[: min(n, MAX_RERANKED)]
    texts = [index.passages[number].text for number in best.tolist()]
    scores = np.array(await reranker.rerank(query, texts), np.float64)
    if len(scores) != len(best) or not np.isfinite(scores).all():
        raise ModelError(
            f"{reranker.name} returned {len(scores):,} scores for {len(best):,} passages, or a score "
            "that is not a number",
            kind="malformed",
        )
    order = np.argsort(-scores, kind="stable")  # those with equal scores keep their order
    top = Ranking(best[order], scores[order])
    legs = {**ranking.legs, name: Ranking(ranking.passages, ranking.scores), RERANK: top}
    rest = slice(len(best), None)
    return Ranking(
        np.concatenate([top.passages, ranking.passages[rest]]),
        np.concatenate([top.scores, ranking.scores[rest]]),
        legs,
    )
