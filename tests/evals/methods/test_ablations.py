"""What is left out of `pearl`: running the plan, and refining the examples."""

from __future__ import annotations

from pearl import Pearl
from pearl.llm import ActionTask, PlanTask
from tests.evals.asking import PLAN, acting, run, sample

DRAFT = '1. draft = FIND_REASON(CTX, "drafted without an example") : Draft it\n'


def test_unexecuted_shows_the_plan_with_the_document_in_one_call() -> None:
    model = acting()
    found = run(Pearl(model), [sample()], "unexecuted")["q1", "unexecuted", 0]
    (reading,) = (one for one in model.requests if isinstance(one.task, ActionTask))
    assert "FIND_EVENT(CTX, 'the sale')" in reading.prompt
    assert "the hull was rotten" in reading.prompt
    assert (found.answer, found.plan, found.planning_usage.n_input_tokens > 0) == (
        "It was rotten.",
        None,
        True,
    )


def test_unrefined_examples_are_what_the_model_drafted_once_for_the_questions_of_the_bank() -> None:
    asked = [sample("q1"), sample("q2")]

    def plan(task: PlanTask) -> str:
        if task.question in {each.question for each in asked}:
            return PLAN
        if task.question == bank[0].question:
            return "I have no plan."
        return DRAFT

    model = acting(plan=plan)
    pearl = Pearl(model)
    bank = pearl.material.examples
    records = run(pearl, asked, "unrefined")
    assert {record.status for record in records.values()} == {"answered"}
    plans = [one for one in model.requests if isinstance(one.task, PlanTask)]
    drafts = [one for one in plans if one.task.question in {each.question for each in bank}]
    tried = [one for one in drafts if one.task.question != bank[0].question]
    assert len(tried) == len(bank) - 1  # for both samples together
    own = [one for one in plans if one not in drafts]
    assert not any(bank[1].question in one.prompt for one in tried[1:])
    n_shown = len(pearl.material.shown(asked[0].question).examples)
    assert all(one.prompt.count("drafted without an example") == n_shown for one in own)
