"""Query + index → a ranking of passages. Every other module of this folder is one method, or holds several in `PLUGINS`.

Only passages that match are in a ranking, the best first; those with equal scores are in the order
of the corpus. A query without known terms gives an empty ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pearl import plugins
from pearl.errors import UsageError, suggest
from pearl.retrieval import SearchSettings
from pearl.retrieval.postings import Postings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CONTRACT",
    "Query",
    "Ranking",
    "RankingMethod",
    "Searchable",
    "TermScore",
    "find_method",
    "first",
    "free_passages",
    "method_names",
    "top",
]


class Searchable(Protocol):
    """The part of an index that methods use."""

    @property
    def terms(self) -> Postings:
        """Its terms."""
        ...

    @property
    def vectors(self) -> NDArray[np.float32] | None:
        """One vector of unit length for each passage; None if it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """A query that is ready to be ranked.

    Attributes:
        terms: Its different terms with their weights: 1 for terms of the question itself.
        vector: Its vector of unit length, where the method needs one.
        mask: The passages that may be found, shape (passages,); None for all.
    """

    terms: Mapping[str, float]
    vector: NDArray[np.float32] | None = None
    mask: NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Passages, the best first.

    Attributes:
        passages: Their numbers.
        scores: Their scores, not ascending.
        legs: The rankings that this one was merged from, by name.
    """

    passages: NDArray[np.int32]
    scores: NDArray[np.float64]
    legs: Mapping[str, Ranking] = field(default_factory=dict)


class RankingMethod(Protocol):
    """The contract of a ranking method.

    A method whose scores are sums over the terms of the query may have `explain(query, index, settings, passage) ->
    tuple[TermScore, ...]`; one that needs vectors may have `without_vectors(settings) -> str`, the method that
    replaces it if vectors are not available.
    """

    NEEDS_VECTORS: bool

    def rank(self, query: Query, index: Searchable, settings: SearchSettings, k: int) -> Ranking:
        """The `k` best passages that match, or fewer."""
        ...


CONTRACT = RankingMethod


class TermScore(NamedTuple):
    """What one term adds to the score of a passage: `weight * idf * gain`.

    Attributes:
        term: The term.
        tf: Its frequency in the passage.
        length: The number of terms of the passage.
        n_with: The number of passages with the term.
        weight: Its weight in the query.
        idf: Its inverse document frequency.
        gain: The weight of its frequency in a passage of this length.
        score: Its share of the passage's score.
    """

    term: str
    tf: int
    length: int
    n_with: int
    weight: float
    idf: float
    gain: float
    score: float


def find_method(name: str) -> RankingMethod:
    """The method of a name; `+` is written `-plus` in file names.

    Raises:
        UsageError: No method has that name.
    """
    spelled = name.replace("+", "-plus")
    if not plugins.exists(__name__, spelled):
        raise UsageError(f"unknown method '{name}'", help=suggest(name, method_names(), "methods"))
    method: RankingMethod = plugins.load(__name__, spelled, "method")
    return method


def method_names() -> tuple[str, ...]:
    """The names of all methods."""
    return tuple(name.replace("-plus", "+") for name in plugins.names(__name__))


def top(
    numbers: NDArray[np.int32],
    scores: NDArray[np.float64],
    k: int,
    free: NDArray[np.bool_] | None = None,
) -> Ranking:
    """The `k` best of some passages, by score, then by number.

    Args:
        numbers: Different numbers of passages.
        scores: Their scores.
        k: Maximum number of passages that are not free.
        free: Which passages of the index are returned besides the `k` best; None for none.
    """
    import numpy as np

    counted = scores if free is None else scores[~free[numbers]]
    if k <= 0:
        numbers, scores = numbers[:0], scores[:0]
    elif k < len(counted):  # only those that may be among the best are sorted
        kept = scores >= np.partition(counted, -k)[-k]
        if free is not None:
            kept |= free[numbers]
        numbers, scores = numbers[kept], scores[kept]
    order = np.lexsort((numbers, -scores))
    return first(Ranking(numbers[order], scores[order]), k, free)


def first(ranking: Ranking, k: int, free: NDArray[np.bool_] | None = None) -> Ranking:
    """The first `k` of a ranking, and the free passages besides them; arguments as of `top`."""
    import numpy as np

    if free is None:
        kept: slice | NDArray[np.bool_] = slice(max(k, 0))
    else:
        counted = ~free[ranking.passages]
        kept = ~counted | (np.cumsum(counted) <= k)
    return Ranking(ranking.passages[kept], ranking.scores[kept], ranking.legs)


def free_passages(terms: Postings, settings: SearchSettings) -> NDArray[np.bool_] | None:
    """Which passages have fewer than `settings.free_words` terms; None if none may be free."""
    return terms.lengths < settings.free_words if settings.free_words > 0 else None
