"""Detects text that ends in a loop, a common failure of small models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pearl.errors import ModelError

if TYPE_CHECKING:
    from pearl.llm import Usage

__all__ = ["REPETITION_HELP", "Watch", "loop_in", "repeats"]

MIN_TIMES = 4
"""Times that the same has to stand at the end, without a gap."""

MIN_CHARACTERS = 1_000
"""Characters of all these together: so a refrain, a ruled line or a table of dashes is none."""

MAX_PERIOD = 2_000
"""Characters of what is repeated, at most."""

NEEDLE = 24
"""Characters at the end that are looked for before; any number would do."""

MAX_QUOTED = 60
"""Characters of what is repeated that a message shows."""

CHECKED_EVERY = 256
"""Characters between two looks at a text that is being written."""

_WINDOW = MIN_TIMES * MAX_PERIOD
_NUMBERING = re.compile(r"^[ \t]*(?:\d+[.):]|[-*•])[ \t]+", re.MULTILINE)


def loop_in(text: str) -> str | None:
    r"""What a text repeats at its end, once; None where it does not.

    Numbers at the beginning of lines do not count: a list of the same is a loop, too.

    Example:
        >>> loop_in("It was late. " + "Then he slept. " * 100)
        'Then he slept. '
        >>> loop_in("\n".join(f"{n}. Then he slept." for n in range(100)))
        'Then he slept.\n'
        >>> loop_in("Row, row, row your boat\n" * 3)
    """
    tail = text[-2 * _WINDOW :]  # numbering may take as much room as what it numbers
    for form in (tail, _NUMBERING.sub("", tail)):
        period = _period(form)
        if period is not None:
            return _unit(form[-_WINDOW:], period)
    return None


def _period(text: str) -> int | None:
    """After how many characters the end of a text comes again, often enough for a loop."""
    n = len(text)
    if n < MIN_CHARACTERS:
        return None
    needle = text[n - NEEDLE :]
    at = n - NEEDLE
    while (at := text.rfind(needle, max(0, n - NEEDLE - MAX_PERIOD), at + NEEDLE - 1)) >= 0:
        period = n - NEEDLE - at
        start = n - max(MIN_CHARACTERS, MIN_TIMES * period)
        if start >= 0 and text[start : n - period] == text[start + period :]:
            return period
    return None


def _unit(text: str, period: int) -> str:
    """What is repeated, from the beginning of a line or word where it has one."""
    unit = text[-period:]
    for mark in ("\n", " "):
        at = unit.rfind(mark) + 1
        if at:
            return unit[at:] + unit[:at]
    return unit


REPETITION_HELP = (
    "small models do; use a larger one, or a shorter prompt: --nearest 2, --context retrieve"
)


def repeats(name: str, loop: str, usage: Usage | None, reply: str) -> ModelError:
    """The error for a reply that is a loop.

    Args:
        name: Who wrote it.
        loop: What it repeats.
        usage: Tokens that it took, where that is known.
        reply: What it said so far.
    """
    shown = " ".join(loop.split()) or "blanks"
    shown = shown if len(shown) <= MAX_QUOTED else f"{shown[: MAX_QUOTED - 1]}…"
    return ModelError(
        f"the reply of {name} came to repeat itself and was stopped: '{shown}'",
        kind="repetition",
        help=REPETITION_HELP,
        usage=usage,
        reply=reply,
    )


class Watch:
    """Detects a loop in a text while it is generated.

    Example:
        >>> watch = Watch()
        >>> next(n for n in range(1_000) if watch.add("and so on, "))
        95
    """

    def __init__(self) -> None:
        self._tail = ""
        self._n_new = 0

    def add(self, text: str) -> str | None:
        """Some more of it; what it repeats, where it has come to a loop."""
        self._tail = (self._tail + text)[-2 * _WINDOW :]
        self._n_new += len(text)
        if self._n_new < CHECKED_EVERY:
            return None
        self._n_new = 0
        return loop_in(self._tail)
