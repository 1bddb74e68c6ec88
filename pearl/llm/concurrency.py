"""Concurrent calls: gather results or the one failure to report, share work in flight, run event loops in threads."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Hashable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from msgspec import Struct

from pearl.errors import PearlError

T = TypeVar("T")

CLOSE_S = 5.0  # Seconds to wait at exit for cancelled work of a background loop

_loops: dict[str, asyncio.AbstractEventLoop] = {}
_lock = threading.Lock()


def background_loop(name: str) -> asyncio.AbstractEventLoop:
    """The event loop with a name; it runs in its own thread until the process ends."""
    with _lock:
        if name not in _loops:
            loop = _loops[name] = asyncio.new_event_loop()
            thread = threading.Thread(target=_run, args=(loop,), name=f"pearl-{name}", daemon=True)
            thread.start()
            atexit.register(_close, loop, thread, os.getpid())
        return _loops[name]


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    while not loop.is_closed():
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):  # Raised by one task; the others go on
            continue
        return


def _close(loop: asyncio.AbstractEventLoop, thread: threading.Thread, process: int) -> None:
    """Cancel running tasks, and end the thread."""

    async def cancelled() -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await loop.shutdown_asyncgens()

    if process != os.getpid():  # A forked process does not have the thread
        return
    with suppress(TimeoutError):
        asyncio.run_coroutine_threadsafe(cancelled(), loop).result(CLOSE_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(CLOSE_S)
    if not thread.is_alive():
        loop.close()


def _forked() -> None:
    global _lock
    _lock = threading.Lock()  # Another thread of the parent process may hold the old one
    _loops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def resolve(future: asyncio.Future[T], outcome: T | BaseException) -> None:
    """Set the result or error of a future from any thread; a finished future is left unchanged."""

    def set_outcome() -> None:
        if future.done():
            return
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    loop = future.get_loop()
    try:
        is_own = asyncio.get_running_loop() is loop
    except RuntimeError:
        is_own = False
    if is_own:
        set_outcome()
    else:
        with suppress(RuntimeError):  # The loop is closed, so nothing waits for the future
            loop.call_soon_threadsafe(set_outcome)


async def gather(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run calls concurrently and return their results; the first failure cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        first = first_failure(failed)
        raise first from first.__cause__
    return [task.result() for task in tasks]


def first_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure to report: a bug takes precedence over an expected error."""
    leaves: list[BaseException] = []
    todo: list[BaseException] = [group]
    while todo:
        error = todo.pop(0)
        if isinstance(error, BaseExceptionGroup):
            todo = [*error.exceptions, *todo]
        else:
            leaves.append(error)
    return next((error for error in leaves if not isinstance(error, PearlError)), leaves[0])


class _Flight(Struct, Generic[T], eq=False):
    """Work in flight, with the number of its callers."""

    task: asyncio.Task[T]
    n_waiting: int = 0


class SingleFlight(Generic[T]):
    """Shares work in flight, with its result or error, by key; it is cancelled when its last caller is."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def do(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Start the work for a key, or join the work in flight; return its result."""
        key = (asyncio.get_running_loop(), key)
        flight = self._flights.get(key)
        if flight is None:
            task = asyncio.create_task(self._run(key, work))
            flight = self._flights[key] = _Flight(task)
        flight.n_waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.n_waiting -= 1
            if not flight.n_waiting and not flight.task.done():
                # Before the task ends, so that a new caller does not join cancelled work.
                self._forget(key, flight.task)
                flight.task.cancel()
                await asyncio.gather(flight.task, return_exceptions=True)

    async def _run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await work()
        finally:
            self._forget(key, asyncio.current_task())

    def _forget(self, key: Hashable, task: asyncio.Task[Any] | None) -> None:
        """Remove finished work, unless newer work replaced it."""
        if key in self._flights and self._flights[key].task is task:
            del self._flights[key]
