"""Callers with the same question share its plan."""

from __future__ import annotations

import asyncio

from pearl.dsl.checker import CheckedPlan
from pearl.errors import ModelError
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.trace import Trace

FIND = '1. ans = FIND(CTX, "the key") : Find it'


def test_callers_of_a_question_share_one_plan_or_one_failure_that_is_not_kept() -> None:
    replies = [ModelError("gone", kind="bad_request"), FIND]

    def reply(request: Request) -> str:
        said = replies.pop(0)
        if isinstance(said, ModelError):
            raise said
        return said

    async def main() -> None:
        async with Pearl(Scripted(reply)) as pearl:

            async def plan() -> CheckedPlan:
                trace = Trace()
                return await pearl.planner.write_shared("Where?", pearl.calls(trace), trace)

            failed = await asyncio.gather(plan(), plan(), plan(), return_exceptions=True)
            assert [type(error) for error in failed] == [ModelError] * 3
            assert await plan() is await plan()

    asyncio.run(main())
    assert not replies
