"""Rankings → one ranking: fusion of several, or another order of one, which stays as a leg."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pearl.errors import ModelError
from pearl.retrieval import Passage, Reranker
from pearl.retrieval.index import Index
from pearl.retrieval.methods import Ranking, top
from pearl.retrieval.queries import years_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


RANK_CONSTANT = 60
"""`k` of reciprocal rank fusion. Source: Cormack, Clarke and Büttcher 2009."""

LEAST_DEPTH = 100

DEPTH_FACTOR = 5


def depth_for(k: int) -> int:
    """How deep rankings go that are merged or reordered before the `k` best are taken."""
    return max(LEAST_DEPTH, DEPTH_FACTOR * k)


def rank_fusion(
    legs: Mapping[str, Ranking],
    k: int,
    free: NDArray[np.bool_] | None = None,
    *,
    constant: int = RANK_CONSTANT,
) -> Ranking:
    """The `k` best by the sum of 1 / (constant + rank) over the legs that have the passage."""
    import numpy as np

    numbers = _union(legs)
    total = np.zeros(len(numbers))
    for leg in legs.values():
        ranks = np.arange(1, len(leg.passages) + 1)
        total[np.searchsorted(numbers, leg.passages)] += 1 / (constant + ranks)
    return _fused(numbers, total, k, free, legs)


def weighted_fusion(
    legs: Mapping[str, Ranking],
    weights: Mapping[str, float],
    k: int,
    free: NDArray[np.bool_] | None = None,
) -> Ranking:
    """The `k` best by the weighted sum of scores that are scaled to 0..1 in each leg.

    A leg's scores go from its lowest (0) to its highest (1) over all passages that any leg has. A
    passage that a leg lacks does not match there, which is a score of 0 before scaling. Where all
    are equal, all are 1.
    """
    import numpy as np

    numbers = _union(legs)
    total = np.zeros(len(numbers))
    for name, leg in legs.items():
        scores = np.zeros(len(numbers))
        scores[np.searchsorted(numbers, leg.passages)] = leg.scores
        total += weights[name] * _scaled(scores)
    return _fused(numbers, total, k, free, legs)


def _union(legs: Mapping[str, Ranking]) -> NDArray[np.int32]:
    import numpy as np

    found = [leg.passages for leg in legs.values()]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int32)


def _scaled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.ones(len(scores))


def _fused(
    numbers: NDArray[np.int32],
    scores: NDArray[np.float64],
    k: int,
    free: NDArray[np.bool_] | None,
    legs: Mapping[str, Ranking],
) -> Ranking:
    best = top(numbers, scores, k, free)
    return Ranking(best.passages, best.scores, dict(legs))


MAX_RERANKED = 1_000
"""Passages that a reranker is given at most."""

RERANK = "rerank"
"""Name of the leg of the reranker."""


def boost_years(index: Index, name: str, ranking: Ranking, query: str, factor: float) -> Ranking:
    """Multiply the scores of passages that have a year of the query in their text or fields.

    A score below 0 is divided, so that it grows, too.
    """
    import numpy as np

    years = set(years_in(query))
    if not years or not len(ranking.passages):
        return ranking
    numbers = ranking.passages.tolist()
    has = np.array([bool(years & _years_of(index.passages[n])) for n in numbers], np.bool_)
    grown = np.where(ranking.scores < 0, ranking.scores / factor, ranking.scores * factor)
    scores = np.where(has, grown, ranking.scores)
    order = np.lexsort((ranking.passages, -scores))
    legs = {**ranking.legs, name: Ranking(ranking.passages, ranking.scores)}
    return Ranking(ranking.passages[order], scores[order], legs)


def _years_of(passage: Passage) -> set[int]:
    texts = (passage.text, *passage.fields.values())
    return {year for text in texts for year in years_in(text)}


async def reranked(
    index: Index, name: str, ranking: Ranking, query: str, reranker: Reranker, n: int
) -> Ranking:
    """Order the `n` best by a reranker; those after them follow in the order they had."""
    import numpy as np

    best = ranking.passages[: min(n, MAX_RERANKED)]
    texts = [index.passages[number].text for number in best.tolist()]
    scores = np.array(await reranker.rerank(query, texts), np.float64)
    if len(scores) != len(best) or not np.isfinite(scores).all():
        raise ModelError(
            f"{reranker.name} gave {len(scores):,} scores for {len(best):,} passages, or one that is "
            "not a number",
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
