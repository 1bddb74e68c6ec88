"""Question and what is told of its document → plan, deduplicated: concurrent and later requests share one plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable

from pearl.dsl.checker import CheckedPlan
from pearl.llm.middleware.caching import SingleFlight


class PlanCache:
    """The plans of a run.

    Concurrent callers for the same question share one result or one failure (single flight); a call
    after a failure writes the plan again. Cancelling one caller does not affect the others;
    cancelling the last one cancels the work.
    """

    def __init__(self) -> None:
        self._plans: dict[Hashable, CheckedPlan] = {}
        self._writing: SingleFlight[CheckedPlan] = SingleFlight()

    async def get(self, key: Hashable, write: Callable[[], Awaitable[CheckedPlan]]) -> CheckedPlan:
        """Return the plan of a question."""

        async def keep() -> CheckedPlan:
            plan = self._plans[key] = await write()
            return plan

        return self._plans.get(key) or await self._writing.do(key, keep)
