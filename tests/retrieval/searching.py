"""Plain-Python oracles of the formulas, over lists of terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, Ranking
from pearl.retrieval.methods import bm25 as method
from pearl.retrieval.postings import Postings

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
