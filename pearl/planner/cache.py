"""A question → its plan, written once for all who ask, while they wait and afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pearl.dsl.checker import CheckedPlan

__all__ = ["PlanCache"]


@dataclass(slots=True, eq=False)
class _Writing:
    """A plan that is being written, or was."""

    task: asyncio.Task[CheckedPlan]
    n_waiting: int = 0


class PlanCache:
    """The plans of a run.

    Those who wait for the same plan share what comes of it, a failure, too; whoever asks after a
    failure has the plan written anew. Whoever is cancelled leaves the others alone, and the last
    one to leave ends the writing, for nobody would use what it costs.
    """

    def __init__(self) -> None:
        self._plans: dict[str, _Writing] = {}

    async def get(self, question: str, write: Callable[[], Awaitable[CheckedPlan]]) -> CheckedPlan:
        """The plan of a question.

        Args:
            question: What the plan is for.
            write: Writes the plan; called where there is none, and none is being written.

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
                del self._plans[question]  # at once: who asks now must not join what is ending
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
