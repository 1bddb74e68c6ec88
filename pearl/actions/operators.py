"""The actions on rows that every library has, unless it defines one of the name itself."""

from __future__ import annotations

from functools import cache

from pearl.actions import by_row, by_search, lookup, native, queries
from pearl.dsl.signatures import ActionLibrary


@cache
def operators() -> ActionLibrary:
    """All of them: computed in Python, by a search, and by a model: row by row, of a question, of a table."""
    every = [
        native.general(), by_search.known(), by_row.known(), queries.known(), lookup.known()
    ]  # fmt: skip
    return ActionLibrary("operators", [action for known in every for action in known.values()])


@cache
def _of_search() -> frozenset[str]:
    """Names of those that are for corpora: what searches, what ranks for a query, what makes queries."""
    ranked = (
        name for name, action in by_row.known().items() if by_row.query_of(by_row.by_row(action))
    )
    return frozenset({*by_search.known(), *ranked, *queries.known()})


def with_operators(library: ActionLibrary) -> ActionLibrary:
    """The library with the operators that it does not define itself.

    Example:
        >>> from pearl.actions.library import load_library
        >>> library = with_operators(load_library("quality"))
        >>> library["CLASSIFY"].signature, library["COUNT"].is_native
        ('CLASSIFY(ROWS, LABELS, X)', True)
    """
    own = [action for name, action in operators().items() if name not in library]
    return library.extended(own)


def without_search(library: ActionLibrary, own: ActionLibrary) -> ActionLibrary:
    """A library as it is shown for one document, whose passages need not be searched.

    Example:
        >>> from pearl.actions.library import load_library
        >>> seed = load_library("seed")
        >>> shown = without_search(with_operators(seed), seed)
        >>> "RETRIEVE" in shown, "COUNT" in shown
        (False, True)
    """
    left_out = _of_search() - set(own)
    kept = [action for name, action in library.items() if name not in left_out]
    return ActionLibrary(library.name, kept)
