"""Parts of a question → a plan by rule: what it calls, what it is left to the planner for, what the trace says."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from pearl.actions.library import load_library, read_library
from pearl.actions.operators import with_operators, without_search
from pearl.dsl.nodes import print_plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import ModelError
from pearl.llm import Constrains, DecomposeTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.planner.routing import (
    MAX_REPAIRS,
    Decomposition,
    Route,
    compose,
    flaws,
    read_decomposition,
    route,
)
from pearl.trace import ConstraintRefused, QuestionRouted, Trace
from tests.root import ROOT

FINANCE = load_library("finance")
CORPUS = with_operators(FINANCE)
ONE = without_search(CORPUS, FINANCE)
QUESTION = "What was the change in sales of Acme from 2011 to 2012?"


def figure(id: str, metric: str, period: str, entity: str = "Acme") -> dict[str, Any]:
    return {"id": id, "kind": "figure", "metric": metric, "entity": entity, "period": period}


def calculation(id: str, operation: str, *operands: str) -> dict[str, Any]:
    return {"id": id, "kind": "calculation", "operation": operation, "operands": list(operands)}


CHANGE = [
    figure("p1", "sales", "2012"),
    figure("p2", "sales", "2011"),
    calculation("p3", "difference", "p1", "p2"),
]


def parts(*said: dict[str, Any], level: int = 3) -> Decomposition:
    return Decomposition.model_validate({"parts": said, "level": level})


def written(question: str, found: Decomposition, library: ActionLibrary = ONE) -> str | None:
    plan = compose(question, found, library)
    return None if plan is None else print_plan(plan.plan).partition("- None\n\n")[2]


def routed(
    *replies: str, library: ActionLibrary = ONE, question: str = QUESTION, **settings: Any
) -> tuple[Route, list[Request], Trace]:
    left = list(replies)
    model, trace = Scripted(lambda request: left.pop(0)), Trace()
    found = asyncio.run(route(question, library, model, trace=trace, **settings))
    return found, model.requests, trace


def told(*said: dict[str, Any], level: int = 3) -> str:
    return json.dumps({"parts": said, "level": level})


def event(trace: Trace) -> QuestionRouted:
    (found,) = [each for each in trace if isinstance(each, QuestionRouted)]
    return found


def test_figures_are_looked_up_and_computed_with() -> None:
    assert written(QUESTION, parts(*CHANGE)) == (
        '1. sales_2012 = FIND_FIGURE(CTX, "sales of Acme", "2012") : Look up sales of Acme for 2012\n'
        '2. sales_2011 = FIND_FIGURE(CTX, "sales of Acme", "2011") : Look up sales of Acme for 2011\n'
        '3. difference = CALCULATE("difference", sales_2012, sales_2011) : '
        "Compute the change in sales of Acme from 2011 to 2012"
    )


def test_the_plan_of_the_documentation_is_what_its_parts_make() -> None:
    page = (ROOT / "docs/finance.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```plan\n(Question: What was the change in freight.*?)\n```", page, re.S)
    question = parse(text).question or ""
    lines = "Norfolk Lines"
    found = parts(
        figure("p1", "freight revenue", "2012", lines),
        figure("p2", "freight revenue", "2011", lines),
        calculation("p3", "subtract", "p1", "p2"),
        figure("p4", "operating margin", "2012", lines),
    )
    assert not any(flaws(found.parts, question))
    plan = compose(question, found, ONE)
    assert plan is not None
    assert print_plan(plan.plan) == text


def test_a_figure_that_two_parts_need_is_looked_up_once() -> None:
    question = "What were the sales of Acme in 2012, and its operating margin in 2012 and 2011?"
    found = parts(
        figure("p1", "operating margin", "2012"), figure("p2", "operating margin", "2012", "ACME")
    )
    both = parts(figure("p1", "operating margin", "2012"), figure("p2", "operating margin", "2012"))
    assert (written(question, both) or "").count("FIND_FIGURE") == 2
    assert (written(question, found) or "").count("FIND_FIGURE") == 4


def test_over_a_corpus_figures_are_looked_up_in_passages() -> None:
    plan = compose("x?", parts(figure("p1", "current ratio", "2012")), CORPUS)
    assert plan is not None
    searches = [step for step in plan.plan.steps if step.action == "RETRIEVE"]
    queries = [item.value for step in searches for item in step.arguments[1].items]  # type: ignore[union-attr]
    assert queries == [
        "Acme current assets 2012", "Acme total current assets 2012",
        "Acme current liabilities 2012", "Acme total current liabilities 2012",
    ]  # fmt: skip
    finds = [step for step in plan.plan.steps if step.action == "FIND_FIGURE"]
    assert [step.arguments[0].name for step in finds] == [step.output for step in searches]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("found", "library"),
    [
        (parts(figure("p1", "sales", "")), ONE),
        (parts(*CHANGE), read_library("FIND_FIGURE(CTX, X, PERIOD) : Find X", "small")),
        (parts(*(figure(f"p{i}", "sales", str(2000 + i)) for i in range(1, 25))), ONE),
    ],
    ids=["no period", "nothing computes", "too long"],
)
def test_parts_without_a_plan_by_rule(found: Decomposition, library: ActionLibrary) -> None:
    assert compose("x?", found, library, max_steps=20) is None


@pytest.mark.parametrize("name", ['"quoted" : and \\', "Ärzte & Söhne", "3M", "a" * 300])
def test_any_name_makes_a_valid_plan(name: str) -> None:
    plan = compose("x?", parts(figure("p1", name, "2012"), figure("p2", name, "2011", name)), ONE)
    assert plan is not None
    first = plan.plan.steps[0]
    assert first.arguments[1].value == f"{name} of Acme"  # type: ignore[union-attr]


# --- asking a model ---------------------------------------------------------------------------


def test_a_plan_by_rule_takes_one_request_and_is_told_to_the_trace() -> None:
    found, requests, trace = routed(told(*CHANGE, level=2))
    assert found.plan is not None
    assert found.plan.plan.question == QUESTION
    assert [type(request.task) for request in requests] == [DecomposeTask]
    assert requests[0].prompt.endswith(f"Question: {QUESTION}")
    said = event(trace)
    assert (said.level, said.by) == (3, "rule")
    assert said.parts == (
        "p1: sales of Acme in 2012", "p2: sales of Acme in 2011", "p3: difference(p1, p2)",
    )  # fmt: skip
    assert said.notes == ("level 2 according to the model; its parts have level 3",)
    assert Trace.from_jsonl("", trace.to_jsonl()).to_jsonl() == trace.to_jsonl()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("I think it is 5.", "one JSON object"),
        ('{"parts": [', "Expecting"),
        ('{"parts":' * 50_000, "nested too deeply"),
        (told(figure("p1", "sales", "2012", "Zenith")), "names no entity 'Zenith'"),
        (told(figure("p1", "sales", "2013")), "names no period '2013'"),
        (told(figure("p1", "net income", "2012")), "names no 'net income'"),
        (told(figure("p1", "sales", "2012")), "no part is about 2011"),
        (told(*CHANGE[:2], calculation("p3", "differ", "p1", "p2")), "did you mean 'difference'"),
        (told(*CHANGE[:2], calculation("p3", "difference", "p1")), "takes 2 operands (first, second)"),
        (told(*CHANGE[:2], calculation("p3", "difference", "p1", "p4")), "'p4' is neither an earlier part"),
        (told(*CHANGE[:2], calculation("p3", "difference", "p3", "p1")), "'p3' is neither an earlier part"),
        (told(*CHANGE[:2], calculation("p3", "ratio", "p1", "365")), "names no number 365"),
        (told(*CHANGE[:2], calculation("p3", "difference", "p1", "p1")), "an operand is repeated"),
        (told(CHANGE[0], {**CHANGE[1], "id": "p1"}), "the id is used twice"),
        (told(*CHANGE, level=7), "level: "),
        (told({"id": "p1", "kind": "python", "code": "1"}), "parts.0: "),
    ],
)  # fmt: skip
def test_flaws_of_the_parts_go_back_to_the_model(wrong: str, why: str) -> None:
    found, requests, _ = routed(wrong, told(*CHANGE))
    assert found.plan is not None
    assert [request.task.round for request in requests] == [0, 1]  # type: ignore[union-attr]
    assert why in requests[1].messages[-1].content
    assert requests[1].messages[-2].content == wrong


@pytest.mark.parametrize(
    ("question", "parts", "why"),
    [
        ("What were sales excluding Brazil in 2012?", [figure("p1", "sales", "2012")], "says 'excluding'"),
        ("What were sales in 2012?", [figure("p1", "!!", "2012")], "has no word"),
        ("What were sales in 2012?",
         [figure("p1", "sales", "2012"), calculation("p2", "ratio", "p1", "2012")], "no number 2012"),
        ("What is $1,234 by sales in 2012?",
         [figure("p1", "sales", "2012"), calculation("p2", "ratio", "234", "p1")], "no number 234"),
        ("What is 5 % of sales in 2012?",
         [figure("p1", "sales", "2012"), calculation("p2", "product", "p1", "5")], "no number 5"),
        ("What were sales in Q3 2012?",
         [figure("p1", "sales", "Q3 2012"), calculation("p2", "product", "p1", "3")], "no number 3"),
        ("What was the change in sales from 2011 to 2012?",
         [*CHANGE[:2], calculation("p3", "difference", "p2", "p1")], "begins with p1"),
    ],
)  # fmt: skip
def test_parts_that_would_answer_another_question_are_refused(
    question: str, parts: list[dict[str, Any]], why: str
) -> None:
    unnamed = [{**part, "entity": ""} if "entity" in part else part for part in parts]
    assert why in " ".join(flaws(read_decomposition(told(*unnamed)).parts, question))


def test_numbers_of_the_question_are_operands() -> None:
    said = [figure("p1", "sales", "2012", ""), calculation("p2", "ratio", "p1", "1234")]
    found = read_decomposition(told(*said))
    assert not any(flaws(found.parts, "What are sales in 2012 by 1,234?"))


def test_nothing_is_computed_from_a_part_that_is_not_a_figure() -> None:
    other = {"id": "p2", "kind": "other", "question": "and in 2011?", "gives": "text"}
    found = parts(CHANGE[0], other, calculation("p3", "difference", "p1", "p2"))
    assert any("p2 is not a figure" in flaw for flaw in flaws(found.parts, QUESTION))


def test_without_readable_parts_the_planner_gets_no_advice() -> None:
    found, requests, trace = routed(*["no"] * (MAX_REPAIRS + 1))
    assert found == Route()
    assert len(requests) == MAX_REPAIRS + 1
    assert event(trace).by == "planner"
    assert event(trace).notes[0].startswith("its parts are not known: the reply has no parts")


@pytest.mark.parametrize(("kind", "is_raised"), [("truncated", False), ("auth", True)])
def test_a_failed_reply_leaves_the_planning_to_the_planner_but_a_failed_server_raises(
    kind: Any, is_raised: bool
) -> None:
    def fail(request: Request) -> str:
        raise ModelError("it broke", kind=kind)

    def run() -> Route:
        return asyncio.run(route(QUESTION, ONE, Scripted(fail)))

    if is_raised:
        with pytest.raises(ModelError, match="it broke"):
            run()
    else:
        assert run() == Route()


def test_a_library_that_cannot_look_up_figures_asks_nothing() -> None:
    found, requests, trace = routed(library=with_operators(load_library("seed")))
    assert (found, requests, list(trace)) == (Route(), [], [])


def test_the_form_of_parts_is_enforced_if_the_server_can() -> None:
    class Held(Scripted):
        constrains = Constrains(frozenset({"json"}))

    model, trace = Held(lambda request: told(*CHANGE)), Trace()
    asyncio.run(route(QUESTION, ONE, model, trace=trace))
    (request,) = model.requests
    assert request.constrain_by == "json"
    assert request.constraint is not None
    assert request.constraint.name == "parts"

    replies = ["not JSON", told(*CHANGE)]
    model, trace = Held(lambda request: replies.pop(0)), Trace()
    found = asyncio.run(route(QUESTION, ONE, model, trace=trace))
    assert found.plan is not None
    assert [request.constraint is None for request in model.requests] == [False, True]
    assert [type(each) for each in trace] == [ConstraintRefused, QuestionRouted]
