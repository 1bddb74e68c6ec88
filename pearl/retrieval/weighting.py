"""Terms of a query + postings → scores of passages.

The score of a passage is the sum of `weight * idf * gain` over the terms of the query that it has; the weight is
the query's, and a `Formula` gives idf and gain. This is the gain of BM25 and BM25+, with `tf` the frequency of a
term in a passage of `len` terms, and `mean` the mean length:

    gain = tf * (k1 + 1) / (tf + k1 * (1 - b + b * len / mean)) + delta

Source: Robertson and Zaragoza 2009; Lv and Zhai 2011 for `delta`, which is added for matched terms
only, so that it changes the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, TermScore, free_passages, top
from pearl.retrieval.postings import Postings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Column = tuple[NDArray[np.int32], NDArray[Any]]
    Rarity = float | NDArray[np.float64]


T = TypeVar("T")


class Formula(Protocol):
    """The idf and the gain of a ranking method."""

    def idf(self, n_with: int) -> float:
        """The weight of a term that occurs in `n_with` passages."""
        ...

    def gain(
        self, idf: Rarity, passages: NDArray[Any], counts: NDArray[Any]
    ) -> NDArray[np.float64]:
        """The gain of terms with an idf and with counts in passages."""
        ...


def idf(kind: str, n_passages: int, n_with: int) -> float:
    """Inverse document frequency of a term; never below 0."""
    match kind:
        case "plus":
            return math.log((n_passages + 1) / n_with)
        case "robertson":
            return max(0.0, math.log((n_passages - n_with + 0.5) / (n_with + 0.5)))
        case _:
            return math.log(1 + (n_passages - n_with + 0.5) / (n_with + 0.5))


@dataclass(frozen=True, slots=True)
class Bm25:
    """The formula of BM25, and with `delta` above 0 that of BM25+."""

    terms: Postings
    settings: SearchSettings
    delta: float

    def idf(self, n_with: int) -> float:
        """The idf that the settings name."""
        return idf(self.settings.idf, self.terms.n_passages, n_with)

    def gain(
        self, idf: Rarity, passages: NDArray[Any], counts: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Saturated frequency, normalised by length."""
        import numpy as np

        terms, k1, b = self.terms, self.settings.k1, self.settings.b
        mean = terms.mean_length or 1.0
        norms = remembered(
            terms,
            ("bm25", k1, b),
            lambda: np.asarray(k1 * (1 - b + b * terms.lengths / mean), np.float64),
        )
        tf = counts.astype(np.float64)
        return np.asarray(tf * (k1 + 1) / (tf + norms[passages]) + self.delta, np.float64)


_MAX_REMEMBERED = 8


def remembered(terms: Postings, key: Hashable, make: Callable[[], T]) -> T:
    """A value derived from an index, such as norms of passages; cached for each of some settings."""
    found: T | None = terms.derived.get(key)
    if found is None:
        if len(terms.derived) >= _MAX_REMEMBERED:
            terms.derived.clear()
        found = terms.derived[key] = make()
    return found


def rank(
    query: Query, terms: Postings, formula: Formula, k: int, settings: SearchSettings
) -> Ranking:
    """The `k` best passages with a term of a query, and the short ones that are free."""
    import numpy as np

    columns = _columns(query, terms)
    sizes = np.array([len(passages) for passages, _ in columns.values()], np.int64)
    none = np.zeros(0, np.intp)
    passages = np.concatenate([none, *(passages for passages, _ in columns.values())])
    counts = np.concatenate([none, *(counts for _, counts in columns.values())])
    rarity = np.repeat([formula.idf(n) for n in sizes.tolist()], sizes)
    gain = formula.gain(rarity, passages, counts)
    # Summed term by term, in the order of `explain`.
    parts = np.repeat([query.terms[term] for term in columns], sizes) * rarity * gain
    total = np.bincount(passages, parts, minlength=terms.n_passages)
    matches = np.zeros(terms.n_passages, np.bool_)
    matches[passages] = True
    numbers = np.flatnonzero(matches if query.mask is None else matches & query.mask)
    scores = total[numbers].astype(np.float64)
    return top(numbers.astype(np.int32), scores, k, free_passages(terms, settings))


def _columns(query: Query, terms: Postings) -> dict[str, _Column]:
    """The postings of each term of a query that occurs in a passage."""
    found = {term: terms.postings(term) for term in query.terms}
    return {term: column for term, column in found.items() if len(column[0])}


def explain(query: Query, terms: Postings, formula: Formula, passage: int) -> tuple[TermScore, ...]:
    """The share of each term of a query in the score of a passage; their sum, in order, is the score."""
    import numpy as np

    scored = []
    for term, (passages, counts) in _columns(query, terms).items():
        at = np.flatnonzero(passages == passage)
        if len(at):
            n, weight = len(passages), query.terms[term]
            rarity = formula.idf(n)
            gain = float(formula.gain(rarity, passages[at], counts[at])[0])
            tf, length = int(counts[at[0]]), int(terms.lengths[passage])
            score = weight * rarity * gain
            scored.append(TermScore(term, tf, length, n, weight, rarity, gain, score))
    return tuple(scored)


_SETTINGS = SearchSettings(method="bm25", k1=1.2, b=0.75)
"""The defaults of Lucene."""


class TermRanker:
    """Ranks texts that are given by their terms."""

    def __init__(self, texts: Sequence[Sequence[str]], *, b: float = _SETTINGS.b) -> None:
        self._settings = replace(_SETTINGS, b=b)
        self._postings = Postings.of_terms(texts)
        self._formula = Bm25(self._postings, self._settings, delta=0.0)

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
