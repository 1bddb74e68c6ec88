"""Candidate plans of a weak model, and the choice among them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pearl import Pearl
from pearl.documents.document import Document
from pearl.dsl.checker import CheckedPlan, compile_plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.errors import ModelError, PlanningError
from pearl.llm import Constrains, Request
from pearl.llm.client import Client, ClientSettings
from pearl.llm.messages import write_numbers
from pearl.planner.candidates import MARGIN, NULL_QUESTIONS, Candidate, by_example, by_rule, choose
from pearl.planner.examples import Example
from pearl.planner.writer import Rejected
from pearl.runs.executors import Task
from pearl.runs.forecast import CHOOSING, forecast
from pearl.trace import PlanChosen, Trace
from tests.models import Reading

CONTEXT = Parameter("CTX", ValueType.CONTEXT)
TEXT = Parameter("X")
NAMES = ("FIND", "FIND_REASON", "IDENTIFY", "SUMMARIZE")
LIBRARY = ActionLibrary(
    "mine", [Action(name, (CONTEXT, TEXT), f"{name} of X in CTX") for name in NAMES]
)
QUESTION = "Why did Ada sell the mill?"


def plan(action: str, text: str = "the mill") -> CheckedPlan:
    return compile_plan(f'1. a = {action}(CTX, "{text}") : Find it', LIBRARY).asking(QUESTION)


def example(question: str, *steps: str) -> Example:
    return Example(question, parse("\n".join(f"{i}. {s}" for i, s in enumerate(steps, start=1))))


class Rating(Reading):
    """Rates actions by numbers: likelihood under the question, and under any null question."""

    constrains = Constrains(likelihoods=True)

    def __init__(self, asked: dict[str, float], null: dict[str, float], plan: str = "") -> None:
        self.is_null = lambda request: any(
            f"Question: {each}\nAction:" in request.prompt for each in NULL_QUESTIONS
        )

        def reply(request: Request) -> str:
            if not request.candidates:
                return plan
            numbers = null if self.is_null(request) else asked
            return write_numbers([numbers[each] for each in request.candidates])

        super().__init__(reply)


def chosen(
    model: Reading, *candidates: tuple[str, CheckedPlan], note: str = ""
) -> tuple[str, PlanChosen]:
    given = [Candidate(by, each) for by, each in candidates]  # type: ignore[arg-type]
    best, event = asyncio.run(choose(QUESTION, given, (), model, note))
    return best.plan.steps[0].action, event


EVEN = dict.fromkeys(NAMES, -5.0)
THREE = (("rule", plan("FIND")), ("example", plan("IDENTIFY")), ("model", plan("FIND_REASON")))


@pytest.mark.parametrize(
    ("asked", "null", "wanted", "why"),
    [
        # Likeliest by far, but no likelier than under questions that say nothing.
        ({"FIND_REASON": -0.1}, {"FIND_REASON": -0.1}, "FIND", "likelihood"),
        # Unlikely, and far less unlikely under this question than under the others.
        ({"FIND_REASON": -9.0}, {"FIND_REASON": -9.1 - MARGIN}, "FIND_REASON", "likelihood"),
        ({"FIND_REASON": -9.0}, {"FIND_REASON": -8.9 - MARGIN}, "FIND", "likelihood"),
        ({"IDENTIFY": -1.0}, {}, "IDENTIFY", "likelihood"),
    ],
)
def test_the_action_ahead_of_its_habit_wins_by_a_margin(
    asked: dict[str, float], null: dict[str, float], wanted: str, why: str
) -> None:
    action, event = chosen(Rating({**EVEN, **asked}, {**EVEN, **null}), *THREE)
    assert (action, event.why, event.n_calls) == (wanted, why, 1 + len(NULL_QUESTIONS))
    assert [each.pmi is None for each in event.candidates] == [False] * 3


def test_two_candidates_that_agree_win_without_a_call() -> None:
    model = Rating(EVEN, EVEN)
    action, event = chosen(
        model, ("rule", plan("FIND")), ("example", plan("IDENTIFY")), ("model", plan("IDENTIFY"))
    )
    assert (action, event.by, event.why, event.n_calls) == ("IDENTIFY", "example", "agreement", 0)
    assert [each.by for each in event.candidates] == [("rule",), ("example", "model")]
    assert model.requests == []


def test_equal_actions_are_not_rated() -> None:
    model = Rating(EVEN, EVEN)
    _, event = chosen(model, ("rule", plan("FIND")), ("model", plan("FIND", "Ada")))
    assert (event.by, event.why, model.requests) == ("rule", "order", [])


def test_the_plan_of_the_rules_stands_without_likelihoods() -> None:
    model = Reading(lambda request: "-1.0 -2.0")
    action, event = chosen(model, *THREE)
    assert (action, event.why, model.requests) == ("FIND", "order", [])


def test_the_plan_of_the_rules_stands_if_likelihoods_are_unreadable() -> None:
    model = Rating(EVEN, EVEN)
    model._reply = lambda request: "no numbers"
    action, event = chosen(model, *THREE)
    assert (action, event.why) == ("FIND", "order")
    assert "does not report likelihoods" in event.note


# ---------------------------------------------------------------------------------------------
# By example


def adapted(question: str, *examples: Example) -> str | None:
    found = by_example(question, examples, LIBRARY, 10)
    return None if found is None else "\n".join(str(found).splitlines()[-len(found.plan.steps) :])


WHO_AND_WHY = example(
    "Who set up the seed bank, and why?",
    'founder = IDENTIFY(CTX, "who set up the seed bank") : Who set up the seed bank',
    'why = FIND_REASON(CTX, "the seed bank") : Why',
)


def test_strings_of_an_example_become_those_of_the_question() -> None:
    one = example("Why did Tom leave?", 'tom = FIND_REASON(CTX, "Tom leave") : Why Tom left')
    assert adapted("Why did Ada sell the mill?", one) == (
        '1. v1 = FIND_REASON(CTX, "Why did Ada sell the mill?") : FIND_REASON of X in CTX'
    )
    text = adapted("Who bought the boat, and why did the captain sell it?", WHO_AND_WHY)
    assert text is not None
    assert "seed" not in text
    assert "founder" not in text
    assert [line.split(" = ")[1].split("(")[0] for line in text.splitlines()] == [
        "IDENTIFY",
        "FIND_REASON",
    ]


@pytest.mark.parametrize(
    ("question", "one"),
    [
        ("Why did Ada leave?", WHO_AND_WHY),
        ("Who sold the mill?", example("Why leave?", 'a = FIND_REASON(CTX, "leave") : It')),
        (
            "Why did Ada leave?",  # two strings for one part
            example("Why leave?", 'a = FIND(CTX, "leave") : It', 'b = FIND(CTX, "Why leave") : It'),
        ),
        ("Why did Ada leave?", example("Why leave?", 'a = FIND(CTX, "the weather in May") : It')),
        ("Why did Ada leave?", example("Why leave?", 'a = FIND(CTX, ["leave"]) : It')),
        (
            "Why did Ada leave?",
            example("Why leave?", 'a = FIND(CTX, "leave") : It', 'b = NEVER(CTX, "leave") : It'),
        ),
    ],
)
def test_an_example_whose_strings_cannot_be_replaced_is_no_candidate(
    question: str, one: Example
) -> None:
    known = one.plan.steps[-1].action in LIBRARY
    assert (adapted(question, one) if known else None) is None


@pytest.mark.parametrize("bank", ["quality", "medical", "generic", "finance"])
def test_adapted_plans_of_the_banks_are_valid(bank: str) -> None:
    pearl = Pearl("extractive", examples=bank)
    shown = pearl.material.actions_for()
    examples = pearl.material.examples_for("x")
    for each in examples:
        others = [other for other in examples if other is not each]
        found = by_example(each.question, others, shown, 30)
        if found is None:
            continue
        calls = [(step.action, step.arguments) for step in found.plan.steps]
        assert len(set(calls)) == len(calls)
        assert found.plan.question == each.question


# ---------------------------------------------------------------------------------------------
# The planner


UNLIKE = "What does Ada feel about the mill?"
"""The question of no example has this form."""


def planned(
    model: Reading, question: str = UNLIKE, **settings: object
) -> tuple[CheckedPlan, list[PlanChosen]]:
    pearl = Pearl(
        Client(ClientSettings(model)), library=LIBRARY, examples="generic",
        **{"profile": "small", **settings},
    )  # fmt: skip
    trace = Trace()
    found = asyncio.run(pearl.plan(question, trace=trace))
    assert trace.n_calls == len(model.requests)
    return found, [event for event in trace if isinstance(event, PlanChosen)]


def writing(text: Callable[[Request], str] | str) -> Reading:
    return Reading((lambda request: text) if isinstance(text, str) else text)


OWN = 'New actions:\n- None\n\n1. a = SUMMARIZE(CTX, "Ada") : Sum it up'


def test_a_weak_model_plans_beside_the_rules() -> None:
    model = Rating(EVEN, {**EVEN, "SUMMARIZE": -20.0}, OWN)
    found, (event,) = planned(model)
    assert (found.plan.steps[0].action, event.by, event.why) == ("SUMMARIZE", "model", "likelihood")
    model = Rating(EVEN, EVEN, OWN)
    found, (event,) = planned(model)
    assert (found.plan.steps[0].action, event.by) == ("FIND", "rule")
    assert found.plan.question == UNLIKE


def test_no_model_is_asked_if_the_rules_and_an_example_agree() -> None:
    model = writing(OWN)
    found, (event,) = planned(model, QUESTION)
    assert (found.plan.steps[0].action, event.why) == ("FIND_REASON", "agreement")
    assert [each.by for each in event.candidates] == [("rule", "example")]
    assert model.requests == []


def test_rules_plan_if_a_weak_model_writes_no_plan() -> None:
    found, (event,) = planned(writing("I would rather talk about the weather."), max_repairs=1)
    assert found.plan == by_rule(UNLIKE, LIBRARY, "document", 10).plan
    assert (event.by, event.why) == ("rule", "only")
    assert "the model wrote no plan: no valid plan after 2 calls" in event.note


@pytest.mark.parametrize("kind", ["repetition", "truncated", "empty"])
def test_rules_plan_if_the_reply_of_a_weak_model_fails(kind: str) -> None:
    def fail(request: Request) -> str:
        raise ModelError("it went wrong", kind=kind)  # type: ignore[arg-type]

    pearl = Pearl(
        Client(ClientSettings(writing(fail), attempts=1)), library=LIBRARY, profile="small"
    )
    trace = Trace()
    asyncio.run(pearl.plan(UNLIKE, trace=trace))
    (event,) = (each for each in trace if isinstance(each, PlanChosen))
    assert (event.by, "it went wrong" in event.note) == ("rule", True)


def test_an_unreachable_model_is_an_error() -> None:
    def fail(request: Request) -> str:
        raise ModelError("wrong key", kind="auth")

    with pytest.raises(ModelError, match="wrong key"):
        planned(writing(fail))


def test_strong_models_and_planner_model_write_alone() -> None:
    for settings in ({"profile": "full"}, {"planned_by": "model"}):
        found, events = planned(writing(OWN), **settings)
        assert (found.plan.steps[0].action, events) == ("SUMMARIZE", [])
    with pytest.raises(PlanningError):
        planned(writing("no"), planned_by="model", max_repairs=0)


def test_planner_rule_sends_no_request() -> None:
    model = writing(OWN)
    _, events = planned(model, planned_by="rule")
    assert (events, model.requests) == ([], [])


def test_the_fallback_answers_if_the_rules_give_no_plan() -> None:
    told: dict[str, Any] = {"planned_by": "rule", "max_steps": 1, "library": LIBRARY}
    question, document = "Why did Ada sell the mill, and who bought it?", Document("It leaked.")
    with pytest.raises(PlanningError, match="no valid plan by rule: the plan has 2 steps"):
        asyncio.run(Pearl(**told).ask(question, document))
    answer = asyncio.run(Pearl(**told, fallback="direct").ask(question, document))
    assert answer.method == "direct"


def test_rules_write_another_plan_after_a_rejected_one() -> None:
    pearl = Pearl(planned_by="rule")
    first = asyncio.run(pearl.plan(QUESTION))
    other = asyncio.run(pearl.plan(QUESTION, rejected=[Rejected(str(first), "failed")]))
    assert other.plan.steps != first.plan.steps
    assert other.plan.question == QUESTION


def test_a_forecast_has_no_calls_for_plans_by_rule() -> None:
    pearl = Pearl(Client(ClientSettings(writing(OWN))), library=LIBRARY, planned_by="rule")
    told = forecast(pearl, [Task("a", lambda: Document("It leaked."), QUESTION)])
    assert (told.steps, told.n_unplanned) == ((), 1)


def test_the_forecast_bounds_the_ratings() -> None:
    pearl = Pearl(Client(ClientSettings(Rating(EVEN, EVEN, OWN))), library=LIBRARY, profile="small")
    told = forecast(pearl, [Task("a", lambda: Document("It leaked."), QUESTION)])
    calls = {step.name: step.calls for step in told.steps}
    assert (calls[CHOOSING].least, calls[CHOOSING].most) == (0, 1 + len(NULL_QUESTIONS))
    for settings in ({"profile": "full"}, {"profile": "small", "planned_by": "model"}):
        pearl = Pearl(Client(ClientSettings(Rating(EVEN, EVEN, OWN))), library=LIBRARY, **settings)
        told = forecast(pearl, [Task("a", lambda: Document("It leaked."), QUESTION)])
        assert CHOOSING not in {step.name for step in told.steps}
