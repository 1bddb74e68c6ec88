"""Text + query → ranked sentences, by their words and, with an embedder, by sentence vectors, too.

Both scores of all sentences are standardised and added. The sum is told in the unit of the score by
words, so that what holds of shares of the best score holds with vectors and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pearl.llm.backends.extractive.ranking import SentenceHit, SentenceIndex, SentenceQuery
from pearl.llm.middleware.caching import SingleFlight
from pearl.llm.progress import CallProgress, report
from pearl.retrieval import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WEIGHT = 0.75
"""Weight of the standardised likeness of vectors; that of the words is 1."""
_NEIGHBOUR = 0.5
"""Share of the sentences before and after in the vector of a sentence."""

_MAX_INDEXES = 8
"""Maximum cached indexes of texts."""
_STEP = 256
"""Sentences that are embedded between two reports of progress."""


class SentenceRanker:
    """Ranks the sentences of texts, whose indexes and vectors it keeps for a while."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._index = lru_cache(_MAX_INDEXES)(SentenceIndex)
        self._vectors: WeakKeyDictionary[SentenceIndex, NDArray[np.float32]] = WeakKeyDictionary()
        self._under_way: SingleFlight[NDArray[np.float32]] = SingleFlight()

    def index(self, text: str) -> SentenceIndex:
        """The index of a text."""
        return self._index(text)

    async def rank(self, index: SentenceIndex, query: SentenceQuery) -> list[SentenceHit]:
        """The sentences that match a query by a word or, with vectors, all of them; best first."""
        hits = index.rank(query)
        if self._embedder is None or not query.text.strip() or not len(index):
            return hits
        vectors = await self._vectors_of(index, self._embedder)
        (asked,) = await self._embedder.embed([query.text], "query")
        return _fused(hits, vectors @ asked)

    async def aclose(self) -> None:
        """Clear the cache, and close the embedder."""
        self._index.cache_clear()
        if self._embedder is not None:
            await self._embedder.aclose()

    async def _vectors_of(self, index: SentenceIndex, embedder: Embedder) -> NDArray[np.float32]:
        """A vector for each sentence and what is around it, made once."""
        if index not in self._vectors:

            async def made() -> NDArray[np.float32]:
                return _with_neighbours(await _embedded(index.texts, embedder))

            self._vectors[index] = await self._under_way.do(index, made)
        return self._vectors[index]


async def _embedded(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    """Vectors of sentences, shape (len(texts), dimension)."""
    import numpy as np

    parts = []
    for start in range(0, len(texts), _STEP):
        report(CallProgress("embedding", start, len(texts)))
        parts.append(await embedder.embed(texts[start : start + _STEP], "passage"))
    return np.concatenate(parts)


def _with_neighbours(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each vector with a share of those before and after it, of unit length."""
    import numpy as np

    around = vectors.copy()
    around[1:] += _NEIGHBOUR * vectors[:-1]
    around[:-1] += _NEIGHBOUR * vectors[1:]
    lengths = np.linalg.norm(around, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    unit: NDArray[np.float32] = around / lengths
    return unit


def _fused(hits: Sequence[SentenceHit], likeness: NDArray[np.float32]) -> list[SentenceHit]:
    """Hits for all sentences, of which `hits` are those that were found by words.

    z(words) + w z(likeness), times the deviation of the score by words, plus its mean.
    """
    import numpy as np

    by_words = np.zeros(len(likeness))
    for hit in hits:
        by_words[hit.number] = hit.score
    cosines = likeness.astype(np.float64)
    # Where no word matches, or all sentences match alike, the likeness stands alone.
    unit = float(by_words.std()) or 1.0
    spread = float(cosines.std()) or 1.0
    scores = by_words + _WEIGHT * unit * (cosines - cosines.mean()) / spread
    known = {hit.number: hit for hit in hits}
    found = [
        replace(
            known.get(number) or SentenceHit(number, 0.0, 0.0, 0),
            score=float(scores[number]),
            likeness=float(cosines[number]),
        )
        for number in range(len(scores))
    ]
    return sorted(found, key=lambda hit: (-hit.score, hit.number))
