"""Work over many items, so many at once: the one way in which items are turned into tasks.

Items are taken one by one, when there is room for the next, so an iterable that ends early ends the
work: what is under way is still finished. Closing the iterator cancels it instead.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable
from typing import TypeVar

__all__ = ["as_completed", "in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")


async def as_completed(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Result]], n: int
) -> AsyncGenerator[Result, None]:
    """Work on at most `n` items at once; results come as they are ready.

    Args:
        items: What to work on.
        work: Makes the result of one item.
        n: At least 1.

    Raises:
        Exception: The first that `work` raises; the rest is cancelled.
    """
    source = iter(items)
    running: set[asyncio.Future[Result]] = set()
    is_more = True
    try:
        while is_more or running:
            while is_more and len(running) < n:
                try:
                    item = next(source)
                except StopIteration:
                    is_more = False
                    break
                running.add(asyncio.ensure_future(work(item)))
            if not running:
                break
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            failed: BaseException | None = None
            for task in done:
                failed = failed or task.exception()
            for task in done:
                if task.exception() is None:
                    yield task.result()
            if failed is not None:
                raise failed
    finally:
        await _end(running)


async def in_order(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Result]], n: int
) -> AsyncGenerator[Result, None]:
    """Work on at most `n` items at once; results come in the order of the items.

    Args:
        items: What to work on.
        work: Makes the result of one item.
        n: At least 1.

    Raises:
        Exception: The first, in the order of the items, that `work` raises; the rest is cancelled.
    """
    running: deque[asyncio.Future[Result]] = deque()
    try:
        for item in items:
            if len(running) >= n:
                yield await running[0]
                running.popleft()
            running.append(asyncio.ensure_future(work(item)))
        while running:
            yield await running[0]
            running.popleft()
    finally:
        await _end(running)


async def _end(running: Collection[asyncio.Future[Result]]) -> None:
    """Cancel what is under way, and wait until it is over."""
    for unfinished in running:
        unfinished.cancel()
    await asyncio.gather(*running, return_exceptions=True)
