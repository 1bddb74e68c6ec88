"""Whoever waits is told so, and told again: no wait is silent for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["TELL_S", "OnHeld", "held", "telling"]

OnHeld = Callable[[str, float], None]
"""Told why a call waits, and for how many seconds more at least."""

TELL_S = 10.0
"""Seconds after which it is told again."""

_on_held: ContextVar[OnHeld | None] = ContextVar("on_held", default=None)


@contextmanager
def telling(on_held: OnHeld) -> Iterator[None]:
    """Have `on_held` told of the calls in this block that are held back.

    Calls of many tasks share one limiter; by the context of the task it knows whom to tell.
    """
    token = _on_held.set(on_held)
    try:
        yield
    finally:
        _on_held.reset(token)


@contextmanager
def held(why: Callable[[], tuple[str, float]]) -> Iterator[None]:
    """Tell of a wait every `TELL_S` seconds, for the length of a block.

    Args:
        why: The reason and the seconds left; the reason is "" where there is nothing to tell.
    """
    on_held = _on_held.get()
    if on_held is None:
        yield
        return
    loop = asyncio.get_running_loop()

    timer: asyncio.TimerHandle

    def tell() -> None:
        nonlocal timer
        timer = loop.call_later(TELL_S, tell)
        reason, wait_s = why()
        if reason:
            on_held(reason, wait_s)

    timer = loop.call_later(TELL_S, tell)
    try:
        yield
    finally:
        timer.cancel()
