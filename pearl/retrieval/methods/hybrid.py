"""Words and meaning: a lexical ranking and that of `dense`, fused.

Each leg ranks its best passages, and both legs score the union: a passage that only one leg ranked has its
true score in the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pearl.errors import UsageError
from pearl.retrieval import SearchSettings
from pearl.retrieval.fusion import depth_for, rank_fusion, weighted_fusion
from pearl.retrieval.methods import Query, Ranking, Searchable, find_method, free_passages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEEDS_VECTORS = True


def rank(query: Query, index: Searchable, settings: SearchSettings, k: int) -> Ranking:
    """The `k` best passages of both legs."""
    lexical = find_method(settings.lexical)
    if lexical.NEEDS_VECTORS:
        raise UsageError(f"'{settings.lexical}' is not a lexical method", help="lexical: bm25")
    depth, free = depth_for(k), free_passages(index.terms, settings)
    methods = {settings.lexical: lexical, "dense": find_method("dense")}
    named = {name: method.rank(query, index, settings, depth) for name, method in methods.items()}
    if settings.fusion == "rank":
        return rank_fusion(named, k, free)
    union = _mask(named.values(), index.terms.n_passages)
    n = int(union.sum())
    among = Query(query.terms, query.vector, union)
    legs = {name: method.rank(among, index, settings, n) for name, method in methods.items()}
    weights = {settings.lexical: 1 - settings.dense_weight, "dense": settings.dense_weight}
    return weighted_fusion(legs, weights, k, free)


def without_vectors(settings: SearchSettings) -> str:
    """The lexical leg, which replaces this method if no vector is available."""
    return settings.lexical


def _mask(rankings: Iterable[Ranking], n_passages: int) -> NDArray[np.bool_]:
    import numpy as np

    mask = np.zeros(n_passages, np.bool_)
    for ranking in rankings:
        mask[ranking.passages] = True
    return mask
