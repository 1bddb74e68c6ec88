"""In this process, so many tasks at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing

from pearl.errors import PearlError
from pearl.executors import Listener, Outcome, Task
from pearl.pipeline import Pearl
from pearl.scheduling import in_order
from pearl.trace import Trace

__all__ = ["run"]


async def run(
    pearl: Pearl, tasks: Iterable[Task], *, listener: Listener | None = None
) -> AsyncIterator[Outcome]:
    """Run the tasks; outcomes come in the order of the tasks.

    Args:
        pearl: Model and library.
        tasks: Read one by one, at most `pearl.concurrency` ahead of the outcomes.
        listener: Told of every event of every task.
    """

    async def one(task: Task) -> Outcome:
        return await _run(pearl, task, listener)

    async with aclosing(in_order(tasks, one, pearl.concurrency)) as outcomes:
        async for outcome in outcomes:
            yield outcome


async def _run(pearl: Pearl, task: Task, listener: Listener | None) -> Outcome:
    trace = Trace(task.id, (lambda event: listener(task.id, event)) if listener else None)
    try:
        if task.problem is not None or task.document is None:
            raise task.problem or PearlError("the task has no document")
        document = await asyncio.to_thread(task.document)
        if task.plan is not None:
            plan = pearl.compile(task.plan, question=task.question)
            answer = await pearl.execute(plan, document, trace=trace)
        else:
            answer = await pearl.ask(task.question or "", document, trace=trace)
    except Exception as error:  # noqa: BLE001 - one task's failure is recorded, the rest goes on
        return Outcome(task, None, error, trace)
    return Outcome(task, answer, None, trace)
