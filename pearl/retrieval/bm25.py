"""Query + passages → BM25 scores, by `bm25s` over the terms of `pearl.documents.passages`.

The variant is Lucene's: every idf is positive and nothing is added for terms that a passage lacks,
so a passage scores above zero exactly if it contains a query term. (`bm25s` fails on unseen terms,
empty queries and empty vocabularies, and counts repeated query terms twice; this module filters all
of these.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pearl.documents.passages import terms

__all__ = ["Index", "rank"]

K1 = 1.2
B = 0.75


def rank(query: str, passages: Sequence[str]) -> list[float]:
    """Score every passage for a query.

    Example:
        >>> scores = rank("who kept the keys?", ["A key is kept here.", "No lamp.", "The key."])
        >>> [round(score, 1) for score in scores]
        [0.5, 0.0, 0.2]
    """
    index = Index([terms(passage, drop_stop_words=True) for passage in passages])
    wanted = terms(query, drop_stop_words=True)
    # Stop words are used if the query has no other terms.
    if not wanted:
        index = Index([terms(passage) for passage in passages])
        wanted = terms(query)
    return index.scores(wanted)


class Index:
    """An index of passages for repeated queries.

    Args:
        passages: The terms of every passage.
        k1: Term-frequency saturation, from 0 (repeats do not count).
        b: Length normalisation, 0 (none) to 1.
    """

    def __init__(self, passages: Sequence[Sequence[str]], *, k1: float = K1, b: float = B) -> None:
        # Imported on use: `import pearl` stays light.
        import bm25s

        self._n_passages = len(passages)
        self._ids: dict[str, int] = {}
        rows = [
            [self._ids.setdefault(term, len(self._ids)) for term in passage] for passage in passages
        ]
        self._bm25 = bm25s.BM25(k1=k1, b=b, method="lucene", backend="numpy")
        if self._ids:
            self._bm25.index((rows, dict(self._ids)), show_progress=False)

    def scores(self, query: Iterable[str]) -> list[float]:
        """One score per passage; each query term counts once."""
        known = [self._ids[term] for term in dict.fromkeys(query) if term in self._ids]
        if not known:
            return [0.0] * self._n_passages
        found: list[float] = self._bm25.get_scores_from_ids(known).tolist()
        return found

    def best(self, query: Iterable[str], n: int) -> list[int]:
        """The places of the best passages, best first and ties in order, all with a score above 0.

        Args:
            query: As in `scores`.
            n: How many at most.
        """
        import numpy as np

        known = [self._ids[term] for term in dict.fromkeys(query) if term in self._ids]
        if not known:
            return []
        scores = self._bm25.get_scores_from_ids(known)
        places = np.flatnonzero(scores > 0)
        if len(places) > n:
            least = np.partition(scores[places], -n)[-n]
            places = places[scores[places] >= least]
        order = places[np.argsort(-scores[places], kind="stable")][:n]
        found: list[int] = order.tolist()
        return found
