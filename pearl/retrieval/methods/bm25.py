"""BM25: the score of a passage is the sum of `weight * idf * gain` over the terms of the query that it has.

The weight is the query's. With `tf` the frequency of a term in a passage of `len` terms, `mean` the mean length, and n of
N passages with the term:

    idf = ln(1 + (N - n + 0.5) / (n + 0.5))
    gain = tf * (K1 + 1) / (tf + K1 * (1 - B + B * len / mean))

Source: Robertson and Zaragoza 2009; the idf is that of Lucene.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, top
from pearl.retrieval.postings import Postings, PostingsBuilder

if TYPE_CHECKING:
    from pearl.retrieval.index import Index

NEEDS_VECTORS = False

K1, B = 1.2, 0.75
"""Saturation of the frequency, and length normalisation: the defaults of Lucene."""


def rank(query: Query, index: Index, settings: SearchSettings, k: int) -> Ranking:
    """The `k` best passages that contain a term of the query."""
    return _ranked(query, index.terms, k)


def _ranked(query: Query, terms: Postings, k: int) -> Ranking:
    import numpy as np

    found = {term: terms.postings(term) for term in query.terms}
    sizes = np.array([len(passages) for passages, _ in found.values()], np.int64)
    none = np.zeros(0, np.intp)
    passages = np.concatenate([none, *(passages for passages, _ in found.values())])
    tf = np.concatenate([none, *(counts for _, counts in found.values())]).astype(np.float64)
    norms = K1 * (1 - B + B * terms.lengths[passages] / (terms.mean_length or 1.0))
    idf = np.repeat(np.log(1 + (terms.n_passages - sizes + 0.5) / (sizes + 0.5)), sizes)
    weights = np.repeat(list(query.terms.values()), sizes)
    total = np.bincount(
        passages, weights * idf * (tf * (K1 + 1) / (tf + norms)), minlength=terms.n_passages
    )
    matches = np.zeros(terms.n_passages, np.bool_)
    matches[passages] = True
    numbers = np.flatnonzero(matches if query.mask is None else matches & query.mask)
    return top(numbers.astype(np.int32), total[numbers].astype(np.float64), k)


class TermRanker:
    """Ranks texts given as terms."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        builder = PostingsBuilder(None)
        for text in texts:
            builder.add_tokens(text)
        self._postings = builder.finish()

    def best(self, terms: Iterable[str], n: int) -> list[int]:
        """The positions of at most `n` texts that contain a term, best first; ties keep their order."""
        return [place for place, _ in self._scored(terms, n)]

    def scores(self, terms: Iterable[str]) -> list[float]:
        """One score per text, 0 for texts without any of the terms; repeated terms count once."""
        found = [0.0] * self._postings.n_passages
        for place, score in self._scored(terms, len(found)):
            found[place] = score
        return found

    def _scored(self, terms: Iterable[str], n: int) -> Iterator[tuple[int, float]]:
        found = _ranked(Query(dict.fromkeys(terms, 1.0)), self._postings, n)
        return zip(found.passages.tolist(), found.scores.tolist(), strict=True)
