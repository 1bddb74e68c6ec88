"""Scores of terms beside written formulas and other implementations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, find_method
from pearl.retrieval.postings import Postings
from pearl.retrieval.weighting import TermRanker, idf
from tests.retrieval.searching import Terms, bm25, ranked, scores

VOCABULARY = ("key", "lamp", "oar", "tide", "boat")

passages = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=12), max_size=14)
queries = st.dictionaries(st.sampled_from((*VOCABULARY, "zebra")), st.floats(0.1, 2), max_size=5)
settings = st.builds(
    SearchSettings,
    k1=st.floats(0, 5),
    b=st.floats(0, 1),
    delta=st.floats(0, 3),
    idf=st.sampled_from(("lucene", "plus", "robertson")),
)


@given(passages, queries, settings, st.sampled_from(("bm25", "bm25+")))
def test_scores_are_those_of_the_formula(
    passages: list[list[str]], query: dict[str, float], settings: SearchSettings, method: str
) -> None:
    found = ranked(passages, Query(query), settings=settings, method=method)
    expected = bm25(passages, query, settings, settings.delta if method == "bm25+" else 0.0)
    found_scores = scores(found)
    assert found_scores == pytest.approx(expected, rel=1e-12, abs=1e-12)
    order = sorted(found_scores, key=lambda number: (-found_scores[number], number))
    assert found.passages.tolist() == order


@given(passages, queries, settings, st.sampled_from(("bm25", "bm25+", "tfidf")))
def test_an_explanation_adds_up_to_the_score_bit_for_bit(
    passages: list[list[str]], query: dict[str, float], settings: SearchSettings, method: str
) -> None:
    index = Terms(Postings.of_terms(passages))
    found = find_method(method).rank(Query(query), index, settings, 99)
    total = scores(found)
    for number, passage in enumerate(passages):
        parts = find_method(method).explain(Query(query), index, settings, number)  # type: ignore[attr-defined]
        assert [part.term for part in parts] == [term for term in query if term in passage]
        if parts:
            assert sum(part.score for part in parts) == total[number]
        for part in parts:
            assert part.tf == passage.count(part.term)
            assert part.length == len(passage)
            assert part.n_with == sum(part.term in other for other in passages)
            assert part.score == part.weight * part.idf * part.gain


@pytest.mark.parametrize("kind", ["lucene", "plus", "robertson"])
def test_no_idf_is_below_zero_and_rarer_is_never_less(kind: str) -> None:
    found = [idf(kind, 10, n) for n in range(1, 11)]
    assert all(a >= b >= 0 for a, b in pairwise(found))


def test_norms_are_those_of_the_settings_asked_for() -> None:
    postings = Postings.of_terms([["key"], ["key", "oar", "oar"]])
    for b in (0.0, 1.0, 0.0, 0.5, 0.25, 0.75, 0.1, 0.2, 0.3, 0.4, 1.0):
        s = SearchSettings(b=b)
        expected = bm25([["key"], ["key", "oar", "oar"]], {"key": 1.0}, s, s.delta)
        found = ranked(postings, "key", settings=s)
        assert scores(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5, 20, 70, 1_000])
def test_rare_terms_in_many_passages(k: int) -> None:
    rng = np.random.default_rng(3)
    rows = [["tide"] * int(n) for n in rng.integers(1, 9, 2_000)]
    for term in VOCABULARY[:3]:
        for number in rng.choice(2_000, 60, replace=False).tolist():
            rows[number] = [*rows[number], *[term] * int(rng.integers(1, 3))]
    mask = rng.random(2_000) < 0.7
    query = {"key": 1.0, "lamp": 0.5, "oar": 2.0}
    expected = bm25(rows, query, SearchSettings(), 1.0)
    for hidden in (None, mask):
        left = [n for n in expected if hidden is None or hidden[n]]
        order = sorted(left, key=lambda number: (-expected[number], number))[:k]
        found = ranked(rows, Query(query, mask=hidden), k)
        assert found.scores.tolist() == pytest.approx([expected[n] for n in order], rel=1e-12)
        assert sorted(found.passages.tolist()) == sorted(order)


TEXTS = [["key", "lamp"], ["key", "key", "boat", "oar"], ["tide"], [], ["key", "lamp"]]


@pytest.mark.parametrize("b", [0.75, 0.5])
def test_the_scores_are_those_of_the_formula(b: float) -> None:
    expected = bm25(TEXTS, {"key": 1.0, "boat": 1.0}, SearchSettings(k1=1.2, b=b), 0.0)
    found = TermRanker(TEXTS, b=b).scores(["key", "boat", "key", "zebra"])
    assert found == pytest.approx([expected.get(i, 0.0) for i in range(len(TEXTS))], rel=1e-12)


def test_the_best_match_and_ties_stand_in_order() -> None:
    ranker = TermRanker(TEXTS)
    assert ranker.best(["lamp", "tide"], 9) == [2, 0, 4]
    assert ranker.best(["lamp", "tide"], 2) == [2, 0]
    assert ranker.best(["zebra"], 9) == ranker.best([], 9) == []


def test_nothing_to_rank() -> None:
    assert TermRanker([]).scores(["key"]) == []
    assert TermRanker([[], []]).scores(["key"]) == [0.0, 0.0]
    assert TermRanker([[], []]).best(["key"], 1) == []
