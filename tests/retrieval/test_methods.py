"""Ranking methods beside written formulas: BM25, dense, hybrid, fusion; terms and years of queries."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pearl.documents.dates import years_in
from pearl.documents.passages import Stem, analyzer
from pearl.errors import UsageError
from pearl.retrieval import Hit, SearchSettings, TextKind
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.methods import Query, Ranking, dense, rank_fusion
from pearl.retrieval.methods import bm25 as method
from pearl.retrieval.methods.bm25 import TermRanker
from pearl.retrieval.postings import Postings
from pearl.retrieval.search import Searcher

Passages = Sequence[Sequence[str]]


@dataclass
class Terms:
    """An index that has terms only."""

    terms: Postings
    vectors: None = None


def ranked(passages: Passages | Postings, query: str | Query, k: int = 1_000) -> Ranking:
    index = Terms(Postings.of_terms(passages) if isinstance(passages, Sequence) else passages)
    wanted = query if isinstance(query, Query) else Query(dict.fromkeys(query.split(), 1.0))
    return method.rank(wanted, index, SearchSettings(), k)


def bm25(passages: Passages, query: dict[str, float]) -> dict[int, float]:
    """Number of each passage that matches → its score, by the written formula."""
    total = sum(map(len, passages))
    mean = total / len(passages) if total else 1.0
    found: dict[int, float] = {}
    for number, passage in enumerate(passages):
        for term, weight in query.items():
            if tf := list(passage).count(term):
                n, n_with = len(passages), sum(term in other for other in passages)
                idf = math.log((n - n_with + 0.5) / (n_with + 0.5) + 1)
                gain = tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(passage) / mean))
                found[number] = found.get(number, 0.0) + weight * idf * gain
    return found


def scores(ranking: Ranking) -> dict[int, float]:
    """Passage → score."""
    return dict(zip(ranking.passages.tolist(), ranking.scores.tolist(), strict=True))


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


@pytest.mark.parametrize("k", [1, 20, 1_000])
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


@dataclass
class OfVectors:
    """An index as far as this method reads it."""

    vectors: Any
    terms: Any = None


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    made: NDArray[np.float32] = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return made


def ranked_dense(vectors: Any, vector: NDArray[np.float32], k: int, mask: Any = None) -> Ranking:
    return dense.rank(Query({}, vector, mask), OfVectors(vectors), SearchSettings("dense"), k)


def written_out(vectors: NDArray[np.float32], vector: NDArray[np.float32], mask: Any) -> list[int]:
    scores = [sum(float(a) * float(b) for a, b in zip(row, vector, strict=True)) for row in vectors]
    wanted = [n for n in range(len(vectors)) if vectors[n].any() and (mask is None or mask[n])]
    return sorted(wanted, key=lambda n: (-round(scores[n], 12), n))


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(0, 70),
    st.sampled_from([None, 0.1, 0.9]),
)
def test_it_is_the_order_of_exact_cosines(seed: int, n: int, k: int, share: float | None) -> None:
    rng = np.random.default_rng(seed)
    vectors = unit(rng.integers(-2, 3, (n, 5)).astype(float))  # with ties, and some that are 0
    vector = unit(rng.standard_normal(5))
    mask = None if share is None else rng.random(n) < share
    found = ranked_dense(vectors, vector, k, mask)
    assert found.passages.tolist() == written_out(vectors, vector, mask)[:k]
    exact = vectors[found.passages].astype(float) @ vector.astype(float)
    np.testing.assert_allclose(found.scores, exact, atol=1e-12)


def test_a_blank_passage_is_never_found() -> None:
    vectors = np.array([[0, 0], [-1, 0], [0, 0], [0.6, 0.8]], dtype=np.float32)
    vector = np.array([1, 0], dtype=np.float32)
    assert ranked_dense(vectors, vector, 2).passages.tolist() == [3, 1]
    assert ranked_dense(vectors, vector, 9).passages.tolist() == [3, 1]
    assert (
        ranked_dense(vectors, vector, 9, np.array([True, False, True, False])).passages.tolist()
        == []
    )


@pytest.mark.parametrize(
    ("vectors", "vector", "said"),
    [
        (np.eye(3, dtype=np.float32), np.ones(4, np.float32), "has 4 dimensions, those of the index 3"),
        (None, np.ones(4, np.float32), "the index has none"),
        (np.eye(3, dtype=np.float32), None, "the index has none"),
    ],
)  # fmt: skip
def test_missing_or_mismatched_vectors_are_an_error(vectors: Any, vector: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ranked_dense(vectors, vector, 3)


HYBRID_TEXTS = {
    "iron": "Iron is mined in the north.",
    "salt": "Salt is cheap in the south.",
    "lead": "Lead, a metal, is mined with iron.",
    "tale": "The old tale of the smith.",
}
MEANINGS = {"iron": (1.0, 0.0), "salt": (0.0, 1.0), "lead": (0.8, 0.6), "tale": (0.96, 0.28)}


class Meanings:
    """An embedder that knows what the texts are about; a query is about iron."""

    name = "meanings"

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        if kind == "query":
            return np.array([(1.0, 0.0)] * len(texts), np.float32)
        known = {text: MEANINGS[name] for name, text in HYBRID_TEXTS.items()}
        return np.array([known[text] for text in texts], np.float32)

    async def aclose(self) -> None:
        pass


def hits(k: int = 10, query: str = "iron mined") -> tuple[Hit, ...]:
    index = Index.build(
        [CorpusDocument(*pair) for pair in HYBRID_TEXTS.items()], Cutting("document")
    )
    searcher = Searcher(SearchSettings("hybrid"), Meanings())
    return asyncio.run(searcher.search(index, query, k)).hits


def test_ranks_are_merged_by_reciprocal_ranks() -> None:
    found = {hit.passage.document: hit.score for hit in hits()}
    assert found["iron"] == pytest.approx(2 / 61)
    assert found["lead"] == pytest.approx(1 / 62 + 1 / 63)
    assert found["tale"] == pytest.approx(1 / 62)


def test_unknown_words_leave_the_dense_leg() -> None:
    assert [hit.passage.document for hit in hits(2, "zebra")] == ["iron", "tale"]


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


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("english", ["child", "run", "relat"]),
        ("porter", ["children", "ran", "relat"]),
        ("none", ["children", "ran", "relational"]),
    ],
)
def test_stemming(stem: Stem, expected: list[str]) -> None:
    assert analyzer(stem)("Why the children's Ran, relational?") == expected


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("in 2008?", (2008,)),
        ("2008, 2009 and 2010.", (2008, 2009, 2010)),
        ("2008 and 2010", (2008, 2010)),
        ("between 2008 and 2010", (2008, 2009, 2010)),
        ("from 2008 to 2010", (2008, 2009, 2010)),
        ("2008 through 2010", (2008, 2009, 2010)),
        ("2008–10", (2008, 2009, 2010)),
        ("the 2008/09 season", (2008, 2009)),
        ("FY2008-FY2009", (2008, 2009)),
        ("FY08, fy '09 and fiscal year 2010", (2008, 2009, 2010)),
        ("filed 2008-06-01", (2008,)),
        ("filed 2009-10-05", (2009,)),
        ("1850 to 1950", (1850, 1950)),
        ("2010 to 2008", (2008, 2010)),
        ("$2008, 2,008, 2008 %, 2008.5 or 20089", ()),
        ("version 3.2008, 10-K2008x", ()),
        ("", ()),
    ],
)
def test_years(text: str, years: tuple[int, ...]) -> None:
    assert years_in(text) == years
