"""Fusion of rankings: the written formulas, on random rankings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pearl.retrieval.methods import Ranking, rank_fusion

Pairs = list[tuple[int, float]]


def ranking(scores: Mapping[int, float]) -> Ranking:
    """The best first, ties by number."""
    pairs = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    numbers = np.array([number for number, _ in pairs], np.int32)
    return Ranking(numbers, np.array([score for _, score in pairs], np.float64))


def pairs(found: Ranking) -> Pairs:
    return list(zip(found.passages.tolist(), found.scores.tolist(), strict=True))


def best(scores: Mapping[int, float], k: int) -> Pairs:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


SCORES = st.dictionaries(st.integers(0, 30), st.integers(-20, 40).map(lambda n: n / 4), max_size=12)
LEGS = st.lists(SCORES, max_size=3)
K = st.integers(0, 40)


@given(LEGS, K)
def test_rank_fusion_is_the_sum_of_reciprocal_ranks(
    legs: list[Mapping[int, float]], k: int
) -> None:
    rankings = list(map(ranking, legs))
    total: dict[int, float] = {}
    for leg in rankings:
        for rank, number in enumerate(leg.passages.tolist(), 1):
            total[number] = total.get(number, 0.0) + 1 / (60 + rank)
    assert pairs(rank_fusion(rankings, k)) == best(total, k)
