"""BM25."""

from __future__ import annotations

from pearl.retrieval import SearchSettings, weighting
from pearl.retrieval.methods import Query, Ranking, Searchable, TermScore
from pearl.retrieval.weighting import Bm25

NEEDS_VECTORS = False


def rank(query: Query, index: Searchable, settings: SearchSettings, k: int) -> Ranking:
    """The `k` best passages that have a term of the query."""
    formula = Bm25.of(index.terms, settings, delta=0.0)
    return weighting.rank(query, index.terms, formula, k, settings)


def explain(
    query: Query, index: Searchable, settings: SearchSettings, passage: int
) -> tuple[TermScore, ...]:
    """What each term adds to the score of a passage."""
    formula = Bm25.of(index.terms, settings, delta=0.0)
    return weighting.explain(query, index.terms, formula, passage)
