"""Texts given by their terms: BM25 by its formula, one score for each, the best in order."""

from __future__ import annotations

import pytest

from pearl.retrieval import SearchSettings
from pearl.retrieval.weighting import TermRanker
from tests.retrieval.searching import bm25

TEXTS = [["key", "lamp"], ["key", "key", "boat", "oar"], ["tide"], [], ["key", "lamp"]]


@pytest.mark.parametrize("b", [0.75, 0.5])
def test_the_scores_are_those_of_the_formula(b: float) -> None:
    expected = bm25(TEXTS, {"key": 1.0, "boat": 1.0}, SearchSettings(k1=1.2, b=b), 0.0)
    found = TermRanker(TEXTS, b=b).scores(["key", "boat", "key", "zebra"])
    assert found == pytest.approx([expected.get(i, 0.0) for i in range(len(TEXTS))], rel=1e-12)


def test_the_usual_b_is_lucenes() -> None:
    assert TermRanker(TEXTS).scores(["key"]) == TermRanker(TEXTS, b=0.75).scores(["key"])


def test_the_best_match_and_ties_stand_in_order() -> None:
    ranker = TermRanker(TEXTS)
    assert ranker.best(["lamp", "tide"], 9) == [2, 0, 4]
    assert ranker.best(["lamp", "tide"], 2) == [2, 0]
    assert ranker.best(["zebra"], 9) == ranker.best([], 9) == []


def test_nothing_to_rank() -> None:
    assert TermRanker([]).scores(["key"]) == []
    assert TermRanker([[], []]).scores(["key"]) == [0.0, 0.0]
    assert TermRanker([[], []]).best(["key"], 1) == []
