"""Plans by SmolLM2: valid, whatever it writes; what is wrong goes back to it."""

from __future__ import annotations

import asyncio

import pytest

from pearl import Pearl
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.errors import ModelError, PlanningError
from pearl.interpreter.model_calls import CUT_SHORT
from pearl.llm import Completion, Request, Usage
from pearl.trace import PlanAttempted, Trace
from tests.real.smollm2 import EXAMPLES, LIBRARY, QUESTIONS, Watched

pytestmark = pytest.mark.slow

MAX_STEPS = 3

UNKNOWN = 'New actions:\n- None\n\n1. a = FIND_OUT(CTX, "the mate") : Find it'


def planned(pearl: Pearl, question: str, trace: Trace) -> CheckedPlan | PlanningError | ModelError:
    """The plan of a question, or why there is none."""
    try:
        return asyncio.run(pearl.plan(question, trace=trace))
    except (PlanningError, ModelError) as error:
        return error


def test_every_question_ends_with_a_valid_plan_or_with_the_reason(smollm2: Watched) -> None:
    """A model of this size seldom plans, even if the grammar makes what it writes a plan."""
    pearl = Pearl(smollm2, library=LIBRARY, examples=EXAMPLES, max_steps=MAX_STEPS, max_repairs=1)
    for question in QUESTIONS[:2]:
        trace, n_before = Trace(), len(smollm2.requests)
        plan = planned(pearl, question, trace)
        if isinstance(plan, CheckedPlan):
            again = compile_plan(str(plan), pearl.actions, max_steps=MAX_STEPS)
            assert (plan.plan.question, again.plan.steps) == (question, plan.plan.steps)
        elif isinstance(plan, PlanningError):
            assert plan.attempts
        assert any(isinstance(event, PlanAttempted) for event in trace)
        assert len(smollm2.requests) > n_before


class WrongAtFirst:
    """SmolLM2, but for the first reply, which is ours: a plan that calls an action there is not."""

    def __init__(self, model: Watched) -> None:
        self._model, self._is_first = model, True

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    async def complete(self, request: Request) -> Completion:
        if self._is_first:
            self._is_first = False
            return Completion(UNKNOWN, "ours", Usage())
        return await self._model.complete(request)


def test_what_is_wrong_with_a_plan_goes_back_to_it(smollm2: Watched) -> None:
    trace, n_before = Trace(), len(smollm2.requests)
    pearl = Pearl(
        WrongAtFirst(smollm2),  # type: ignore[arg-type]
        library=LIBRARY, examples=EXAMPLES, max_steps=MAX_STEPS, max_repairs=1,
        max_output_tokens=48, constrain="off",
    )  # fmt: skip
    plan = planned(pearl, QUESTIONS[0], trace)
    if isinstance(plan, ModelError):
        assert plan.kind in CUT_SHORT
    elif isinstance(plan, PlanningError):
        assert len(plan.attempts) == 2
    first = next(event for event in trace if isinstance(event, PlanAttempted))
    assert (first.model, first.reply) == ("ours", UNKNOWN)
    assert "unknown-action" in "".join(first.diagnostics)
    (repaired,) = smollm2.requests[n_before:]
    assert UNKNOWN.splitlines()[-1] in repaired.prompt
    assert "'FIND_OUT' is not in library" in repaired.prompt
