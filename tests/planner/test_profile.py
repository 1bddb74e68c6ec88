"""What a planner of a small model is shown, asked for and held to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pearl.dsl.checker import CheckedPlan
from pearl.dsl.decoding.weak import n_texts
from pearl.dsl.nodes import String
from pearl.errors import ModelError, PlanningError
from pearl.llm import Constrains, Request, Usage
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.planner.material import FULL, MIN_WINDOW, SMALL, profile_for
from pearl.runs.executors import Task
from pearl.runs.forecast import PLANNING, forecast
from pearl.runs.identity import run_config
from pearl.trace import PlanAttempted, Trace

QUESTION = "Why did Nils sell the boat, and who bought it?"


class Reading(Scripted):
    """A scripted model whose prompts count."""

    reads_prompts = True

    def __init__(
        self, reply: Callable[[Request], str], name: str = "openai:tiny-1b", **given: Any
    ) -> None:
        self.constrains = given.pop("constrains", Constrains())
        super().__init__(reply, name=name, is_recording=True, **given)


@pytest.mark.parametrize(
    ("model", "window", "chosen", "expected"),
    [
        ("openai:qwen3:1.7b", None, "auto", SMALL),
        ("openai:gpt-4o", 128_000, "auto", FULL),
        ("openai:gpt-4o", MIN_WINDOW, "auto", FULL),
        ("openai:gpt-4o", MIN_WINDOW - 1, "auto", SMALL),
        ("openai:qwen3:1.7b", None, "full", FULL),
        ("openai:gpt-4o", None, "small", SMALL),
    ],
)
def test_by_size_and_window(model: str, window: int | None, chosen: Any, expected: object) -> None:
    assert profile_for(Reading(str, model), chosen, window) is expected


def test_a_model_that_reads_no_prompt_has_the_full_profile() -> None:
    assert profile_for(Scripted(lambda request: ""), "auto", 100) is FULL


def planned(
    reply: str | Callable[[Request], str], question: str = QUESTION, **given: Any
) -> tuple[CheckedPlan, Reading, list[PlanAttempted]]:
    say = reply if callable(reply) else lambda request: reply
    settings = {key: given.pop(key) for key in list(given) if key in ("max_steps", "max_repairs")}
    model, trace = Reading(say, **given), Trace()
    plan = asyncio.run(Pearl(model, planned_by="model", **settings).plan(question, trace=trace))
    return plan, model, [each for each in trace if isinstance(each, PlanAttempted)]


def calls(plan: CheckedPlan) -> list[tuple[str, ...]]:
    return [
        (step.action, *(a.value if isinstance(a, String) else a.name for a in step.arguments))  # type: ignore[union-attr]
        for step in plan.plan.steps
    ]


def test_the_prompt_is_short_and_about_the_question() -> None:
    plan, model, [attempt] = planned('1. v1 = FIND_REASON(CTX, "Nils sell the boat")')
    assert calls(plan) == [("FIND_REASON", "CTX", "Nils sell the boat")]
    assert plan.plan.question == QUESTION
    [request] = model.requests
    pearl = Pearl(model)
    assert pearl.limits.counter.count(request.prompt) < 1_100  # an estimate, too high by half
    listed = [line for line in request.prompt.splitlines() if line.startswith("- ")]
    assert len(listed) == SMALL.n_actions
    assert request.prompt.count("Question: ") == SMALL.n_examples + 1
    assert any("FIND_REASON(CTX, X)" in line for line in listed)  # what the question asks for
    assert request.prompt.endswith(f"Question: {QUESTION}\nPlan:")
    assert " : " not in request.prompt.partition("Question:")[2]  # no explanations
    assert request.max_output_tokens == SMALL.max_output_tokens
    assert attempt.profile == "small"
    assert run_config(pearl)["profile"] == "small"


def test_a_forecast_counts_the_prompt_that_is_sent() -> None:
    _, model, _ = planned('1. v1 = FIND(CTX, "Nils")')
    pearl = Pearl(Reading(lambda request: ""), planned_by="model", max_repairs=0)
    found = forecast(pearl, [Task("1", question=QUESTION, document=lambda: None)])  # type: ignore[arg-type]
    step = next(each for each in found.steps if each.name == PLANNING)
    assert step.input_tokens.least == pearl.limits.counter.count(model.requests[0].prompt)


@pytest.mark.parametrize("domain", ["quality", "medical", "finance", "generic"])
@pytest.mark.parametrize("kind", ["document", "corpus", "table"])
def test_every_library_has_a_short_form(domain: str, kind: Any) -> None:
    pearl = Pearl(Reading(str), domain=domain)
    shown = pearl.material.actions_for(kind, QUESTION)
    reading = [action for action in shown.values() if n_texts(action) is not None]
    examples = pearl.material.examples_for(QUESTION, kind)
    assert 1 <= len(reading) <= SMALL.n_actions
    assert {step.action for each in examples for step in each.plan.steps} <= set(shown)
    if kind == "table":
        assert [action.name for action in reading] == ["LOOKUP"]
    else:
        assert len(examples) == SMALL.n_examples
    assert len(pearl.material.actions_for(kind)) > len(shown)  # all, where there is no question


def test_rules_mend_made_up_arguments_and_steps() -> None:
    reply = """Sure! Here is the plan:
