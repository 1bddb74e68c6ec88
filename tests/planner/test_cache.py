"""Plans that are shared: written once, never a failure for ever, never a call for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from pearl.actions.library import load_library
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.errors import ModelError, PearlError, PlanningError
from pearl.planner.planner import PlanCache

PLAN = compile_plan('1. a = FIND(CTX, "it") : Find it', load_library("seed"))


class Writer:
    """Writes when it is let, and fails so many times before."""

    def __init__(self, *failures: PearlError) -> None:
        self.n_begun = self.n_cancelled = 0
        self.may_end = asyncio.Event()
        self._failures = list(failures)

    async def __call__(self) -> CheckedPlan:
        self.n_begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        if self._failures:
            raise self._failures.pop(0)
        return PLAN


def within_a_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


async def asking(plans: PlanCache, write: Writer, n: int) -> list[asyncio.Task[CheckedPlan]]:
    tasks = [asyncio.create_task(plans.get("Why?", write)) for _ in range(n)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


@within_a_loop
async def test_a_plan_is_written_once_for_those_who_wait_and_those_who_come_later() -> None:
    plans, write = PlanCache(), Writer()
    tasks = await asking(plans, write, 3)
    write.may_end.set()
    assert await asyncio.gather(*tasks) == [PLAN] * 3
    assert await plans.get("Why?", write) is PLAN
    assert write.n_begun == 1
    await plans.get("Who?", write)
    assert write.n_begun == 2


@pytest.mark.parametrize(
    "error", [PlanningError("no valid plan", attempts=[]), ModelError("gone", kind="bad_request")]
)
def test_a_failure_is_shared_by_those_who_wait_and_then_forgotten(error: PearlError) -> None:
    async def main() -> None:
        plans, write = PlanCache(), Writer(error)
        tasks = await asking(plans, write, 2)
        write.may_end.set()
        assert await asyncio.gather(*tasks, return_exceptions=True) == [error, error]
        assert write.n_begun == 1
        assert await plans.get("Why?", write) is PLAN
        assert write.n_begun == 2

    asyncio.run(main())


@within_a_loop
async def test_one_who_is_cancelled_leaves_the_others_alone() -> None:
    plans, write = PlanCache(), Writer()
    first, second = await asking(plans, write, 2)
    first.cancel()
    await asyncio.wait([first])
    (third,) = await asking(plans, write, 1)
    write.may_end.set()
    assert await asyncio.gather(second, third) == [PLAN, PLAN]
    assert (write.n_begun, write.n_cancelled) == (1, 0)


@within_a_loop
async def test_the_last_one_who_is_cancelled_ends_the_writing() -> None:
    plans, write = PlanCache(), Writer()
    tasks = await asking(plans, write, 2)
    for task in tasks:
        task.cancel()
    (late,) = await asking(plans, write, 1)  # does not join what is ending
    assert all(task.cancelled() for task in tasks)
    write.may_end.set()
    assert await late is PLAN
    assert (write.n_begun, write.n_cancelled) == (2, 1)
