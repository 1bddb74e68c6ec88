"""Objects that notebooks show as HTML."""

from __future__ import annotations

from collections.abc import Callable

DRAWN_BY: list[Callable[[object], str]] = []
"""The function that renders them; `pearl/__init__.py` adds it, so that this module imports nothing."""


class ShownInNotebooks:
    """An object that notebooks show as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return DRAWN_BY[0](self)
