"""Plans by SmolLM2: valid, whatever it writes; what is wrong goes back to it."""

from __future__ import annotations

import asyncio

import pytest

from pearl import Pearl
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.errors import ModelError, PlanningError
from pearl.trace import PlanAttempted, Trace
from tests.real.smollm2 import EXAMPLES, LIBRARY, QUESTION, Watched

pytestmark = pytest.mark.slow

MAX_STEPS = 3


def planned(pearl: Pearl, question: str, trace: Trace) -> CheckedPlan | PlanningError | ModelError:
    """The plan of a question, or why there is none."""
    try:
        return asyncio.run(pearl.plan(question, trace=trace))
    except (PlanningError, ModelError) as error:
        return error


def test_a_question_ends_with_a_valid_plan_or_with_the_reason(smollm2: Watched) -> None:
    """A model of this size seldom plans, even if the grammar makes what it writes a plan."""
    pearl = Pearl(smollm2, library=LIBRARY, examples=EXAMPLES, max_steps=MAX_STEPS, max_repairs=1)
    trace, n_before = Trace(), len(smollm2.requests)
    plan = planned(pearl, QUESTION, trace)
    if isinstance(plan, CheckedPlan):
        again = compile_plan(str(plan), pearl.actions, max_steps=MAX_STEPS)
        assert (plan.plan.question, again.plan.steps) == (QUESTION, plan.plan.steps)
    elif isinstance(plan, PlanningError):
        assert plan.attempts
    assert any(isinstance(event, PlanAttempted) for event in trace)
    assert len(smollm2.requests) > n_before
