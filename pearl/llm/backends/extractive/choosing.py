"""`ChooseTask` → the letter of the option whose words are found; "none" where no words tell.

By an answer in words: the option that shares most with it. By a document: the option that, with the
question, some sentence covers best. What several options have in common counts for less, what all
of them have for nothing.
"""

from __future__ import annotations

import math
from collections import Counter

from pearl.data.samples import letter
from pearl.documents.passages import terms
from pearl.llm import ChooseTask
from pearl.llm.backends.extractive.ranking import Query, SentenceIndex
from pearl.llm.backends.extractive.reading import Indexer

__all__ = ["choose_option"]

_FROM_QUESTION = 0.3
"""What a term of the question counts beside the terms of an option, which count 1 at most."""
_N_SENTENCES = 3
"""Sentences that speak for an option."""
_NONE = "none"


def choose_option(task: ChooseTask, index_of: Indexer) -> str:
    """The reply: a letter, after the passage that decides it where reasons are asked for."""
    weights = _weights(task.options)
    if task.answer is not None:
        said = set(terms(task.answer, drop_stop_words=True))
        scores = [_share(weight, said) for weight in weights]
        best = _best(scores)
        return _NONE if best is None else letter(best)
    index = index_of(task.document or "")
    asked = dict.fromkeys(terms(task.question, drop_stop_words=True), _FROM_QUESTION)
    found = [_supported(index, Query(asked | weight)) for weight in weights]
    best = _best([score for score, _ in found])
    if best is None:
        return _NONE
    if not task.is_reasoned:
        return letter(best)
    return f"> {index.texts[found[best][1]]}\n\nAnswer: {letter(best)}"


def _weights(options: tuple[str, ...]) -> list[dict[str, float]]:
    """What each term of each option counts: 1 if no other option has it, 0 if all have."""
    rows = [set(terms(option, drop_stop_words=True)) for option in options]
    n_with = Counter(term for row in rows for term in row)
    top = math.log(len(options))
    return [
        {term: w for term in sorted(row) if (w := math.log(len(options) / n_with[term]) / top)}
        for row in rows
    ]


def _share(weights: dict[str, float], said: set[str]) -> float:
    """How much of an option was said; long options do not win by their length alone."""
    if not weights:
        return 0.0
    return sum(w for t, w in weights.items() if t in said) / math.sqrt(sum(weights.values()))


def _supported(index: SentenceIndex, query: Query) -> tuple[float, int]:
    """How well the best sentences cover a query, and the best of them."""
    hits = index.rank(query)[:_N_SENTENCES]
    if not hits:
        return 0.0, 0
    return sum(hit.coverage for hit in hits) / _N_SENTENCES, hits[0].number


def _best(scores: list[float]) -> int | None:
    """The one highest score above zero."""
    top = max(scores)
    return scores.index(top) if top > 0 and scores.count(top) == 1 else None
