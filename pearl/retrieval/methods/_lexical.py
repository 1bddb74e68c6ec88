"""Methods that rank by terms: BM25, BM25+ (as BM25, with `delta` for each term that a passage has) and TF-IDF.

TF-IDF is the cosine between the vectors of query and passage, one dimension for each term. With N passages,
n of which have a term, tf its frequency in a passage,

    idf = ln((1 + N) / (1 + n)) + 1
    score = sum over the query's terms of (weight * idf) * (tf * idf) / (|query| * |passage|)

Terms that no passage has are not in the vector of the query.
These are the scores of scikit-learn's `TfidfVectorizer` (`smooth_idf`, `norm="l2"`) for queries that repeat no term.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pearl.retrieval import SearchSettings, weighting
from pearl.retrieval.methods import Query, Ranking, Searchable, TermScore
from pearl.retrieval.postings import Postings
from pearl.retrieval.weighting import Bm25, Formula

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pearl.retrieval.weighting import Rarity


@dataclass(frozen=True, slots=True)
class _LexicalMethod:
    """A ranking by a formula, whose scores are sums over the terms of the query."""

    formula: Callable[[Query, Postings, SearchSettings], Formula]
    NEEDS_VECTORS: bool = False

    def rank(self, query: Query, index: Searchable, settings: SearchSettings, k: int) -> Ranking:
        """The `k` best passages that have a term of the query."""
        formula = self.formula(query, index.terms, settings)
        return weighting.rank(query, index.terms, formula, k, settings)

    def explain(
        self, query: Query, index: Searchable, settings: SearchSettings, passage: int
    ) -> tuple[TermScore, ...]:
        """The share of each term in the score of a passage."""
        formula = self.formula(query, index.terms, settings)
        return weighting.explain(query, index.terms, formula, passage)


@dataclass(frozen=True, slots=True)
class _Cosine:
    """The share of a term in the cosine."""

    terms: Postings
    query_length: float

    @classmethod
    def of(cls, query: Query, terms: Postings, settings: SearchSettings) -> _Cosine:
        known = {term: len(terms.postings(term)[0]) for term in query.terms}
        parts = [query.terms[term] * _idf(terms.n_passages, n) for term, n in known.items() if n]
        return cls(terms, math.hypot(*parts) or 1.0)

    def idf(self, n_with: int) -> float:
        return _idf(self.terms.n_passages, n_with)

    def gain(
        self, idf: Rarity, passages: NDArray[Any], counts: NDArray[Any]
    ) -> NDArray[np.float64]:
        import numpy as np

        lengths = weighting.remembered(self.terms, "tfidf", lambda: _lengths(self.terms))
        return np.asarray(counts * idf / (lengths[passages] * self.query_length), np.float64)


def _idf(n_passages: int, n_with: int) -> float:
    return math.log((1 + n_passages) / (1 + n_with)) + 1


def _lengths(terms: Postings) -> NDArray[np.float64]:
    """The lengths of the vectors of all passages, shape (passages,)."""
    import numpy as np

    idf = np.log((1 + terms.n_passages) / (1 + terms.frequencies)) + 1
    parts = terms.counts * np.repeat(idf, terms.frequencies)
    return np.sqrt(np.bincount(terms.passages, parts**2, minlength=terms.n_passages))


PLUGINS = {
    "bm25": _LexicalMethod(lambda query, terms, settings: Bm25(terms, settings, delta=0.0)),
    "bm25-plus": _LexicalMethod(
        lambda query, terms, settings: Bm25(terms, settings, settings.delta)
    ),
    "tfidf": _LexicalMethod(_Cosine.of),
}
