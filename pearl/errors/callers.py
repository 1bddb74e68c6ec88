"""Who is told: commands name options and show what goes on; callers in Python get arguments, the logger `pearl`, and texts in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TEXTS, DEBUG, WARNING = 5, 10, 30  # Levels of `logging`, which is imported on use

AS_ARGUMENTS: list[Callable[[str], str]] = []
"""Puts arguments in place of options in a text; `pearl/__init__.py` adds it, so that this module imports nothing."""

_n_commands = 0


@contextmanager
def command_running() -> Iterator[None]:
    """A command runs in this process."""
    global _n_commands
    _n_commands += 1
    try:
        yield
    finally:
        _n_commands -= 1


def for_caller(text: str) -> str:
    """A text with options, or with arguments if no command runs."""
    return text if _n_commands or "--" not in text else AS_ARGUMENTS[0](text)


def log(level: int, message: str, *values: object) -> None:
    """Write to the logger `pearl`, unless a command runs."""
    if not _n_commands:
        import logging

        logger = logging.getLogger("pearl")
        if not logger.handlers:  # or Python prints warnings of a program that sets up no logging
            logger.addHandler(logging.NullHandler())
        logger.log(level, message, *values)


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
