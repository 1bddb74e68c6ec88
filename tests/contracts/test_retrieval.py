"""What every method of `pearl.retrieval.methods` has to be, tomorrow's included."""

from __future__ import annotations

import asyncio
import math

import pytest

from pearl.retrieval import Hit, SearchSettings
from pearl.retrieval.corpus import CorpusDocument
from pearl.retrieval.index import Index
from pearl.retrieval.methods import find_method, method_names
from pearl.retrieval.search import Searcher

PASSAGES = (
    "Ada sold the boat because it leaked.",
    "The lamp stood in the window.",
    "Boats, boats, boats: Ada had three.",
    "灯在窗口。",
    "Ada sold the boat because it leaked.",
)
LEXICAL = [name for name in method_names() if not find_method(name).NEEDS_VECTORS]


def found(method: str, query: str, k: int = 9, passages: tuple[str, ...] = PASSAGES) -> list[Hit]:
    index = Index.build(CorpusDocument(str(i), text) for i, text in enumerate(passages))
    return list(asyncio.run(Searcher(SearchSettings(method)).search(index, query, k)).hits)


@pytest.mark.parametrize("method", LEXICAL)
@pytest.mark.parametrize(
    "query", ["Why did Ada sell the boat?", "zebra", "", "?!", "the", "灯", "\ud800", "x" * 10_000]
)
def test_ranks_from_one_with_finite_scores_the_best_first(method: str, query: str) -> None:
    hits = found(method, query)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    scores = [hit.score for hit in hits]
    assert all(map(math.isfinite, scores))
    assert scores == sorted(scores, reverse=True)
    assert len({hit.passage.number for hit in hits}) == len(hits)


@pytest.mark.parametrize("method", LEXICAL)
def test_only_matches_are_found_and_equal_ones_stay_in_order(method: str) -> None:
    hits = found(method, "Why did Ada sell the boat?")
    assert [hit.passage.number for hit in hits][:2] in ([0, 4], [2, 0])
    assert {hit.passage.number for hit in hits} == {0, 2, 4}
    numbers = [hit.passage.number for hit in hits]
    assert numbers.index(0) < numbers.index(4)
    assert not found(method, "zebra")


@pytest.mark.parametrize("method", LEXICAL)
@pytest.mark.parametrize("k", [0, 1, 2, 3, 99])
def test_no_more_than_k_and_the_first_of_them(method: str, k: int) -> None:
    every = [hit.passage.number for hit in found(method, "boat")]
    assert [hit.passage.number for hit in found(method, "boat", k)] == every[:k]
