"""Query + index → a ranking of the matching passages; equal scores are in corpus order. Every other module here is one method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from pearl import plugins
from pearl.errors import UsageError, suggest
from pearl.retrieval import SearchSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pearl.retrieval.index import Index


class Query(Struct, frozen=True):
    """An analysed query: weighted terms, vector of unit length if needed, mask of allowed passages."""

    terms: Mapping[str, float]
    vector: NDArray[np.float32] | None = None
    mask: NDArray[np.bool_] | None = None


class Ranking(Struct, frozen=True):
    """The numbers of passages, best first, and their scores."""

    passages: NDArray[np.int32]
    scores: NDArray[np.float64]


class RankingMethod(Protocol):
    """The contract of a ranking method. A method that needs vectors may name a replacement with `without_vectors(settings) -> str`."""

    NEEDS_VECTORS: bool

    def rank(self, query: Query, index: Index, settings: SearchSettings, k: int) -> Ranking:
        """The `k` best matching passages, or fewer."""
        ...


CONTRACT = RankingMethod


def find_method(name: str) -> RankingMethod:
    """The method of a name."""
    if not plugins.exists(__name__, name):
        raise UsageError(f"unknown method '{name}'", help=suggest(name, method_names(), "methods"))
    method: RankingMethod = plugins.load(__name__, name, "method")
    return method


def method_names() -> tuple[str, ...]:
    """The names of all methods."""
    return plugins.names(__name__)


def top(numbers: NDArray[np.int32], scores: NDArray[np.float64], k: int) -> Ranking:
    """The `k` best passages by score, then by number."""
    import numpy as np

    if 0 < k < len(scores):  # Only sort those that may be among the best
        kept = scores >= np.partition(scores, -k)[-k]
        numbers, scores = numbers[kept], scores[kept]
    order = np.lexsort((numbers, -scores))[: max(k, 0)]
    return Ranking(numbers[order], scores[order])


RANK_CONSTANT = 60  # `k` of reciprocal rank fusion. Source: Cormack, Clarke and Büttcher 2009

LEAST_DEPTH = 100  # Minimum passages that each ranking contributes to a merge

DEPTH_FACTOR = 5  # The same, as a multiple of `k`


def depth_for(k: int) -> int:
    """How many passages to rank before rankings are merged to the `k` best."""
    return max(LEAST_DEPTH, DEPTH_FACTOR * k)


def rank_fusion(rankings: Sequence[Ranking], k: int) -> Ranking:
    """The `k` best by the sum of 1 / (60 + rank) over the rankings that contain the passage."""
    import numpy as np

    none = np.zeros(0, np.int32)
    numbers = np.unique(np.concatenate([none, *(ranking.passages for ranking in rankings)]))
    total = np.zeros(len(numbers))
    for ranking in rankings:
        ranks = np.arange(1, len(ranking.passages) + 1)
        total[np.searchsorted(numbers, ranking.passages)] += 1 / (RANK_CONSTANT + ranks)
    return top(numbers, total, k)
