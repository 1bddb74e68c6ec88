"""The parts of a table prompt that depend on the question: terms, rows and example queries.

A question says Tel Aviv or oculist, a table Tel Aviv-Yafo or ophthalmology. The different values of a
column are its terms; a term is found by its words, their trigrams, and synonyms of the question's words.
"""

from __future__ import annotations

import math
import random
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pearl.documents.passages import terms
from pearl.retrieval.methods.bm25 import TermRanker
from pearl.retrieval.postings import Postings
from pearl.retrieval.queries import analyzer, read_synonyms
from pearl.tables.columns import TypedColumn, fold, word_form
from pearl.tables.query_table import QueryTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SYNONYMS = Path(__file__).with_name("synonyms.txt")  # groups of words for professions and services

_MAX_LENGTH = 60  # characters of a column's values in the mean; longer ones are prose, and no terms
_MIN_SHARE = 0.25  # minimum share of a term's weight in the question
_WORD_WEIGHT = 3.0  # weight of a word relative to a trigram


def synonyms_of(question: str) -> list[str]:
    """The other phrases of every group of which the question has one."""
    stems, others = terms(question), read_synonyms(SYNONYMS)
    longest = max(map(len, others))
    found: dict[str, None] = {}
    for start in range(len(stems)):
        for end in range(start + 1, min(start + longest, len(stems)) + 1):
            found |= others.get(tuple(stems[start:end]), {})
    return list(found)


class Thesaurus:
    """The terms of a table."""

    def __init__(self, table: QueryTable) -> None:
        self._columns = [column.name for column in table.columns]
        self._terms = [
            (column.name, term) for column in table.columns for term in column_terms(column)
        ]

    def __len__(self) -> int:
        return len(self._terms)

    def nearest(self, question: str, n: int = 3) -> dict[str, list[str]]:
        """The `n` nearest terms of each column, best first; columns without one are left out."""
        import numpy as np

        if not self._terms:
            return {}
        overlap = np.zeros(len(self._terms))
        for phrase in (question, *synonyms_of(question)):
            # A synonym counts only as a whole: its single words are not in the question.
            scores = self._overlaps(_grams(phrase))
            if phrase is not question:
                scores = np.where(scores >= 0.6 * self._weights, scores, 0.0)
            overlap = np.maximum(overlap, scores)
        share = overlap / self._weights
        found: dict[str, list[str]] = {}
        order = np.lexsort((-overlap, -np.round(share, 3)))
        for place in order[: int((share >= _MIN_SHARE).sum())].tolist():
            column, text = self._terms[place]
            listed = found.setdefault(column, [])
            if len(listed) < n:
                listed.append(text)
        return {column: found[column] for column in self._columns if column in found}

    def _overlaps(self, grams: Iterable[str]) -> NDArray[np.float64]:
        """The weight of each term's overlap with a phrase."""
        import numpy as np

        total = np.zeros(len(self._terms))
        for gram in grams:
            if found := self._with_gram.get(gram):
                places, weight = found
                total[places] += weight
        return total

    @cached_property
    def _with_gram(self) -> dict[str, tuple[NDArray[np.int32], float]]:
        """Gram → the terms that contain it, and its weight; rare grams weigh more."""
        postings = Postings.of_terms([sorted(_grams(text)) for _, text in self._terms])
        found = {}
        for gram in map(bytes.decode, postings.names.every()):
            places, _ = postings.postings(gram)
            rarity = math.log(1 + len(self._terms) / len(places))
            found[gram] = places, rarity * (_WORD_WEIGHT if gram[0] == "=" else 1.0)
        return found

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """The total weight of each term."""
        import numpy as np

        total = np.full(len(self._terms), 1e-9)
        for places, weight in self._with_gram.values():
            total[places] += weight
        return total


def column_terms(column: TypedColumn) -> list[str]:
    """The terms of a column: its different values, or the entries of lists in them."""
    if column.kind != "text" or not column.values:
        return []
    values = column.values
    are_long = sum(map(len, values)) > _MAX_LENGTH * len(values)
    if are_long or 2 * sum(any(map(str.isalpha, value)) for value in values) < len(values):
        return []
    parts = [part.strip() for value in values for part in re.split(r"[;|\n]", value)]
    return list({fold(part): part for part in parts if part}.values())


def _grams(text: str) -> set[str]:
    """The search keys of a text: its stemmed words, marked with `=`, and its trigrams."""
    words = word_form(fold(text))
    grams = {f"={stem}" for stem in terms(words, drop_stop_words=True)}
    for word in words.split():
        padded = f" {word} "
        grams.update(padded[i : i + 3] for i in range(len(padded) - 2))
    return grams


class RowSearch:
    """Finds rows by the words of their cells."""

    def __init__(self, table: QueryTable) -> None:
        columns = [column.cells for column in table.columns]
        texts = ("\n".join(filter(None, cells)) for cells in zip(*columns, strict=True))
        self._terms = analyzer("english")
        self._ranker = TermRanker(list(map(self._terms, texts)))

    def like(self, question: str, k: int = 3) -> list[int]:
        """The rows that match a question best, or fewer."""
        return self._ranker.best(self._terms(question), k)

    def unlike(self, question: str, k: int = 3) -> list[int]:
        """Random rows without a word of the question; a question always gets the same rows."""
        scores = self._ranker.scores(self._terms(question))
        others = [row for row, score in enumerate(scores) if not score] or list(range(len(scores)))
        return sorted(random.Random(question).sample(others, min(k, len(others))))


SHIPPED = Path(__file__).with_name("examples.toml")


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its query."""

    question: str
    query: str
    explanation: str


@cache
def shipped_examples() -> tuple[Example, ...]:
    """All examples."""
    said = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    return tuple(Example(**one) for one in said["example"])


def examples_like(question: str, k: int = 2) -> list[Example]:
    """The `k` examples whose questions are most like a question; others where too few are."""
    examples = shipped_examples()
    best = TermRanker([terms(one.question) for one in examples]).best(terms(question), k)
    rest = [i for i in range(len(examples)) if i not in best]
    return [examples[i] for i in (*best, *rest)[:k]]
