"""`hybrid`: both legs name passages, both score what either named."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pearl.errors import UsageError
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


def hits(k: int = 10, query: str = "iron mined", **settings: Any) -> tuple[Hit, ...]:
    index = Index.build([CorpusDocument(*pair) for pair in TEXTS.items()], Cutting("document"))
    searcher = Searcher(SearchSettings("hybrid", **settings), Meanings())
    return asyncio.run(searcher.search(index, query, k)).hits


def scaled(scores: Sequence[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) for score in scores]


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_scores_are_weighted_sums_of_scaled_legs(weight: float) -> None:
    found = {hit.passage.document: hit for hit in hits(dense_weight=weight)}
    assert set(found) == set(TEXTS)
    words = scaled([found[name].legs.get("bm25", (0, 0.0))[1] for name in TEXTS])
    meaning = scaled([MEANINGS[name][0] for name in TEXTS])
    for name, word, near in zip(TEXTS, words, meaning, strict=True):
        assert found[name].legs["dense"][1] == pytest.approx(MEANINGS[name][0])
        assert found[name].score == pytest.approx((1 - weight) * word + weight * near)


def test_ranks_are_merged_by_reciprocal_ranks() -> None:
    found = {hit.passage.document: hit.score for hit in hits(fusion="rank")}
    assert found["iron"] == pytest.approx(2 / 61)
    assert found["lead"] == pytest.approx(1 / 62 + 1 / 63)
    assert found["tale"] == pytest.approx(1 / 62)


def test_unknown_words_leave_the_dense_leg() -> None:
    assert [hit.passage.document for hit in hits(2, "zebra")] == ["iron", "tale"]


@pytest.mark.parametrize("lexical", ["dense", "hybrid"])
def test_the_lexical_leg_must_be_a_lexical_method(lexical: str) -> None:
    with pytest.raises(UsageError, match="not a lexical method"):
        hits(lexical=lexical)
