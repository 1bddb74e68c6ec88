"""Rankings → one ranking: several are fused, or one is reordered; the originals are kept as legs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pearl.errors import ModelError
from pearl.retrieval import Reranker
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
    """The number of passages to rank before rankings are merged or reordered and the `k` best taken."""
    return max(LEAST_DEPTH, DEPTH_FACTOR * k)


def rank_fusion(
    legs: Mapping[str, Ranking], k: int, free: NDArray[np.bool_] | None = None
) -> Ranking:
    """The `k` best by the sum of 1 / (60 + rank) over the legs that have the passage."""
    import numpy as np

    def part(name: str, places: NDArray[np.intp], total: NDArray[np.float64]) -> None:
        total[places] += 1 / (RANK_CONSTANT + np.arange(1, len(places) + 1))

    return _fused(legs, part, k, free)


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

    def part(name: str, places: NDArray[np.intp], total: NDArray[np.float64]) -> None:
        scores = np.zeros(len(total))
        scores[places] = legs[name].scores
        low, high = scores.min(), scores.max()
        total += weights[name] * ((scores - low) / (high - low) if high > low else 1.0)

    return _fused(legs, part, k, free)


def _fused(
    legs: Mapping[str, Ranking],
    add_part: Callable[[str, NDArray[np.intp], NDArray[np.float64]], None],
    k: int,
    free: NDArray[np.bool_] | None,
) -> Ranking:
    import numpy as np

    none = np.zeros(0, np.int32)
    numbers = np.unique(np.concatenate([none, *(leg.passages for leg in legs.values())]))
    total = np.zeros(len(numbers))
    for name, leg in legs.items() if len(numbers) else ():
        add_part(name, np.searchsorted(numbers, leg.passages), total)
    best = top(numbers, total, k, free)
    return Ranking(best.passages, best.scores, dict(legs))


MAX_RERANKED = 1_000
"""Maximum number of passages for a reranker."""

RERANK = "rerank"
"""Name of the leg of the reranker."""


def boost_years(index: Index, name: str, ranking: Ranking, query: str, factor: float) -> Ranking:
    """Multiply the scores of passages with a year of the query in their text or fields."""
    import numpy as np

    years = set(years_in(query))
    if not years or not len(ranking.passages):
        return ranking
    found = [index.passages[number] for number in ranking.passages.tolist()]
    has = np.array(
        [any(years & {*years_in(t)} for t in (p.text, *p.fields.values())) for p in found], np.bool_
    )
    grown = np.where(ranking.scores < 0, ranking.scores / factor, ranking.scores * factor)
    scores = np.where(has, grown, ranking.scores)
    order = np.lexsort((ranking.passages, -scores))
    legs = {**ranking.legs, name: Ranking(ranking.passages, ranking.scores)}
    return Ranking(ranking.passages[order], scores[order], legs)


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
