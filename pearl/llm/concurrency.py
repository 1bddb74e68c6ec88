"""Concurrent calls: their results or the one failure to report, and work shared while in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pearl.errors import PearlError

T = TypeVar("T")


async def gather(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all calls concurrently; the first failure cancels the rest."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        first = first_failure(failed)
        raise first from first.__cause__
    return [task.result() for task in tasks]


def first_failure(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure to report: a bug takes precedence over an expected failure."""
    leaves: list[BaseException] = []
    todo: list[BaseException] = [group]
    while todo:
        error = todo.pop(0)
        if isinstance(error, BaseExceptionGroup):
            todo = [*error.exceptions, *todo]
        else:
            leaves.append(error)
    return next((error for error in leaves if not isinstance(error, PearlError)), leaves[0])


@dataclass(slots=True, eq=False)
class _Flight(Generic[T]):
    """Work in flight."""

    task: asyncio.Task[T]
    n_waiting: int = 0


class SingleFlight(Generic[T]):
    """Shares work in flight by its key; results are not stored.

    Concurrent callers share the result or the error; later callers start new work. Cancelling one caller
    does not affect the others; cancelling the last one cancels the work.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}

    async def do(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work in flight for a key, which is started if necessary."""
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
                # Before the task has ended, so that a new caller does not join cancelled work.
                self._forget(key, flight.task)
                flight.task.cancel()
                await asyncio.gather(flight.task, return_exceptions=True)

    async def _run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await work()
        finally:
            self._forget(key, asyncio.current_task())

    def _forget(self, key: Hashable, task: asyncio.Task[Any] | None) -> None:
        """Remove finished work, unless newer work has replaced it."""
        if key in self._flights and self._flights[key].task is task:
            del self._flights[key]
