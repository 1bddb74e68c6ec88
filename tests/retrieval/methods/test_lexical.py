"""BM25, BM25+ and TF-IDF: terms, masks and free passages; and other programs beside them."""

from __future__ import annotations

import random

import bm25s
import numpy as np
import pytest
import rank_bm25

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, find_method
from pearl.retrieval.postings import Postings
from pearl.retrieval.queries import analyzer
from tests.retrieval.searching import Terms, ranked, scores
from tests.skips import NO_LARGE

ROWS = [["key", "lamp"], ["oar"], ["key"], ["tide", "oar"], ["key"]]

each_method = pytest.mark.parametrize("method", ["bm25", "bm25+", "tfidf"])


def searched(texts: list[str], query: str, method: str) -> list[int]:
    terms = Query(dict.fromkeys(analyzer("english")(query), 1.0))
    index = Terms(Postings.build(texts))
    return find_method(method).rank(terms, index, SearchSettings(), 10).passages.tolist()


@each_method
def test_words_that_are_repeated_count_once(method: str) -> None:
    texts = ["key and oar", "key, key", "oar", "", " \n"]
    found = searched(texts, "key oar key keys", method)
    assert found == searched(texts, "key oar", method)
    assert sorted(found) == [0, 1, 2]


@each_method
def test_stop_words_are_searched_for_if_the_query_has_nothing_else(method: str) -> None:
    texts = ["to be is to do", "a cat", "the key is to be here"]
    assert sorted(searched(texts, "to be or not to be", method)) == [0, 2]
    assert searched(texts, "the cat", method) == [1]


@each_method
def test_a_mask_hides_passages_and_changes_no_score(method: str) -> None:
    mask = np.array([True, True, False, True, True])
    terms = {"key": 1.0, "oar": 1.0}
    every = scores(ranked(ROWS, Query(terms), method=method))
    del every[2]
    assert scores(ranked(ROWS, Query(terms, mask=mask), method=method)) == every


@each_method
def test_a_heavier_term_counts_for_more(method: str) -> None:
    light = ranked(ROWS, Query({"lamp": 1.0, "tide": 0.1}), method=method)
    heavy = ranked(ROWS, Query({"lamp": 0.1, "tide": 1.0}), method=method)
    assert (light.passages[0], heavy.passages[0]) == (0, 3)


@each_method
def test_short_passages_are_free(method: str) -> None:
    rows = [["key"] * 20, ["key"], ["key", *["oar"] * 30], ["key"] * 19, ["oar"], ["key", "oar"]]
    settings = SearchSettings(free_words=15)
    every = ranked(rows, "key", method=method).passages.tolist()
    for k, n_long in ((1, 1), (2, 2), (3, 3), (9, 3)):
        found = ranked(rows, "key", k, settings, method).passages.tolist()
        longs = [number for number in every if number in (0, 2, 3)][:n_long]
        assert found == [number for number in every if number in (1, 5, *longs)]
    assert ranked(rows, "key", 0, settings, method).passages.tolist() == []


def corpus() -> list[list[str]]:
    rng = random.Random(14)
    return [
        [f"w{min(int(rng.expovariate(0.08)), 60)}" for _ in range(rng.randint(3, 60))]
        for _ in range(300)
    ]


QUERIES = ("w1 w9 w30", "w2", "w50 w44 w3 w0")


@pytest.mark.parametrize("query", QUERIES)
def test_bm25_is_that_of_bm25s(query: str) -> None:
    rows = corpus()
    theirs = bm25s.BM25(
        method="atire", idf_method="lucene", k1=1.2, b=0.5, dtype="float64", int_dtype="int64"
    )
    theirs.index(rows, show_progress=False)
    expected = theirs.get_scores(query.split())
    found = ranked(rows, query, method="bm25", settings=SearchSettings(b=0.5))
    assert found.scores.tolist() == pytest.approx(expected[found.passages].tolist(), rel=1e-12)
    assert {int(n) for n in found.passages} == {i for i, s in enumerate(expected) if s > 0}


@pytest.mark.parametrize("query", QUERIES)
def test_bm25_plus_is_that_of_rank_bm25_less_what_it_adds_for_absent_terms(query: str) -> None:
    rows = corpus()
    theirs = rank_bm25.BM25Plus(rows, k1=1.2, b=0.5, delta=1)
    expected = theirs.get_scores(query.split())
    found = ranked(rows, query, settings=SearchSettings(b=0.5, idf="plus"))
    for number, score in zip(found.passages.tolist(), found.scores.tolist(), strict=True):
        absent = sum(theirs.idf[term] for term in query.split() if term not in rows[number])
        assert score == pytest.approx(expected[number] - absent, rel=1e-12)


@pytest.mark.parametrize("query", ["w1", "w3 w9 w20", "w0 w1 w2 zebra", "zebra"])
def test_scores_are_those_of_scikit_learn(query: str) -> None:
    rng = random.Random(7)
    rows = [
        [f"w{min(int(rng.expovariate(0.1)), 40)}" for _ in range(rng.randint(1, 50))]
        for _ in range(200)
    ]
    learned = pytest.importorskip("sklearn.feature_extraction.text", reason=NO_LARGE)
    vectorizer = learned.TfidfVectorizer(analyzer=str.split)
    matrix = vectorizer.fit_transform([" ".join(row) for row in rows])
    expected = (matrix @ vectorizer.transform([query]).T).toarray().ravel()
    found = ranked(rows, query, method="tfidf")
    assert found.scores.tolist() == pytest.approx(expected[found.passages].tolist(), rel=1e-12)
    assert sorted(found.passages.tolist()) == [i for i, s in enumerate(expected) if s > 0]


def test_a_passage_that_is_the_query_has_the_score_one() -> None:
    found = ranked([["key", "oar"], ["key"]], "key oar", method="tfidf")
    assert found.passages.tolist() == [0, 1]
    assert found.scores[0] == pytest.approx(1.0, abs=1e-15)
