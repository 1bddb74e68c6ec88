"""Actions that search. Every other module of this folder is one, named by its file name.

A module has `ACTION`, an `Action` with `is_native=True` of which one parameter reads `passages`, and
`async def run(searcher, *values) -> FoundRows`: a search may wait for an embedding. What reads passages is
given as a `SearchedDocument` where it is `CTX`, else as `Rows`; other values as native actions have
them. `run` raises `ValueError` with the reason for invalid values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pearl import plugins
from pearl.actions.values import FoundRows, Value, argument, as_rows
from pearl.dsl.signatures import Action

if TYPE_CHECKING:
    from pearl.actions.searching import SearchedDocument
    from pearl.retrieval.search import Searcher

__all__ = ["CONTRACT", "BySearch", "FoundRows", "known", "search"]


class BySearch(Protocol):
    """What a module of this folder looks like to its users."""

    ACTION: Action

    async def run(self, searcher: Searcher, *values: Any) -> FoundRows:
        """Return the value of the action, and the record of the search.

        Raises:
            ValueError: These values are nothing that it works with.
            ModelError: An endpoint that the ranking needs is down.
        """
        ...


CONTRACT = BySearch


def known() -> dict[str, Action]:
    """Every action of this folder by name."""
    actions = [plugins.load(__name__, name).ACTION for name in plugins.names(__name__)]
    return {action.name: action for action in actions}


async def search(
    action: Action, searcher: Searcher, values: Sequence[Value | SearchedDocument]
) -> FoundRows:
    """Run an action that searches.

    Raises:
        ValueError: A value is not of the type that the action takes, and cannot be converted.
        ModelError: An endpoint that the ranking needs is down.
    """
    from pearl.actions.searching import (
        SearchedDocument,  # late: plans are checked without searching
    )

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
