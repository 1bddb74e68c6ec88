"""The actions on rows that every library has, unless it defines one of the name itself."""

from __future__ import annotations

from functools import cache

from pearl.actions import by_row, native
from pearl.dsl.signatures import ActionLibrary

__all__ = ["operators", "with_operators"]


@cache
def operators() -> ActionLibrary:
    """All of them: those computed in Python and those that a model carries out row by row."""
    return ActionLibrary("operators", [*native.known().values(), *by_row.known().values()])


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
