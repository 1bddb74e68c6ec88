"""BM25: scores, terms and masks, beside the written formula and another program."""

from __future__ import annotations

import random

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import UsageError
from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query
from pearl.retrieval.methods import bm25 as method
from pearl.retrieval.methods.bm25 import TermRanker
from pearl.retrieval.postings import Postings
from pearl.retrieval.queries import analyzer
from tests.retrieval.searching import Terms, bm25, ranked, scores

VOCABULARY = ("key", "lamp", "oar", "tide", "boat")
ROWS = [["key", "lamp"], ["oar"], ["key"], ["tide", "oar"], ["key"]]

passages = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=12), max_size=14)
queries = st.dictionaries(st.sampled_from((*VOCABULARY, "zebra")), st.floats(0.1, 2), max_size=5)


@given(passages, queries)
def test_scores_are_those_of_the_formula(
    passages: list[list[str]], query: dict[str, float]
) -> None:
    found = ranked(passages, Query(query))
    found_scores = scores(found)
    assert found_scores == pytest.approx(bm25(passages, query), rel=1e-12, abs=1e-12)
    order = sorted(found_scores, key=lambda number: (-found_scores[number], number))
    assert found.passages.tolist() == order


@pytest.mark.parametrize("k", [1, 2, 5, 20, 70, 1_000])
def test_rare_terms_in_many_passages(k: int) -> None:
    rng = np.random.default_rng(3)
    rows = [["tide"] * int(n) for n in rng.integers(1, 9, 2_000)]
    for term in VOCABULARY[:3]:
        for number in rng.choice(2_000, 60, replace=False).tolist():
            rows[number] = [*rows[number], *[term] * int(rng.integers(1, 3))]
    mask = rng.random(2_000) < 0.7
    query = {"key": 1.0, "lamp": 0.5, "oar": 2.0}
    expected = bm25(rows, query)
    for hidden in (None, mask):
        left = [n for n in expected if hidden is None or hidden[n]]
        order = sorted(left, key=lambda number: (-expected[number], number))[:k]
        found = ranked(rows, Query(query, mask=hidden), k)
        assert found.scores.tolist() == pytest.approx([expected[n] for n in order], rel=1e-12)
        assert sorted(found.passages.tolist()) == sorted(order)


def searched(texts: list[str], query: str) -> list[int]:
    terms = Query(dict.fromkeys(analyzer("english")(query), 1.0))
    index = Terms(Postings.build(texts))
    return method.rank(terms, index, SearchSettings(), 10).passages.tolist()


def test_words_that_are_repeated_count_once() -> None:
    texts = ["key and oar", "key, key", "oar", "", " \n"]
    found = searched(texts, "key oar key keys")
    assert found == searched(texts, "key oar")
    assert sorted(found) == [0, 1, 2]


def test_stop_words_are_searched_for_if_the_query_has_nothing_else() -> None:
    texts = ["to be is to do", "a cat", "the key is to be here"]
    assert sorted(searched(texts, "to be or not to be")) == [0, 2]
    assert searched(texts, "the cat") == [1]


def test_a_mask_hides_passages_and_changes_no_score() -> None:
    mask = np.array([True, True, False, True, True])
    terms = {"key": 1.0, "oar": 1.0}
    every = scores(ranked(ROWS, Query(terms)))
    del every[2]
    assert scores(ranked(ROWS, Query(terms, mask=mask))) == every


def test_a_heavier_term_counts_for_more() -> None:
    light = ranked(ROWS, Query({"lamp": 1.0, "tide": 0.1}))
    heavy = ranked(ROWS, Query({"lamp": 0.1, "tide": 1.0}))
    assert (light.passages[0], heavy.passages[0]) == (0, 3)


@pytest.mark.parametrize("query", ["w1 w9 w30", "w2", "w50 w44 w3 w0"])
def test_scores_are_those_of_bm25s(query: str) -> None:
    rng = random.Random(14)
    rows = [
        [f"w{min(int(rng.expovariate(0.08)), 60)}" for _ in range(rng.randint(3, 60))]
        for _ in range(300)
    ]
    theirs = bm25s.BM25(
        method="atire", idf_method="lucene", k1=1.2, b=0.75, dtype="float64", int_dtype="int64"
    )
    theirs.index(rows, show_progress=False)
    expected = theirs.get_scores(query.split())
    found = ranked(rows, query)
    assert found.scores.tolist() == pytest.approx(expected[found.passages].tolist(), rel=1e-12)
    assert {int(n) for n in found.passages} == {i for i, s in enumerate(expected) if s > 0}


TEXTS = [["key", "lamp"], ["key", "key", "boat", "oar"], ["tide"], [], ["key", "lamp"]]


def test_texts_have_the_scores_of_the_formula() -> None:
    expected = bm25(TEXTS, {"key": 1.0, "boat": 1.0})
    found = TermRanker(TEXTS).scores(["key", "boat", "key", "zebra"])
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


def test_an_unknown_stem_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown stem 'german'\n.*english, porter, none"):
        SearchSettings(stem="german")  # type: ignore[arg-type]
