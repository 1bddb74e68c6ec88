"""Words and meaning: a lexical ranking and that of `dense`, fused.

Each leg ranks its best passages, and both legs score the union: a passage that only one leg ranked has its
true score in the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.errors import UsageError
from pearl.retrieval import SearchSettings
from pearl.retrieval.fusion import depth_for, rank_fusion, weighted_fusion
from pearl.retrieval.methods import Query, Ranking, Searchable, find_method, free_passages

if TYPE_CHECKING:
    pass

NEEDS_VECTORS = True


def rank(query: Query, index: Searchable, settings: SearchSettings, k: int) -> Ranking:
    """The `k` best passages of both legs."""
    import numpy as np

    lexical = find_method(settings.lexical)
    if lexical.NEEDS_VECTORS:
        raise UsageError(f"'{settings.lexical}' is not a lexical method", help="lexical: bm25")
    depth, free = depth_for(k), free_passages(index.terms, settings)
    methods = {settings.lexical: lexical, "dense": find_method("dense")}
    named = {name: method.rank(query, index, settings, depth) for name, method in methods.items()}
    if settings.fusion == "rank":
        return rank_fusion(named, k, free)
    union = np.zeros(index.terms.n_passages, np.bool_)
    for ranking in named.values():
        union[ranking.passages] = True
    n = int(union.sum())
    among = Query(query.terms, query.vector, union)
    legs = {name: method.rank(among, index, settings, n) for name, method in methods.items()}
    weights = {settings.lexical: 1 - settings.dense_weight, "dense": settings.dense_weight}
    return weighted_fusion(legs, weights, k, free)


def without_vectors(settings: SearchSettings) -> str:
    """The lexical leg, which replaces this method if no vector is available."""
    return settings.lexical
