"""Question and shape card → plan, deduplicated: concurrent and later requests share one plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pearl.dsl.checker import CheckedPlan
from pearl.llm.single_flight import SingleFlight

__all__ = ["PlanCache"]


class PlanCache:
    """The plans of a run.

    Concurrent callers for the same question share one result or one failure (single flight); a call
    after a failure writes the plan again. Cancelling one caller does not affect the others;
    cancelling the last one cancels the work.
    """

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str], CheckedPlan] = {}
        self._writing: SingleFlight[CheckedPlan] = SingleFlight()

    async def get(
        self, question: str, write: Callable[[], Awaitable[CheckedPlan]], card: str = ""
    ) -> CheckedPlan:
        """Return the plan of a question.

        Args:
            question: What the plan is for.
            write: Writes the plan; called unless one is cached or in progress.
            card: What the planner is told about the document.

        Raises:
            PearlError: What `write` raises.
        """

        async def keep() -> CheckedPlan:
            plan = self._plans[question, card] = await write()
            return plan

        key = question, card
        return self._plans.get(key) or await self._writing.do(key, keep)
