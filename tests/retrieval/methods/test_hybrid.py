"""`hybrid`: the rankings of both legs, merged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pearl.retrieval import Hit, SearchSettings, TextKind
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.search import Searcher

TEXTS = {
    "iron": "Iron is mined in the north.",
    "salt": "Salt is cheap in the south.",
    "lead": "Lead, a metal, is mined with iron.",
    "tale": "The old tale of the smith.",
}
MEANINGS = {"iron": (1.0, 0.0), "salt": (0.0, 1.0), "lead": (0.8, 0.6), "tale": (0.96, 0.28)}


class Meanings:
    """An embedder that knows what the texts are about; a query is about iron."""

    name = "meanings"

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        if kind == "query":
            return np.array([(1.0, 0.0)] * len(texts), np.float32)
        known = {text: MEANINGS[name] for name, text in TEXTS.items()}
        return np.array([known[text] for text in texts], np.float32)

    async def aclose(self) -> None:
        pass


def hits(k: int = 10, query: str = "iron mined") -> tuple[Hit, ...]:
    index = Index.build([CorpusDocument(*pair) for pair in TEXTS.items()], Cutting("document"))
    searcher = Searcher(SearchSettings("hybrid"), Meanings())
    return asyncio.run(searcher.search(index, query, k)).hits


def test_ranks_are_merged_by_reciprocal_ranks() -> None:
    found = {hit.passage.document: hit.score for hit in hits()}
    assert found["iron"] == pytest.approx(2 / 61)
    assert found["lead"] == pytest.approx(1 / 62 + 1 / 63)
    assert found["tale"] == pytest.approx(1 / 62)


def test_unknown_words_leave_the_dense_leg() -> None:
    assert [hit.passage.document for hit in hits(2, "zebra")] == ["iron", "tale"]
