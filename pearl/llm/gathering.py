"""Concurrent calls → their results, or the one failure to report."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

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
