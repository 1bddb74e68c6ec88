"""BM25 by the formula of Lucene, and none of the traps of the library below it."""

from __future__ import annotations

import math

import pytest

from pearl.retrieval.bm25 import K1, B, Index, rank


def test_the_scores_are_those_of_the_formula() -> None:
    passages = [["key", "lamp"], ["key", "key", "boat", "oar"], ["tide"]]
    mean = sum(map(len, passages)) / len(passages)

    def formula(term: str, passage: list[str]) -> float:
        n = sum(term in other for other in passages)
        idf = math.log(1 + (len(passages) - n + 0.5) / (n + 0.5))
        tf = passage.count(term)
        return idf * tf / (tf + K1 * (1 - B + B * len(passage) / mean))

    found = Index(passages).scores(["key", "boat"])
    assert found == pytest.approx(
        [formula("key", passage) + formula("boat", passage) for passage in passages], rel=1e-5
    )


def test_terms_that_no_passage_has_change_nothing() -> None:
    passages = ["the key is here", "the lamp is out"]
    assert rank("key zebra", passages) == rank("key", passages)
    assert rank("zebra", passages) == [0.0, 0.0]


def test_a_repeated_term_counts_once() -> None:
    passages = ["the key is here", "the lamp is out"]
    assert rank("key key keys", passages) == rank("key", passages)


def test_a_rare_term_outweighs_a_common_one() -> None:
    passages = ["the boat left", "the boat came", "the boat sank", "the heron came"]
    scores = rank("the boat and the heron", passages)
    assert scores.index(max(scores)) == 3


def test_a_query_of_function_words_is_still_a_query() -> None:
    scores = rank("to be or not to be", ["to be is to do", "a cat"])
    assert scores[0] > 0 == scores[1]
