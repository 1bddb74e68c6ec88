"""Adapt messages to the caller: options and progress for commands, arguments and the logger for Python code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

TEXTS, DEBUG, WARNING = 5, 10, 30  # Levels of `logging`, which is imported on use

AS_ARGUMENTS: list[Callable[[str], str]] = []
"""Replaces options in a text by arguments; `pearl/__init__.py` adds it to avoid an import here."""

_commands: list[Callable[[str], None]] = []
"""How each of the commands that run tells a warning."""


@contextmanager
def command_running(warned: Callable[[str], None]) -> Iterator[None]:
    """Mark that a command runs in this process, which tells warnings by a function."""
    _commands.append(warned)
    try:
        yield
    finally:
        _commands.remove(warned)


def for_caller(text: str) -> str:
    """Return a text; unless a command runs, its `--options` are replaced by arguments of Python."""
    return text if _commands or "--" not in text else AS_ARGUMENTS[0](text)


def log(level: int, message: str, *values: object) -> None:
    """Write to the logger `pearl`, unless a command runs: its output says the same."""
    if not _commands:
        import logging

        logger = logging.getLogger("pearl")
        if not logger.handlers:  # or Python prints warnings of a program that sets up no logging
            logger.addHandler(logging.NullHandler())
        logger.log(level, message, *values)


def warn(message: str) -> None:
    """Tell what no result says: by the command that runs, else by the logger `pearl`."""
    for tell in _commands[-1:]:  # of the innermost; another thread may end it meanwhile
        tell(message)
    log(WARNING, "%s", message)


SHOWN_BY: list[Callable[[object], str]] = []
"""The function that gives the text of an object; `pearl/__init__.py` adds it to avoid an import here."""


class ShownInNotebooks:
    """An object that notebooks show as text."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        # IPython prefers a dataclass's own `__repr__` to an inherited `_repr_pretty_`.
        super().__init_subclass__(**options)
        cls._repr_pretty_ = ShownInNotebooks._repr_pretty_  # type: ignore[method-assign]

    def _repr_pretty_(self, printer: Any, is_cycle: bool) -> None:
        printer.text(SHOWN_BY[0](self))


class ShownInPart:
    """A Struct whose `repr` leaves out fields, such as replies and traces, which may be as long as a document."""

    __slots__ = ()

    unshown: ClassVar[frozenset[str]] = frozenset()
    __struct_fields__: ClassVar[tuple[str, ...]]

    def __repr__(self) -> str:
        names = (name for name in self.__struct_fields__ if name not in self.unshown)
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({shown})"
