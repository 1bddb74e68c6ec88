"""A table's own words: for a question, the values of each column that it probably means.

People say Tel Aviv where a table says Tel Aviv-Yafo, and oculist where it says ophthalmology. The
different values of a column are its terms. A term is found by its words and by the letters of its
words, and by synonyms of the question's words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pearl.documents.passages import terms
from pearl.retrieval.postings import Postings
from pearl.retrieval.queries import read_groups
from pearl.tables.columns import TypedColumn
from pearl.tables.folding import fold, word_form
from pearl.tables.query_table import QueryTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SYNONYMS = Path(__file__).with_name("synonyms.txt")
"""Groups of words for professions and services."""

_MAX_LENGTH = 60
"""Characters of a column's values in the mean; longer ones are prose, and no terms."""
_MIN_SHARE = 0.25
"""Share of a term, by weight, that the question has to have."""
_WORD_WEIGHT = 3.0
"""Of a word beside three letters."""

Expand = Callable[[str], Iterable[str]]
"""A question → more phrases that it might have used."""


@dataclass(frozen=True, slots=True)
class Term:
    """A value of a column that a question may mean."""

    column: str
    text: str
    share: float


class Synonyms:
    """Phrases that may stand for one another, by a file of `pearl.retrieval.queries`.

    Example:
        >>> sorted(Synonyms()("Is there an oculist in Haifa?"))[:2]
        ['eye clinic', 'eye doctor']
    """

    def __init__(self, path: Path = SYNONYMS) -> None:
        self._groups = [group for _, group in read_groups(path)]
        self._by_first: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for number, group in enumerate(self._groups):
            for phrase in group:
                stems = tuple(terms(phrase))
                if stems:
                    self._by_first.setdefault(stems[0], []).append((stems, number))

    def __call__(self, question: str) -> list[str]:
        """The other phrases of every group of which the question has one."""
        said = terms(question)
        found: dict[str, None] = {}
        for at, stem in enumerate(said):
            for stems, number in self._by_first.get(stem, ()):
                if tuple(said[at : at + len(stems)]) == stems:
                    others = [one for one in self._groups[number] if tuple(terms(one)) != stems]
                    found.update(dict.fromkeys(others))
        return list(found)

    def same(self, phrase: str) -> list[str]:
        """The other phrases of the groups that have exactly this one."""
        said = tuple(terms(phrase))
        found: dict[str, None] = {}
        for stems, number in self._by_first.get(said[0], ()) if said else ():
            if stems == said:
                others = [one for one in self._groups[number] if tuple(terms(one)) != said]
                found.update(dict.fromkeys(others))
        return list(found)


class Thesaurus:
    """The terms of a table.

    Example:
        >>> from pearl.documents.rows import Row, Rows
        >>> cells = [("Tel Aviv-Yafo", "Ophthalmology"), ("Haifa", "Cardiology")]
        >>> table = QueryTable(Rows(tuple(Row("", {"City": a, "Service": b}) for a, b in cells)))
        >>> found = Thesaurus(table).nearest("Where is an oculist in Tel Aviv?")
        >>> [(column, [term.text for term in terms]) for column, terms in found.items()]
        [('City', ['Tel Aviv-Yafo']), ('Service', ['Ophthalmology'])]
    """

    def __init__(self, table: QueryTable, expand: Expand | None = None) -> None:
        self._expand = Synonyms() if expand is None else expand
        self.synonyms = self._expand if isinstance(self._expand, Synonyms) else None
        self._columns = [column.name for column in table.columns]
        self._terms = [
            (column.name, term) for column in table.columns for term in column_terms(column)
        ]

    def __len__(self) -> int:
        return len(self._terms)

    def nearest(self, question: str, n: int = 3) -> dict[str, list[Term]]:
        """For each column that has some, its `n` nearest terms, best first."""
        import numpy as np

        if not self._terms:
            return {}
        overlap = np.zeros(len(self._terms))
        for phrase in (question, *self._expand(question)):
            # Of a synonym only the whole counts: its own words are not those of the question.
            scores = self._overlaps(_grams(phrase))
            if phrase is not question:
                scores = np.where(scores >= 0.6 * self._weights, scores, 0.0)
            overlap = np.maximum(overlap, scores)
        share = overlap / self._weights
        found: dict[str, list[Term]] = {}
        order = np.lexsort((-overlap, -np.round(share, 3)))
        for place in order[: int((share >= _MIN_SHARE).sum())].tolist():
            column, text = self._terms[place]
            listed = found.setdefault(column, [])
            if len(listed) < n:
                listed.append(Term(column, text, float(share[place])))
        return {column: found[column] for column in self._columns if column in found}

    def _overlaps(self, grams: Iterable[str]) -> NDArray[np.float64]:
        """For each term the weight of what a phrase has of it."""
        import numpy as np

        total = np.zeros(len(self._terms))
        for gram in grams:
            if found := self._with_gram.get(gram):
                places, weight = found
                total[places] += weight
        return total

    @cached_property
    def _with_gram(self) -> dict[str, tuple[NDArray[np.int32], float]]:
        """For each gram the terms that have it, and its weight: rare ones say more."""
        postings = Postings.of_terms([sorted(_grams(text)) for _, text in self._terms])
        found = {}
        for gram in map(bytes.decode, postings.vocabulary):
            places, _ = postings.postings(gram)
            rarity = math.log(1 + len(self._terms) / len(places))
            found[gram] = places, rarity * (_WORD_WEIGHT if gram[0] == "=" else 1.0)
        return found

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """The weight of all of each term."""
        import numpy as np

        total = np.full(len(self._terms), 1e-9)
        for places, weight in self._with_gram.values():
            total[places] += weight
        return total


def column_terms(column: TypedColumn) -> list[str]:
    """The terms of a column: its different values, or what these list with semicolons between.

    A column of numbers, dates, codes or prose has none.
    """
    if column.kind != "text" or not column.values:
        return []
    values = column.values
    if sum(map(len, values)) > _MAX_LENGTH * len(values):
        return []
    if 2 * sum(any(c.isalpha() for c in value) for value in values) < len(values):
        return []
    parts = [part.strip() for value in values for part in re.split(r"[;|\n]", value)]
    return list({fold(part): part for part in parts if part}.values())


def _grams(text: str) -> set[str]:
    """What a text is found by: its stemmed words, marked with `=`, and three letters in a row."""
    words = word_form(fold(text))
    grams = {f"={stem}" for stem in terms(words, drop_stop_words=True)}
    for word in words.split():
        padded = f" {word} "
        grams.update(padded[i : i + 3] for i in range(len(padded) - 2))
    return grams


def listed(found: dict[str, Sequence[Term]] | dict[str, list[Term]]) -> str:
    """Terms for a prompt, a line for each column."""
    return "\n".join(
        f"- {column}: {'; '.join(term.text for term in nearest)}"
        for column, nearest in found.items()
    )
