"""What every ranker of `pearl.retrieval` has to be, tomorrow's included."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from pearl import plugins

Rank = Callable[[str, Sequence[str]], list[float]]

PASSAGES = (
    "Ada sold the boat because it leaked.",
    "",
    "The lamp stood in the window.",
    "Boats, boats, boats: Ada had three.",
    "   \n",
    "灯在窗口。",
)


@pytest.fixture(params=plugins.names("pearl.retrieval"))
def rank(request: pytest.FixtureRequest) -> Rank:
    found: Rank = plugins.load("pearl.retrieval", request.param).rank
    return found


@pytest.mark.parametrize(
    "query", ["Why did Ada sell the boat?", "zebra", "", "?!", "the", "灯", "\ud800", "x" * 10_000]
)
def test_one_finite_score_a_passage(rank: Rank, query: str) -> None:
    scores = rank(query, PASSAGES)
    assert len(scores) == len(PASSAGES)
    assert all(type(score) is float and math.isfinite(score) and score >= 0 for score in scores)


def test_what_matches_is_above_what_does_not(rank: Rank) -> None:
    scores = rank("Why did Ada sell the boat?", PASSAGES)
    assert scores[0] == max(scores) > 0
    assert scores[1] == scores[4] == 0


@pytest.mark.parametrize("query", ["zebra", "", "?!"])
def test_no_match_is_zero(rank: Rank, query: str) -> None:
    assert rank(query, PASSAGES) == [0.0] * len(PASSAGES)


def test_no_passages_give_no_scores(rank: Rank) -> None:
    assert rank("boat", []) == []
    assert rank("boat", ["", " "]) == [0.0, 0.0]


def test_the_place_of_a_passage_does_not_count(rank: Rank) -> None:
    scores = rank("Ada's boat", PASSAGES)
    assert rank("Ada's boat", PASSAGES[::-1]) == pytest.approx(scores[::-1])
    assert rank("Ada's boat", PASSAGES) == scores
