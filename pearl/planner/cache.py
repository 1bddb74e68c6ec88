"""A question → its plan, written once for all who ask, while they wait and afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pearl.dsl.checker import CheckedPlan
from pearl.llm.single_flight import SingleFlight

__all__ = ["PlanCache"]


class PlanCache:
    """The plans of a run. Whoever asks after a failure has the plan written anew."""

    def __init__(self) -> None:
        self._plans: dict[str, CheckedPlan] = {}
        self._writing: SingleFlight[CheckedPlan] = SingleFlight()

    async def get(self, question: str, write: Callable[[], Awaitable[CheckedPlan]]) -> CheckedPlan:
        """The plan of a question.

        Args:
            question: What the plan is for.
            write: Writes the plan; called where there is none, and none is being written.

        Raises:
            PearlError: What `write` raises.
        """

        async def keep() -> CheckedPlan:
            plan = self._plans[question] = await write()
            return plan

        return self._plans.get(question) or await self._writing.do(question, keep)
