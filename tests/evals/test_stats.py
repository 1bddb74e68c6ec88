"""Intervals and paired tests: by hand, by a second implementation, by their properties."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from pearl.errors import UsageError
from pearl.evals import stats
from pearl.evals.stats import Interval, accuracy, bootstrap_p, difference, mcnemar

PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)
CLUSTERED = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.sampled_from("abcdefgh")), min_size=1, max_size=60
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "N_RESAMPLES", 400)


def made(n: int, share: float, seed: int) -> list[bool]:
    toss = random.Random(seed)
    return [toss.random() < share for _ in range(n)]


# ---- a second implementation


def resampled(values: Sequence[int], clusters: Sequence[str], n: int, seed: int) -> list[float]:
    """Means of resampled clusters, by the book and with the standard library alone."""
    members = defaultdict(list)
    for value, cluster in zip(values, clusters, strict=True):
        members[cluster].append(value)
    toss, groups = random.Random(seed), list(members.values())
    return [mean(chain.from_iterable(toss.choices(groups, k=len(groups)))) for _ in range(n)]


def exact_p(b: int, c: int) -> float:
    tail = sum(math.comb(b + c, i) for i in range(min(b, c) + 1)) / 2 ** (b + c)
    return min(1.0, 2 * tail)


def test_the_p_value_agrees_with_a_second_implementation() -> None:
    first, second = made(120, 0.6, 1), made(120, 0.55, 5)
    values = [int(x) - int(y) for x, y in zip(first, second, strict=True)]
    means = resampled(values, [str(i) for i in range(120)], 4_000, seed=3)
    theirs = 2 * min(mean(m <= 0 for m in means), mean(m >= 0 for m in means))
    assert 0.02 < theirs < 0.98
    assert bootstrap_p(first, second) == pytest.approx(theirs, abs=0.03)


@given(PAIRS)
def test_mcnemar_agrees_with_a_second_implementation(pairs: list[tuple[bool, bool]]) -> None:
    b, c = pairs.count((True, False)), pairs.count((False, True))
    ours = mcnemar([x for x, _ in pairs], [y for _, y in pairs])
    both, neither = pairs.count((True, True)), pairs.count((False, False))
    assert astuple(ours)[:4] == (both, b, c, neither)
    assert ours.p_value == pytest.approx(exact_p(b, c))


# ---- by hand


def test_answers_all_right_or_all_wrong_have_an_interval() -> None:
    """Clopper and Pearson: 0.025^(1/20) = 0.8316 for 20 of 20."""
    assert accuracy([True] * 20) == Interval(1.0, pytest.approx(0.025**0.05), 1.0)
    assert accuracy([False] * 20) == Interval(0.0, 0.0, pytest.approx(1 - 0.025**0.05))


def test_methods_that_always_agree_have_an_interval() -> None:
    """At most 1 - 0.025^(1/n) of the samples can differ, all in favour of either."""
    most = pytest.approx(1 - 0.025**0.1)
    same = difference([True, False] * 5, [True, False] * 5)
    assert (same.estimate, -same.low, same.high) == (0, most, most)
    always = difference([True] * 10, [False] * 10)
    assert always == Interval(1.0, pytest.approx(1 - 2 * (1 - 0.025**0.1)), 1.0)


def test_one_document_has_a_very_wide_interval() -> None:
    assert accuracy([True, False], clusters=["a", "a"]) == Interval(
        0.5, pytest.approx(0.0125), pytest.approx(0.9875)
    )
    assert bootstrap_p([True] * 9, [False] * 9, clusters=["a"] * 9) == 1
    equal = accuracy([True, False, False] * 2, clusters=["a"] * 3 + ["b"] * 3)
    assert equal.estimate == pytest.approx(1 / 3)
    assert equal.low < equal.estimate < equal.high


def test_without_variance_the_sign_test_is_used() -> None:
    assert bootstrap_p([True] * 6, [False] * 6) == pytest.approx(2 / 64)
    assert bootstrap_p([False] * 6, [True] * 6) == pytest.approx(2 / 64)
    assert bootstrap_p([True, False], [True, False]) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: accuracy([]), "no answers"),
        (lambda: difference([], []), "no answers"),
        (lambda: mcnemar([True], []), "1 answers cannot be paired with 0"),
        (lambda: difference([True], [True, False]), "1 answers cannot be paired with 2"),
        (lambda: accuracy([True], clusters=[]), "0 clusters do not match 1 answers"),
    ],
)
def test_invalid_answers_are_refused_with_help(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert caught.value.help


# ---- properties


@pytest.mark.usefixtures("few")
@given(CLUSTERED, st.booleans())
def test_the_estimate_lies_in_its_interval(
    rows: list[tuple[bool, bool, str]], clustered: bool
) -> None:
    first, second, names = ([row[i] for row in rows] for i in range(3))
    clusters = names if clustered else None
    share = accuracy(first, clusters=clusters)
    assert share.estimate == pytest.approx(mean(first))
    assert 0 <= share.low <= share.estimate <= share.high <= 1
    gap = difference(first, second, clusters=clusters)
    assert -1 <= gap.low <= gap.estimate <= gap.high <= 1


@pytest.mark.usefixtures("few")
@given(CLUSTERED)
def test_swapping_the_methods_swaps_the_signs(rows: list[tuple[bool, bool, str]]) -> None:
    first, second, clusters = ([row[i] for row in rows] for i in range(3))
    there = difference(first, second, clusters=clusters)
    back = difference(second, first, clusters=clusters)
    assert (-back.estimate, -back.high, -back.low) == pytest.approx(astuple(there))
    p = bootstrap_p(first, second, clusters=clusters)
    assert p == bootstrap_p(second, first, clusters=clusters)
    assert 0 < p <= 1
