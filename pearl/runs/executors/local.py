"""Runs units concurrently in this process."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Iterable
from contextlib import aclosing
from heapq import heappop, heappush
from itertools import islice
from typing import TypeVar

from pearl.errors.callers import WARNING, log
from pearl.interpreter.requests import n_more_readers
from pearl.pipeline import Pearl
from pearl.runs.executors import Listener, Outcome, Resources, Unit, loader_key
from pearl.trace import Event, Trace

Item = TypeVar("Item")
Result = TypeVar("Result")


async def in_order(
    items: Iterable[Item],
    work: Callable[[Item], Awaitable[Result]],
    n: int,
    *,
    ahead: int | None = None,
    group: Callable[[Item], Hashable] | None = None,
    rank: Callable[[Item], int] = lambda item: 0,
    is_stopping: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[Result, None]:
    """Work on at most `n` items at a time; yield results in the order of the items."""
    ahead = max(n, ahead or n)
    source = enumerate(items)
    waiting: dict[Hashable, list[tuple[int, int, Item]]] = {}  # One heap per group
    running: dict[asyncio.Future[Result], int] = {}
    done: dict[int, asyncio.Future[Result]] = {}
    # Each future reports once; asyncio.wait would check all running futures after each result.
    ended: deque[asyncio.Future[Result]] = deque()
    has_ended = asyncio.Event()

    def note(future: asyncio.Future[Result]) -> None:
        ended.append(future)
        has_ended.set()

    n_taken = n_given = 0
    last: Hashable = None
    try:
        while True:
            while len(running) < n and not is_stopping():
                n_free = ahead - (n_taken - n_given)
                for index, item in islice(source, n_free if group else min(1, n_free)):
                    heap = waiting.setdefault(group(item) if group else None, [])
                    heappush(heap, (-rank(item), index, item))
                    n_taken += 1
                if not waiting:
                    break
                if last not in waiting:
                    last = next(iter(waiting))
                _, index, item = heappop(waiting[last])
                if not waiting[last]:
                    del waiting[last]
                begun: asyncio.Future[Result] = asyncio.ensure_future(work(item))
                running[begun] = index
                begun.add_done_callback(note)
            if n_given in done:
                yield done.pop(n_given).result()
                n_given += 1  # The next item may start
            elif running:
                await has_ended.wait()
                has_ended.clear()
                while ended:
                    future = ended.popleft()
                    done[running.pop(future)] = future
            else:
                break
        for index in sorted(done):  # Results after the first item that was not started
            yield done.pop(index).result()
    finally:
        await _end([*running, *done.values()])


MOST_BEING_KEPT = 256  # Maximum results that wait for `keep`; limits the memory if it is slow


async def each_kept(
    results: AsyncGenerator[Result, None], keep: Callable[[Result], Awaitable[None]]
) -> AsyncGenerator[Result, None]:
    """Yield results in order, each after `keep` has stored it; several results are stored concurrently."""
    keeping: deque[tuple[Result, asyncio.Future[None]]] = deque()
    has_news = asyncio.Event()
    has_room = asyncio.Event()

    async def take() -> None:
        async for result in results:
            kept = asyncio.ensure_future(keep(result))
            kept.add_done_callback(lambda _: has_news.set())
            keeping.append((result, kept))
            if len(keeping) >= MOST_BEING_KEPT:
                has_room.clear()
                await has_room.wait()

    taking = asyncio.ensure_future(take())
    taking.add_done_callback(lambda _: has_news.set())
    try:
        while True:
            while keeping and keeping[0][1].done():
                result, kept = keeping.popleft()
                has_room.set()
                kept.result()
                yield result
            if taking.done():
                taking.result()
                if not keeping:
                    return
            await has_news.wait()
            has_news.clear()
    finally:
        await _end([taking])
        # Finished results are paid for, so they are stored even if the caller has stopped.
        await asyncio.gather(*(kept for _, kept in keeping), return_exceptions=True)


async def _end(running: Collection[asyncio.Future[Result]]) -> None:
    for unfinished in running:
        unfinished.cancel()
    await asyncio.gather(*running, return_exceptions=True)


DESCRIPTION = "in this process, hundreds of calls at once"
KEEPS_LIMITS = True
UNITS = Unit

UNDER_WAY = 2
"""Concurrent units per concurrent call: a unit often waits for a step or a document, and others then use
its place."""

AHEAD = 8  # Units taken in advance per concurrent call, to find those over the same document

U = TypeVar("U", bound=Unit)


async def run(
    pearl: Pearl,
    units: Iterable[U],
    *,
    listener: Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[Outcome[U], None]:
    """Run the units concurrently; outcomes come in the order of the units. Units over one document run together, so that it is loaded once."""
    resources = Resources(pearl)
    n = pearl.client.settings.concurrency
    n_readers: Counter[Hashable] = Counter()  # Unfinished units, by document

    def taken(unit: U) -> Hashable:
        key = document_of(unit)
        n_readers[key] += key is not None
        return key

    async def one(unit: U) -> Outcome[U]:
        key = document_of(unit)
        n_more_readers.set(lambda: max(0, n_readers[key] - 1))
        try:
            return await perform(unit, resources, listener)
        finally:
            n_readers[key] -= key is not None
            if not n_readers[key]:
                del n_readers[key]

    found = in_order(
        units,
        one,
        UNDER_WAY * n if n > 1 else 1,
        ahead=AHEAD * n,
        group=taken,
        rank=lambda unit: unit.n_chained(resources),
        is_stopping=is_stopping,
    )
    with pearl.client.breaker.running():
        async with aclosing(found) as outcomes:
            async for outcome in outcomes:
                yield outcome


class _Told:
    """Tells a listener the events of one unit."""

    def __init__(self, listener: Listener, id: str) -> None:
        self._listener, self._id = listener, id
        self.hears_attempts = getattr(listener, "hears_attempts", True)

    def __call__(self, event: Event) -> None:
        self._listener(self._id, event)


async def perform(unit: U, resources: Resources, listener: Listener | None = None) -> Outcome[U]:
    """Execute one unit; errors are recorded in the outcome, not raised."""
    trace = Trace(unit.id, _Told(listener, unit.id) if listener else None)
    try:
        result = await unit.perform(resources, trace)
    except Exception as error:  # noqa: BLE001 - one unit's failure is recorded, the rest goes on
        log(WARNING, "task %s failed: %s", unit.id, error)
        return Outcome(unit, None, error, trace)
    return Outcome(unit, result, None, trace)


def document_of(unit: Unit) -> Hashable:
    """The key that groups units with the same document; None without one."""
    return None if unit.document is None else loader_key(unit.document)