1. reason = FIND_REASON(CTX, "Nils's selling of the boat")
2. again = FIND_REASON(CTX, "selling the boat")
3. buyer = IDENTIFY(CTX, "a dragon")
4. same = IDENTIFY(CTX, "a unicorn")
5. all = CONCAT(reason, nothing)"""
    plan, _, [attempt] = planned(reply)
    assert calls(plan) == [
        ("FIND_REASON", "CTX", "Nils's selling of the boat"),
        ("FIND_REASON", "CTX", "selling the boat"),
    ]
    assert all(step.explanation for step in plan.plan.steps)
    assert any("too-many-steps" in note for note in attempt.notes)


def test_repeated_calls_become_one() -> None:
    reply = '1. a = FIND(CTX, "Nils")\n2. b = FIND(CTX, "nils")\n3. c = FIND(CTX, "x")'
    plan, _, [attempt] = planned(reply)
    assert calls(plan) == [
        ("FIND", "CTX", "Nils"), ("FIND", "CTX", QUESTION)
    ]  # fmt: skip
    assert [code for note in attempt.notes for code in CODES if code in note] == list(CODES)


CODES = ("repeated-call", "not-of-the-question")


@pytest.mark.parametrize(
    ("question", "reply", "last"),
    [
        ("How many ships sank?", '1. a = LIST_ALL(CTX, "ships sank")', ("COUNT", "list")),
        # An amount is stated: entries of a list are none.
        ("How much money has Ada?", '1. a = LIST_ALL(CTX, "money")', ("LIST_ALL", "CTX", "money")),
        ("How many ships sank?", '1. a = FIND(CTX, "ships sank")', ("FIND", "CTX", "ships sank")),
        (
            "How does the mayor's account differ from that of the priest?",
            '1. a = SUMMARIZE_X(CTX, "mayor\'s account")\n2. b = SUMMARIZE_X(CTX, "the priest")',
            ("COMPARE", "CTX", "summarize", "summarize_2"),
        ),
    ],
)
def test_rules_add_the_combining_step(question: str, reply: str, last: tuple[str, ...]) -> None:
    plan, _, _ = planned(reply, question)
    assert calls(plan)[-1] == last


def test_no_step_is_added_beyond_the_limit() -> None:
    reply = '1. a = FIND_REASON(CTX, "Nils")\n2. b = IDENTIFY(CTX, "bought it")'
    plan, _, _ = planned(reply, max_steps=2)
    assert [step.action for step in plan.plan.steps] == ["FIND_REASON", "IDENTIFY"]


def test_a_grammar_limits_strings_to_words_of_the_question() -> None:
    constrains = Constrains(frozenset({"grammar"}))
    plan, model, [attempt] = planned('1. v1 = FIND(CTX, "Nils")', constrains=constrains)
    [request] = model.requests  # one phase
    assert request.constraint is not None
    assert request.constraint.name == "weak-plan"
    assert "T0: /Nils" in request.constraint.lark
    assert attempt.constraint == "library"
    assert len(plan.plan.steps) == 1


@pytest.mark.parametrize("kind", ["repetition", "truncated"])
def test_the_beginning_of_an_endless_reply_is_a_plan(kind: Any) -> None:
    def endless(request: Request) -> str:
        reply = '1. v1 = FIND(CTX, "Nils")\n' * 30 + "1. v1 = FI"
        raise ModelError("it has no end", kind=kind, reply=reply, usage=Usage(1, 2))

    plan, model, [attempt] = planned(endless)
    assert calls(plan) == [("FIND", "CTX", "Nils")]
    assert len(model.requests) == 1
    assert attempt.usage == Usage(1, 2)


def test_a_reply_without_a_step_is_repaired_then_fails() -> None:
    with pytest.raises(PlanningError) as caught:
        planned("I cannot see the document.", max_repairs=1)
    assert len(caught.value.attempts) == 2


@pytest.mark.parametrize(
    ("window", "given", "expected"),
    [(None, {}, 1_024), (2_000, {}, 500), (None, {"max_output_tokens": 3_000}, 3_000)],
)
def test_the_limit_of_a_reply(window: int | None, given: dict[str, int], expected: int) -> None:
    model = Reading(lambda request: '1. v1 = FIND(CTX, "Nils")', window=window)
    asyncio.run(Pearl(model, planned_by="model", **given).plan(QUESTION))  # type: ignore[arg-type]
    assert model.requests[0].max_output_tokens == expected


@pytest.mark.parametrize("domain", ["quality", "medical", "finance", "generic"])
@pytest.mark.parametrize("kind", ["document", "corpus", "table"])
def test_the_full_prompt_explains_the_nearest_actions_and_names_all(domain: str, kind: Any) -> None:
    reply = '1. a = FIND_REASON(CTX, "the fire") : Find why'
    model = Reading(lambda request: reply, "openai:gpt-4o")
    pearl = Pearl(model, planned_by="model", domain=domain)
    for question in (QUESTION, "What does the letter mean by a managed retreat?"):
        asyncio.run(pearl.planner.write(question, model, kind=kind, is_routed=False))
    first, second = (request.prompt for request in model.requests)
    known = pearl.material.actions_for(kind)
    for prompt in (first, second):
        # An estimate, too high by half.
        assert pearl.limits.counter.count(prompt) < (4_900 if domain == "generic" else 6_000)
        assert all(action.signature in prompt for action in known.values())
    assert f"\n- {known['FIND_REASON'].signature} : " in first
    common = first.partition("\n\nActions:\n")[0]
    assert f"\n- {known['SPLIT'].signature} : " in common
    assert second.startswith(common)  # the server's cache serves every question


def test_a_plan_may_call_an_action_that_the_prompt_only_names() -> None:
    model = Reading(lambda request: '1. a = FIND(CTX, "a dragon") : Find it', "openai:gpt-4o")
    pearl = Pearl(model, planned_by="model")
    asyncio.run(pearl.plan(QUESTION))
    prompt = model.requests[0].prompt
    named = [
        action.name
        for action in pearl.library.values()
        if action.signature.endswith("(CTX, X)") and f"- {action.signature} : " not in prompt
    ]
    for name in named:
        model = Reading(
            lambda request, name=name: f'1. a = {name}(CTX, "x") : Do it', "openai:gpt-4o"
        )  # type: ignore[misc]
        plan = asyncio.run(Pearl(model, planned_by="model").plan(QUESTION))
        assert calls(plan) == [(name, "CTX", "x")]
    assert named


def test_a_small_model_keeps_less_of_its_window_for_replies() -> None:
    model = Scripted(lambda request: "", window=8_192)
    small, full = (Pearl(model, profile=name).limits for name in ("small", "full"))
    assert (small.reply_tokens, full.reply_tokens) == (512, 2_048)
    assert small.prompt_tokens == 8_192 - 512
    asked = Pearl(model, profile="small", max_output_tokens=900).limits
    assert asked.reply_tokens == 900
