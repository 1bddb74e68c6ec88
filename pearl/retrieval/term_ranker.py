"""BM25 over lists of terms in memory, for what compares short texts: sentences, rows, questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query
from pearl.retrieval.postings import Postings
from pearl.retrieval.weighting import Bm25, rank

_SETTINGS = SearchSettings(method="bm25", k1=1.2, b=0.75)
"""Those of Lucene."""


class TermRanker:
    """Ranks texts that are given by their terms.

    Example:
        >>> ranker = TermRanker([["key", "lamp"], ["oar"], ["key"]])
        >>> ranker.best(["key", "zebra"], 5)
        [2, 0]
        >>> [round(score, 2) for score in ranker.scores(["key"])]
        [0.39, 0.0, 0.52]
    """

    def __init__(self, texts: Sequence[Sequence[str]], *, b: float = _SETTINGS.b) -> None:
        self._settings = replace(_SETTINGS, b=b)
        self._postings = Postings.of_terms(texts)
        self._formula = Bm25.of(self._postings, self._settings, delta=0.0)

    def best(self, terms: Iterable[str], n: int) -> list[int]:
        """The places of at most `n` texts that have a term, the best first and ties in order."""
        return [place for place, _ in self._ranked(terms, n)]

    def scores(self, terms: Iterable[str]) -> list[float]:
        """One score for each text, 0 for those that have none of the terms; repeats count once."""
        found = [0.0] * self._postings.n_passages
        for place, score in self._ranked(terms, len(found)):
            found[place] = score
        return found

    def _ranked(self, terms: Iterable[str], n: int) -> Iterable[tuple[int, float]]:
        query = Query(dict.fromkeys(terms, 1.0))
        found = rank(query, self._postings, self._formula, n, self._settings)
        return zip(found.passages.tolist(), found.scores.tolist(), strict=True)
