"""What is computed over a text: in the event loop where that is quick, else in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

Result = TypeVar("Result")

AT_ONCE_CHARACTERS = 20_000
"""What is computed over so many characters is done sooner than another thread has begun with it."""

_is_at_once = ContextVar("_is_at_once", default=False)


async def off_loop(n_characters: int, compute: Callable[[], Result]) -> Result:
    """What is computed over a text, without keeping the event loop from its other work."""
    if n_characters <= AT_ONCE_CHARACTERS or _is_at_once.get():
        return compute()
    return await asyncio.to_thread(compute)


def at_once(work: Coroutine[Any, Any, Result]) -> Result | None:
    """The result of work that need not wait, as ranking by words, without an event loop."""
    before = _is_at_once.set(True)
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    except RuntimeError as error:
        if "no running event loop" not in str(error):
            raise
        return None
    finally:
        work.close()
        _is_at_once.reset(before)
    return None
