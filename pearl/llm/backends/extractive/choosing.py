"""`ChooseTask` → the letter of the best option, or "none".

By an answer in words: the option that shares most terms with it. By a document: the option that,
with the question, the sentences cover best. Terms of several options have less weight.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from pearl.data.samples import letter
from pearl.documents.passages import terms
from pearl.llm import ChooseTask
from pearl.llm.backends.extractive.ranking import SentenceIndex, SentenceQuery

_FROM_QUESTION = 0.3
"""Weight of a term of the question; those of an option have at most 1."""
_N_SENTENCES = 3
"""Number of best sentences whose coverage counts."""
_NONE = "none"


def choose_option(task: ChooseTask, index_of: Callable[[str], SentenceIndex]) -> str:
    """The reply: a letter, after the decisive passage if reasons are requested."""
    weights = _weights(task.options)
    if task.answer is not None:
        said = set(terms(task.answer, drop_stop_words=True))
        scores = [_share(weight, said) for weight in weights]
        best = _best(scores)
        return _NONE if best is None else letter(best)
    index = index_of(task.document or "")
    asked = dict.fromkeys(terms(task.question, drop_stop_words=True), _FROM_QUESTION)
    found = [_supported(index, SentenceQuery(asked | weight)) for weight in weights]
    best = _best([score for score, _ in found])
    if best is None:
        return _NONE
    if not task.is_reasoned:
        return letter(best)
    return f"> {index.texts[found[best][1]]}\n\nAnswer: {letter(best)}"


def _weights(options: tuple[str, ...]) -> list[dict[str, float]]:
    """Term → weight of each option: 1 if no other option has the term, 0 if all have."""
    rows = [set(terms(option, drop_stop_words=True)) for option in options]
    n_with = Counter(term for row in rows for term in row)
    top = math.log(len(options))
    return [
        {term: w for term in sorted(row) if (w := math.log(len(options) / n_with[term]) / top)}
        for row in rows
    ]


def _share(weights: dict[str, float], said: set[str]) -> float:
    """Weight of an option's terms in an answer, normalised by the option's length."""
    matched = sum(w for t, w in weights.items() if t in said)
    return matched / math.sqrt(sum(weights.values()) or 1.0)


def _supported(index: SentenceIndex, query: SentenceQuery) -> tuple[float, int]:
    """Mean coverage of a query by the best sentences, and the number of the first."""
    hits = index.rank(query)[:_N_SENTENCES]
    return sum(hit.coverage for hit in hits) / _N_SENTENCES, hits[0].number if hits else 0


def _best(scores: list[float]) -> int | None:
    """The index of the highest score, if it is unique and above 0."""
    top = max(scores)
    return scores.index(top) if top > 0 and scores.count(top) == 1 else None
