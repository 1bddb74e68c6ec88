"""RETRIEVE(CTX, QUERY, K): the passages that match a query best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.actions.by_search import FoundRows
from pearl.actions.values import Value, as_text, items_of
from pearl.documents.numbers import whole_number
from pearl.documents.rows import Rows
from pearl.dsl.signatures import CTX, Action, Parameter, ValueType

if TYPE_CHECKING:
    from pearl.actions.searching import SearchedDocument
    from pearl.retrieval.search import Searcher

ACTION = Action(
    "RETRIEVE",
    (
        Parameter(CTX, ValueType.CONTEXT, "passages"),
        Parameter("QUERY", reads="value"),
        Parameter("K", reads="number"),
    ),
    "Return the K passages of CTX that match QUERY best, a text or a list of texts, the best first",
    returns=ValueType.LIST,
    is_native=True,
)


async def run(
    searcher: Searcher, given: SearchedDocument | Rows, query: Value, k: int | float
) -> FoundRows:
    """Rank the passages of a document, or rows, best first; those without a match are left out."""
    from pearl.actions.searching import best_passages, best_rows  # late: they search

    n_best = whole_number(k, "K", least=1)
    queries = [text for text in _queries(query) if text.strip()]
    if not queries:
        raise ValueError("there is no query to search for")
    if isinstance(given, Rows):
        return await best_rows(searcher, given, queries, n_best)
    return await best_passages(searcher, given, queries, n_best)


def _queries(query: Value) -> list[str]:
    """The entries of a list, also of a list in a model's text; else the text itself."""
    text = as_text(query)
    is_list = all(line.startswith("- ") for line in text.split("\n"))
    return items_of(query) if is_list or isinstance(query, list | Rows) else [text]
