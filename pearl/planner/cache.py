"""Question → plan, deduplicated: concurrent and later requests share one plan."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pearl.dsl.checker import CheckedPlan

__all__ = ["PlanCache"]


@dataclass(slots=True, eq=False)
class _Writing:
    """A plan, finished or in progress."""

    task: asyncio.Task[CheckedPlan]
    n_waiting: int = 0


class PlanCache:
    """The plans of a run.

    Concurrent callers for the same question share one result or one failure (single flight); a call
    after a failure writes the plan again. Cancelling one caller does not affect the others;
    cancelling the last one cancels the work.
    """

    def __init__(self) -> None:
        self._plans: dict[str, _Writing] = {}

    async def get(self, question: str, write: Callable[[], Awaitable[CheckedPlan]]) -> CheckedPlan:
        """Return the plan of a question.

        Args:
            question: What the plan is for.
            write: Writes the plan; called unless one is cached or in progress.

        Raises:
            PearlError: What `write` raises.
        """
        shared = self._plans.get(question)
        if shared is None:
            shared = _Writing(asyncio.create_task(self._write(question, write)))
            self._plans[question] = shared
        shared.n_waiting += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.n_waiting -= 1
            if not shared.n_waiting and not shared.task.done():
                del self._plans[question]  # before the cancellation, so that no caller joins it
                shared.task.cancel()
                await asyncio.gather(shared.task, return_exceptions=True)

    async def _write(
        self, question: str, write: Callable[[], Awaitable[CheckedPlan]]
    ) -> CheckedPlan:
        try:
            return await write()
        except BaseException:
            shared = self._plans.get(question)
            if shared is not None and shared.task is asyncio.current_task():
                del self._plans[question]
            raise
