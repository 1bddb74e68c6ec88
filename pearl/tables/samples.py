"""Rows of a table that a model is shown: those most like the question, and some that are unlike it.

From the unlike ones it learns what else the columns hold; rows that all match would teach that
every row does.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from pearl.retrieval import SearchSettings
from pearl.retrieval.methods import Query, find_method
from pearl.retrieval.postings import Postings
from pearl.retrieval.queries import analyzer
from pearl.tables.query_table import QueryTable


@dataclass(frozen=True)
class Texts:
    """Texts that are ranked by their terms."""

    terms: Postings
    vectors: None = None

    def best(self, wanted_terms: Iterable[str], k: int) -> list[int]:
        """The numbers of the `k` texts that match terms best by BM25, or fewer."""
        wanted = Query(dict.fromkeys(wanted_terms, 1.0))
        ranking = find_method("bm25").rank(wanted, self, SearchSettings(), k)
        found: list[int] = ranking.passages.tolist()
        return found


class RowSearch:
    """Finds rows by what their cells read.

    Example:
        >>> from pearl.documents.rows import Row, Rows
        >>> cities = ["Haifa", "Eilat", "Acre", "Lod"]
        >>> search = RowSearch(QueryTable(Rows(tuple(Row("", {"City": city}) for city in cities))))
        >>> search.like("Who works in Eilat?", 2), len(search.unlike("Eilat?", 2))
        ([1], 2)
    """

    def __init__(self, table: QueryTable) -> None:
        self._n = len(table)
        columns = [column.cells for column in table.columns]
        self._texts = Texts(
            Postings.build("\n".join(filter(None, cells)) for cells in zip(*columns, strict=True))
        )

    def like(self, question: str, k: int = 3) -> list[int]:
        """The rows that match a question best, or fewer."""
        return self._texts.best(analyzer("english")(question), k)

    def unlike(self, question: str, k: int = 3) -> list[int]:
        """Rows without a word of the question, drawn at random, the same for the same question."""
        import numpy as np

        matches = np.zeros(self._n, np.bool_)
        for term in dict.fromkeys(analyzer("english")(question)):
            matches[self._texts.terms.postings(term)[0]] = True
        others = np.flatnonzero(~matches).tolist() or list(range(self._n))
        return sorted(random.Random(question).sample(others, min(k, len(others))))
