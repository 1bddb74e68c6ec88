"""Computations over texts: in the event loop if quick, else in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

from pearl.documents.document import AT_ONCE

Result = TypeVar("Result")

_is_at_once = ContextVar("_is_at_once", default=False)


async def off_loop(n_characters: int, compute: Callable[[], Result]) -> Result:
    """Compute without blocking the event loop."""
    if n_characters <= AT_ONCE or _is_at_once.get():
        return compute()
    return await asyncio.to_thread(compute)


def at_once(work: Coroutine[Any, Any, Result]) -> Result | None:
    """Run a coroutine that does not wait, such as ranking by words, without an event loop; None if it waits."""
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
