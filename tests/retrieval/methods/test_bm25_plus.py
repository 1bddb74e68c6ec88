"""BM25+ and TF-IDF beside bm25s, rank_bm25 and scikit-learn."""

from __future__ import annotations

import random

import bm25s
import pytest
import rank_bm25
from sklearn.feature_extraction.text import TfidfVectorizer

from pearl.retrieval import SearchSettings
from tests.retrieval.searching import ranked

SHORT = ["key", "lamp"]
LONG = ["key", "oar", *["tide"] * 120]
ROWS = [SHORT, LONG, ["lamp"], ["boat"], ["boat", "lamp"]]


def test_delta_lifts_a_long_passage_that_has_more_of_the_terms() -> None:
    """Its length outweighs all its terms, until each of them counts at least delta."""
    long = ["key", "lamp", "oar", "boat", "sail", *["tide"] * 300]
    rows = [["key", "lamp"], long, *[["rain"]] * 8]
    order = [
        ranked(rows, "key lamp oar boat sail", settings=SearchSettings(delta=delta)).passages
        for delta in (0.0, 1.0)
    ]
    assert [found.tolist() for found in order] == [[0, 1], [1, 0]]


def test_delta_is_added_once_for_each_matched_term() -> None:
    without = ranked(ROWS, "key oar", settings=SearchSettings(delta=0.0))
    with_it = ranked(ROWS, "key oar", settings=SearchSettings(delta=2.0))
    ones = dict(zip(without.passages, without.scores, strict=True))
    twos = dict(zip(with_it.passages, with_it.scores, strict=True))
    only_key = ranked(ROWS, "key", settings=SearchSettings(delta=2.0)).scores
    assert ones.keys() == twos.keys() == {0, 1}
    assert twos[0] in only_key
    assert twos[1] - ones[1] > 1.9 * (twos[0] - ones[0])


def test_without_delta_it_is_bm25() -> None:
    one = ranked(ROWS, "key lamp", settings=SearchSettings(delta=0.0))
    two = ranked(ROWS, "key lamp", method="bm25")
    assert one.passages.tolist() == two.passages.tolist()
    assert one.scores.tolist() == two.scores.tolist()


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


@pytest.mark.parametrize("is_sublinear", [False, True])
@pytest.mark.parametrize("query", ["w1", "w3 w9 w20", "w0 w1 w2 zebra", "zebra"])
def test_scores_are_those_of_scikit_learn(query: str, is_sublinear: bool) -> None:
    rng = random.Random(7)
    rows = [
        [f"w{min(int(rng.expovariate(0.1)), 40)}" for _ in range(rng.randint(1, 50))]
        for _ in range(200)
    ]
    vectorizer = TfidfVectorizer(analyzer=str.split, sublinear_tf=is_sublinear)
    matrix = vectorizer.fit_transform([" ".join(row) for row in rows])
    expected = (matrix @ vectorizer.transform([query]).T).toarray().ravel()
    found = ranked(rows, query, settings=SearchSettings(sublinear=is_sublinear), method="tfidf")
    assert found.scores.tolist() == pytest.approx(expected[found.passages].tolist(), rel=1e-12)
    assert sorted(found.passages.tolist()) == [i for i, s in enumerate(expected) if s > 0]


def test_a_passage_that_is_the_query_has_the_score_one() -> None:
    found = ranked([["key", "oar"], ["key"]], "key oar", method="tfidf")
    assert found.passages.tolist() == [0, 1]
    assert found.scores[0] == pytest.approx(1.0, abs=1e-15)
