"""Ranking methods beside written formulas: BM25, dense, hybrid, fusion."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pearl.documents.dates import years_in
from pearl.documents.passages import Stem, analyzer
from pearl.errors import UsageError
from pearl.retrieval import SearchSettings, TextKind
from pearl.retrieval.corpus import CorpusDocument, Cutting
from pearl.retrieval.index import Index
from pearl.retrieval.methods import Query, Ranking, bm25, dense, rank_fusion
from pearl.retrieval.methods.bm25 import TermRanker
from pearl.retrieval.search import Searcher
from tests.retrieval.index.corpora import postings_of

VOCABULARY = ("key", "lamp", "oar", "tide", "boat")
PASSAGES = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=12), max_size=14)
QUERIES = st.dictionaries(st.sampled_from((*VOCABULARY, "zebra")), st.floats(0.1, 2), max_size=5)


def by_formula(passages: Sequence[Sequence[str]], query: Mapping[str, float]) -> dict[int, float]:
    """Number of each passage that matches → its score."""
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


def by_words(passages: Sequence[str | Sequence[str]], query: Query, k: int = 1_000) -> Ranking:
    index: Any = SimpleNamespace(terms=postings_of(passages))
    return bm25.rank(query, index, SearchSettings(), k)


def pairs(found: Ranking) -> list[tuple[int, float]]:
    return list(zip(found.passages.tolist(), found.scores.tolist(), strict=True))


def best(scores: Mapping[int, float], k: int) -> list[tuple[int, float]]:
    """The best first, ties by number."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


@given(PASSAGES, QUERIES, st.integers(0, 16), st.none() | st.integers(0, 2**14 - 1))
def test_scores_are_those_of_the_formula(
    passages: list[list[str]], query: dict[str, float], k: int, bits: int | None
) -> None:
    mask = None if bits is None else np.array([bits >> n & 1 for n in range(len(passages))], bool)
    found = by_words(passages, Query(query, mask=mask), k)
    expected = by_formula(passages, query)
    left = {n: score for n, score in expected.items() if mask is None or mask[n]}
    assert found.scores.tolist() == pytest.approx([s for _, s in best(left, k)], rel=1e-12)
    assert dict(pairs(found)) == pytest.approx({n: left[n] for n, _ in pairs(found)}, rel=1e-12)
    assert pairs(found) == best(dict(pairs(found)), k)


@pytest.mark.parametrize(
    ("texts", "query", "expected"),
    [
        # repeated words count once
        (["key and oar", "key, key", "oar", "", " \n"], "key oar key keys", {0, 1, 2}),
        # stop words are searched for if the query has nothing else
        (["to be is to do", "a cat", "the key is to be here"], "to be or not to be", {0, 2}),
        (["to be is to do", "a cat", "the key is to be here"], "the cat", {1}),
    ],
)
def test_words_of_queries(texts: list[str], query: str, expected: set[int]) -> None:
    found = by_words(texts, Query(dict.fromkeys(analyzer("english")(query), 1.0)))
    assert set(found.passages.tolist()) == expected


TEXTS = [["key", "lamp"], ["key", "key", "boat", "oar"], ["tide"], [], ["key", "lamp"]]


def test_texts_have_the_scores_of_the_formula_and_ties_stand_in_order() -> None:
    ranker = TermRanker(TEXTS)
    expected = by_formula(TEXTS, {"key": 1.0, "boat": 1.0})
    found = ranker.scores(["key", "boat", "key", "zebra"])
    assert found == pytest.approx([expected.get(i, 0.0) for i in range(len(TEXTS))], rel=1e-12)
    assert ranker.best(["lamp", "tide"], 9) == [2, 0, 4]
    assert ranker.best(["lamp", "tide"], 2) == [2, 0]
    assert ranker.best(["zebra"], 9) == ranker.best([], 9) == TermRanker([[]]).best(["key"], 1) == []  # fmt: skip
    assert TermRanker([]).scores(["key"]) == []


def test_an_unknown_stem_is_refused() -> None:
    with pytest.raises(UsageError, match=r"unknown stem 'german'\n.*english, porter, none"):
        SearchSettings(stem="german")  # type: ignore[arg-type]


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    made: NDArray[np.float32] = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return made


def by_vectors(vectors: Any, vector: Any, k: int, mask: Any = None) -> Ranking:
    index: Any = SimpleNamespace(vectors=vectors)
    return dense.rank(Query({}, vector, mask), index, SearchSettings("dense"), k)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 70),
    st.sampled_from([None, 0.1, 0.9]),
)
def test_it_is_the_order_of_exact_cosines(seed: int, n: int, k: int, share: float | None) -> None:
    rng = np.random.default_rng(seed)
    vectors = unit(rng.integers(-2, 3, (n, 5)).astype(float))  # with ties, and some that are 0
    vectors[:: rng.integers(2, 9)] = 0
    vector = unit(rng.standard_normal(5))
    mask = None if share is None else rng.random(n) < share
    found = by_vectors(vectors, vector, k, mask)
    exact = vectors.astype(float) @ vector.astype(float)
    wanted = [i for i in range(n) if vectors[i].any() and (mask is None or mask[i])]
    expected = sorted(wanted, key=lambda i: (-round(exact[i], 12), i))[:k]
    assert found.passages.tolist() == expected
    np.testing.assert_allclose(found.scores, exact[found.passages], atol=1e-12)


MEANINGS = {
    "Iron is mined in the north.": (1.0, 0.0),
    "Salt is cheap in the south.": (0.0, 1.0),
    "Lead, a metal, is mined with iron.": (0.8, 0.6),
    "The old tale of the smith.": (0.96, 0.28),
}


class Meanings:
    """An embedder that knows what the texts are about; a query is about iron."""

    name = "meanings"

    async def embed(self, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
        return np.array([MEANINGS.get(text, (1.0, 0.0)) for text in texts], np.float32)


def test_words_and_vectors_are_merged_by_reciprocal_ranks() -> None:
    documents = [CorpusDocument(text.split()[0], text) for text in MEANINGS]
    index = Index.build(documents, Cutting("document"))
    searcher = Searcher(SearchSettings("hybrid"), Meanings())  # type: ignore[arg-type]

    def found(query: str, k: int) -> dict[str, float]:
        hits = asyncio.run(searcher.search(index, query, k)).hits
        return {hit.passage.document: hit.score for hit in hits}

    assert found("iron mined", 3) == pytest.approx(
        {"Iron": 2 / 61, "Lead,": 1 / 62 + 1 / 63, "The": 1 / 62}
    )
    assert list(found("zebra", 2)) == ["Iron", "The"]  # words that no passage has


SCORES = st.dictionaries(st.integers(0, 30), st.integers(-20, 40).map(lambda n: n / 4), max_size=12)


@given(st.lists(SCORES, max_size=3), st.integers(0, 40))
def test_rank_fusion_is_the_sum_of_reciprocal_ranks(legs: list[dict[int, float]], k: int) -> None:
    rankings, total = list[Ranking](), dict[int, float]()
    for leg in legs:
        numbers = [number for number, _ in best(leg, 99)]
        rankings.append(Ranking(np.array(numbers, np.int32), np.zeros(len(leg))))
        for rank, number in enumerate(numbers, 1):
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
        ("2010 to 2008", (2008, 2010)),
        ("1850 to 1950", (1850, 1950)),
        ("$2008, 2,008, 2008 %, 2008.5 or 20089", ()),
        ("version 3.2008, 10-K2008x", ()),
    ],
)
def test_years_of_queries(text: str, years: tuple[int, ...]) -> None:
    assert years_in(text) == years
