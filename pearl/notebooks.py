"""Objects that notebooks show as text, as the command line prints them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SHOWN_BY: list[Callable[[object], str]] = []
"""The function that gives their text; `pearl/__init__.py` adds it, so that this module imports nothing."""


class ShownInNotebooks:
    """An object that notebooks show as text."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        # IPython prefers the `__repr__` that a dataclass has of its own to what it inherits.
        super().__init_subclass__(**options)
        cls._repr_pretty_ = ShownInNotebooks._repr_pretty_  # type: ignore[method-assign]

    def _repr_pretty_(self, printer: Any, is_cycle: bool) -> None:
        printer.text(SHOWN_BY[0](self))
