"""What holds for BM25, BM25+ and TF-IDF alike: what is found, in which order, and how many."""

from __future__ import annotations

import numpy as np
import pytest

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking, find_method
from pearl.retrieval.postings import Postings
from pearl.retrieval.queries import analyzer
from tests.retrieval.searching import Terms, ranked

METHODS = ("bm25", "bm25+", "tfidf")

ROWS = [["key", "lamp"], ["oar"], ["key"], ["tide", "oar"], ["key"]]

pytestmark = pytest.mark.parametrize("method", METHODS)


def searched(texts: list[str], query: str, method: str, k: int = 10) -> list[int]:
    terms = Query(dict.fromkeys(analyzer("english")(query), 1.0))
    index = Terms(Postings.build(texts))
    return find_method(method).rank(terms, index, SearchSettings(), k).passages.tolist()


def test_only_what_matches_is_found_and_ties_stand_in_order(method: str) -> None:
    assert ranked(ROWS, "key", method=method).passages.tolist() == [2, 4, 0]


@pytest.mark.parametrize("query", ["", "zebra", "?!"])
def test_a_query_without_known_terms_finds_nothing(method: str, query: str) -> None:
    found = ranked(ROWS, query, method=method)
    assert (found.passages.tolist(), found.scores.tolist()) == ([], [])


@pytest.mark.parametrize(
    ("k", "expected"), [(-1, []), (0, []), (1, [2]), (2, [2, 4]), (3, [2, 4, 0]), (99, [2, 4, 0])]
)
def test_k_is_clipped(method: str, k: int, expected: list[int]) -> None:
    assert ranked(ROWS, "key", k, method=method).passages.tolist() == expected


def test_the_best_k_are_the_first_k_of_all(method: str) -> None:
    rng = np.random.default_rng(5)
    rows = [[f"w{n}" for n in rng.integers(0, 6, rng.integers(1, 9))] for _ in range(200)]
    every = ranked(rows, "w1 w2", method=method)
    for k in (1, 7, 50, 150):
        some = ranked(rows, "w1 w2", k, method=method)
        assert some.passages.tolist() == every.passages.tolist()[:k]


def test_an_empty_corpus_and_blank_passages(method: str) -> None:
    assert searched([], "key", method) == []
    assert searched(["", " \n"], "key", method) == []
    assert searched(["", "the key"], "key", method) == [1]


def test_one_passage(method: str) -> None:
    assert searched(["the key"], "key lamp", method) == [0]


def test_words_that_are_repeated_count_once(method: str) -> None:
    texts = ["key and oar", "key, key", "oar"]
    assert searched(texts, "key oar key keys", method) == searched(texts, "key oar", method)


def test_stop_words_are_searched_for_if_there_is_nothing_else(method: str) -> None:
    texts = ["to be is to do", "a cat", "the key is to be here"]
    assert sorted(searched(texts, "to be or not to be", method)) == [0, 2]
    assert searched(texts, "the cat", method) == [1]


def test_a_mask_hides_passages_and_changes_no_score(method: str) -> None:
    mask = np.array([True, True, False, True, True])
    terms = {"key": 1.0, "oar": 1.0}
    every = scores(ranked(ROWS, Query(terms), method=method))
    del every[2]
    assert scores(ranked(ROWS, Query(terms, mask=mask), method=method)) == every


def test_a_heavier_term_counts_for_more(method: str) -> None:
    light = ranked(ROWS, Query({"lamp": 1.0, "tide": 0.1}), method=method)
    heavy = ranked(ROWS, Query({"lamp": 0.1, "tide": 1.0}), method=method)
    assert (light.passages[0], heavy.passages[0]) == (0, 3)


def test_short_passages_are_free(method: str) -> None:
    rows = [["key"] * 20, ["key"], ["key", *["oar"] * 30], ["key"] * 19, ["oar"], ["key", "oar"]]
    settings = SearchSettings(free_words=15)
    every = ranked(rows, "key", method=method).passages.tolist()
    for k, n_long in ((1, 1), (2, 2), (3, 3), (9, 3)):
        found = ranked(rows, "key", k, settings, method).passages.tolist()
        longs = [number for number in every if number in (0, 2, 3)][:n_long]
        assert found == [number for number in every if number in (1, 5, *longs)]
    assert ranked(rows, "key", 0, settings, method).passages.tolist() == []
    assert 4 not in ranked(rows, "key", 9, settings, method).passages


def scores(ranking: Ranking) -> dict[int, float]:
    return dict(zip(ranking.passages.tolist(), ranking.scores.tolist(), strict=True))
