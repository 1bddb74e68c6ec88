"""A ranking → another order of the same passages; the ranking before stays as a leg."""

from __future__ import annotations

from pearl.errors import ModelError
from pearl.retrieval import Passage, Reranker
from pearl.retrieval.index import Index
from pearl.retrieval.methods import Ranking
from pearl.retrieval.queries import years_in

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
            f"{reranker.name} gave {len(scores):,} scores of {len(best):,} passages, or one that is "
            "no number",
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
