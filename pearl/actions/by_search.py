"""Actions that search.

A plug-in has `ACTION`, an `Action` with `is_native=True` and a parameter that reads `passages`, and
`async def run(searcher, *values) -> FoundRows`: a search may wait for an embedding. A parameter that reads
passages gets a `SearchedDocument` for `CTX`, else `Rows`; other values are those of native actions. `run` raises `ValueError` with the reason for invalid values.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

from pearl import plugins
from pearl.actions.values import FoundRows, Value, argument, as_rows, as_text, items_of
from pearl.documents.numbers import whole_number
from pearl.documents.rows import Rows
from pearl.dsl.signatures import CTX, Action, Parameter, ValueType

if TYPE_CHECKING:
    from pearl.actions.searching import SearchedDocument
    from pearl.retrieval.search import Searcher


class BySearch(Protocol):
    """The interface of an action that searches."""

    ACTION: Action

    async def run(self, searcher: Searcher, *values: Any) -> FoundRows:
        """Return the value of the action and the record of its search; `ValueError` for invalid values, `ModelError` without an endpoint."""
        ...


CONTRACT = BySearch


def known() -> dict[str, Action]:
    """The actions that search, by name."""
    actions = [plugins.load(__name__, name).ACTION for name in plugins.names(__name__)]
    return {action.name: action for action in actions}


async def search(
    action: Action, searcher: Searcher, values: Sequence[Value | SearchedDocument]
) -> FoundRows:
    """Run an action that searches."""
    # imported on use: checking a plan does not need it
    from pearl.actions.searching import SearchedDocument

    module: BySearch = plugins.load(__name__, action.name.lower())
    given: list[Any] = []
    for i, value in enumerate(values):
        parameter = action.parameter(i)
        if isinstance(value, SearchedDocument):
            given.append(value)
        elif parameter.reads == "passages":
            given.append(as_rows(value))
        else:
            given.append(argument(value, parameter))
    return await module.run(searcher, *given)


async def retrieve(
    searcher: Searcher, given: SearchedDocument | Rows, query: Value, k: int | float
) -> FoundRows:
    """Rank the passages of a document, or rows, best first; those without a match are left out."""
    # imported on use, for searches only
    from pearl.actions.searching import best_passages, best_rows

    n_best = whole_number(k, "K", least=1)
    text = as_text(query)
    # A model may have written a list as a text.
    is_list = isinstance(query, list | Rows) or all(
        line.startswith("- ") for line in text.split("\n")
    )
    queries = [each for each in (items_of(query) if is_list else [text]) if each.strip()]
    if not queries:
        raise ValueError("there is no query to search for")
    if isinstance(given, Rows):
        return await best_rows(searcher, given, queries, n_best)
    return await best_passages(searcher, given, queries, n_best)


PLUGINS: dict[str, Any] = {
    "retrieve": SimpleNamespace(
        ACTION=Action(
            "RETRIEVE",
            (
                Parameter(CTX, ValueType.CONTEXT, "passages"),
                Parameter("QUERY", reads="value"),
                Parameter("K", reads="number"),
            ),
            "Return the K passages of CTX that match QUERY best, a text or a list of texts, the best first",
            returns=ValueType.LIST,
            is_native=True,
        ),
        run=retrieve,
    )
}
