"""Different plans + document → one answer, with how far the plans agree."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Protocol

from pearl.actions.values import Value
from pearl.dsl.checker import CheckedPlan
from pearl.errors import ExecutionError, ModelError
from pearl.interpreter.agreement import Agreement, PlanAnswer
from pearl.interpreter.answer import Answer
from pearl.llm.concurrency import gather
from pearl.planner.independent import Plans
from pearl.trace import PlansCompared, Trace


class Execute(Protocol):
    """Runs a plan over a document, as `pearl.pipeline.Pearl.execute` does."""

    async def __call__(
        self, plan: CheckedPlan, *, token_budget: int | None, trace: Trace
    ) -> Answer:
        """Run it."""
        ...


async def answer_by(
    plans: Plans, execute: Execute, token_budget: int | None, trace: Trace
) -> Answer:
    """Run the only plan, or each of the different plans once, at the same time, and return the answer of the largest group.

    What fails or stays undecided is counted and agrees with nothing. Where different answers are equally
    frequent, the answer is undecided, and shows them.
    """
    if plans.n_wanted == 1:
        return await execute(plans.different[0], token_budget=token_budget, trace=trace)
    began = time.monotonic()
    each = None if token_budget is None else token_budget // len(plans.different)

    async def run(plan: CheckedPlan, number: int) -> Answer | ExecutionError | ModelError:
        try:
            return await execute(plan, token_budget=each, trace=trace.of_plan(number))
        except (ExecutionError, ModelError) as error:
            return error

    ran = await gather(
        [run(plan, n[0]) for plan, n in zip(plans.different, plans.written, strict=True)]
    )
    answers = [outcome if isinstance(outcome, Answer) else None for outcome in ran]
    first = next(filter(None, answers), None)
    if first is None:
        raise next(each for each in ran if not isinstance(each, Answer))
    agreement = Agreement(
        plans.n_wanted,
        tuple(
            _of(plan, numbers, outcome)
            for plan, numbers, outcome in zip(plans.different, plans.written, ran, strict=True)
        ),
    )
    trace.append(
        PlansCompared(
            n_plans=agreement.n_plans,
            n_different=agreement.n_different,
            n_agreeing=agreement.n_agreeing,
            is_tied=agreement.is_tied,
        )
    )
    chosen = None if agreement.chosen is None else answers[agreement.chosen]
    answer = chosen or next((each for each in answers if each and each.status == "answered"), first)
    return replace(
        answer,
        text=f"undecided: {agreement.why}" if agreement.is_tied else answer.text,
        agreement=agreement,
        usage=trace.usage,
        duration_s=time.monotonic() - began,
        trace=trace,
    )


def _of(
    plan: CheckedPlan, written: tuple[int, ...], outcome: Answer | ExecutionError | ModelError
) -> PlanAnswer:
    if not isinstance(outcome, Answer):
        return PlanAnswer(str(plan), written, "failed", outcome.message)
    value: Value = outcome.text
    if len(outcome.outputs) == 1:
        value = next(s.value for s in outcome.steps if s.output == outcome.outputs[0])
    return PlanAnswer(
        outcome.plan,
        written,
        outcome.status,
        outcome.text if outcome.has_answer else outcome.why,
        value,
    )
