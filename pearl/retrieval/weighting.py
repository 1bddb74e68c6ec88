"""Terms of a query + postings → scores of passages.

A method says by a `Formula` what a term adds to the score of a passage that has it:
`weight * idf * gain`, where the weight is the query's. That of BM25 and BM25+ is here. With `tf` the
frequency of a term in a passage of `len` terms, and `mean` the mean length,

    gain = tf * (k1 + 1) / (tf + k1 * (1 - b + b * len / mean)) + delta

Source: Robertson and Zaragoza 2009; Lv and Zhai 2011 for `delta`, which is added for matched terms
only, so that it changes the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, TermScore, best, free_passages
from pearl.retrieval.postings import Postings, TermIndex, TermSegment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Column = tuple[NDArray[np.int32], NDArray[Any]]
    Rarity = float | NDArray[np.float64]


T = TypeVar("T")


class Formula(Protocol):
    """What a term adds to a score."""

    def idf(self, n_with: int) -> float:
        """The weight of a term that so many live passages have."""
        ...

    def gain(
        self, segment: TermSegment, idf: Rarity, passages: NDArray[Any], counts: NDArray[Any]
    ) -> NDArray[np.float64]:
        """What terms of an idf are worth in passages of a segment that have them so often."""
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

    settings: SearchSettings
    delta: float
    n_passages: int
    mean_length: float

    @classmethod
    def of(cls, terms: TermIndex, settings: SearchSettings, delta: float) -> Bm25:
        """The formula for an index."""
        return cls(settings, delta, terms.n_live, terms.mean_length or 1.0)

    def idf(self, n_with: int) -> float:
        """As the settings say."""
        return idf(self.settings.idf, self.n_passages, n_with)

    def gain(
        self, segment: TermSegment, idf: Rarity, passages: NDArray[Any], counts: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Saturated frequency, normalised by length."""
        import numpy as np

        tf = counts.astype(np.float64)
        k1 = self.settings.k1
        norms = self._norms(segment.whole)[passages]
        return np.asarray(tf * (k1 + 1) / (tf + norms) + self.delta, np.float64)

    def _norms(self, postings: Postings) -> NDArray[np.float64]:
        import numpy as np

        k1, b, mean = self.settings.k1, self.settings.b, self.mean_length
        return remembered(
            postings,
            ("bm25", k1, b, mean),
            lambda: np.asarray(k1 * (1 - b + b * postings.lengths / mean), np.float64),
        )


_MEMORY: WeakKeyDictionary[object, dict[Hashable, Any]] = WeakKeyDictionary()
_MAX_REMEMBERED = 8


def remembered(owner: object, key: Hashable, make: Callable[[], T]) -> T:
    """What queries need of an index or a segment, made once for some settings: norms of passages."""
    memory = _MEMORY.setdefault(owner, {})
    if key not in memory:
        if len(memory) >= _MAX_REMEMBERED:
            memory.clear()
        memory[key] = make()
    found: T = memory[key]
    return found


def rank(
    query: Query, terms: TermIndex, formula: Formula, k: int, settings: SearchSettings
) -> Ranking:
    """The `k` best passages that have a term of a query, and the short ones that are free."""
    free = free_passages(terms, settings)
    return best(scores(query, terms, formula, k if free is None else None), k, free)


def _columns(query: Query, terms: TermIndex) -> dict[str, list[_Column]]:
    """The postings of each term of a query in each segment, without terms that no passage has."""
    found = {term: [s.postings(term) for s in terms.segments] for term in query.terms}
    return {term: columns for term, columns in found.items() if n_with(columns)}


def n_with(columns: Iterable[_Column]) -> int:
    """How many live passages are in the columns of a term."""
    return sum(len(passages) for passages, _ in columns)


def scores(
    query: Query, terms: TermIndex, formula: Formula, n_best: int | None = None
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.float64]]]:
    """For each segment, the passages that have a term of the query, with their scores.

    Memory is bounded by the size of a segment, and time by the postings of the terms.
    """
    import numpy as np

    columns = _columns(query, terms)
    rarities = [formula.idf(n_with(found)) for found in columns.values()]
    weights = [query.terms[term] for term in columns]
    most = None if n_best is None else n_best * len(columns)
    for i, segment in enumerate(terms.segments if columns else ()):
        found = [column[i] for column in columns.values()]
        sizes = [len(passages) for passages, _ in found]
        passages = np.concatenate([passages for passages, _ in found]).astype(np.intp)
        counts = np.concatenate([counts for _, counts in found])
        rarity = np.repeat(rarities, sizes)
        gain = formula.gain(segment, rarity, passages, counts)
        # Summed one after another, term by term: as `explain` does.
        parts = np.repeat(weights, sizes) * rarity * gain
        total = np.bincount(passages, parts, minlength=segment.whole.n_passages)
        mask = None if query.mask is None else segment.selected(query.mask)
        places = _matched(passages, total, mask, most)
        yield segment.numbered(places), total[places].astype(np.float64)


def _matched(
    passages: NDArray[np.intp],
    scores: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    most: int | None,
) -> NDArray[np.intp]:
    """The different passages of a segment that may be found, ascending."""
    import numpy as np

    if len(passages) > len(scores) // 8:  # so many are found faster by a mark each
        has = np.zeros(len(scores), np.bool_)
        has[passages] = True
        return np.flatnonzero(has if mask is None else has & mask)
    if mask is not None:
        passages = passages[mask[passages]]
    if most is not None and 0 < most < len(passages):
        reached = scores[passages]
        passages = passages[reached >= np.partition(reached, -most)[-most]]
    passages = np.sort(passages)
    is_first = np.ones(len(passages), np.bool_)
    np.not_equal(passages[1:], passages[:-1], out=is_first[1:])
    return passages[is_first]


def explain(
    query: Query, terms: TermIndex, formula: Formula, passage: int
) -> tuple[TermScore, ...]:
    """What each term of a query adds to the score of a passage; the sum, in order, is the score."""
    import numpy as np

    places = ((i, segment.find(passage)) for i, segment in enumerate(terms.segments))
    i, number = next((i, place) for i, place in places if place is not None)
    segment = terms.segments[i]
    scored = []
    for term, found in _columns(query, terms).items():
        passages, counts = found[i]
        at = np.flatnonzero(passages == number)
        if len(at):
            n, weight = n_with(found), query.terms[term]
            rarity = formula.idf(n)
            gain = float(formula.gain(segment, rarity, passages[at], counts[at])[0])
            tf, length = int(counts[at[0]]), int(segment.whole.lengths[number])
            score = weight * rarity * gain
            scored.append(TermScore(term, tf, length, n, weight, rarity, gain, score))
    return tuple(scored)


_SETTINGS = SearchSettings(method="bm25", k1=1.2, b=0.75)
"""Those of Lucene."""


class TermRanker:
    """Ranks texts that are given by their terms."""

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
