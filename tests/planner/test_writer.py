"""Writing a plan: mends, repairs, budget, and what never leaks."""

from __future__ import annotations

import asyncio

import pytest

from pearl.actions.library import read_library
from pearl.actions.operators import with_operators
from pearl.dsl.binding import parameter_value, with_names
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.decoding.forms import plan_form
from pearl.dsl.nodes import print_plan
from pearl.dsl.parser import parse
from pearl.dsl.signatures import ActionLibrary
from pearl.errors import PlanningError, UsageError
from pearl.llm.backends.openai import OpenAIModel
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.planner.prompt_selection import Shown
from pearl.planner.writer import Rejected, RepairLoop
from pearl.trace import PlanAttempted, Trace
from tests.server import Canned, Server, completion

LIBRARY = read_library(
    "FIND(CTX, X) : Find X\nFIND_REASON(CTX, X) : Find why\nCONCAT(S1, S2, ...) : Join\n", "test"
)
GOOD = 'New actions:\n- None\n\n1. ans = FIND(CTX, "the key") : Find it'


def plan(
    *replies: str,
    question: str = "Where is the key?",
    library: ActionLibrary = LIBRARY,
    **settings: object,
) -> tuple[CheckedPlan, Scripted, Trace]:
    rounds = iter(replies)
    model, trace = Scripted(lambda request: next(rounds)), Trace()
    checked = asyncio.run(
        RepairLoop(question, Shown(library), model, trace=trace, **settings).write()
    )  # type: ignore[arg-type]
    return checked, model, trace


DRUG = {"drug": "warfarin"}
TEMPLATE = "Why was {drug} stopped?"
TAKEN = '1. ans = FIND_REASON(CTX, ["the stopping of", drug]) : Find why'


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ('1. ans = FIND_REASON(CTX, "the end of Warfarin") : Find why', "parameter-value"),
        (
            '1. ans = FIND_REASON(CTX, ["the end", drug]) : Find why warfarin ended',
            "parameter-value",
        ),
        ('1. ans = FIND_REASON(CTX, "the end") : Find why', "unused-parameter"),
        ("1. ans = FIND_REASON(drug, drug) : Find why", "misplaced-parameter"),
        (
            '1. drug = FIND(CTX, "x") : Find it\n2. ans = FIND_REASON(CTX, drug) : Find why',
            "duplicate-name",
        ),
    ],
)
def test_a_plan_takes_the_parameter_and_not_its_value(wrong: str, why: str) -> None:
    checked, model, trace = plan(wrong, TAKEN, question=TEMPLATE, parameters=DRUG)
    assert f"[{why}]" in attempts(trace)[0].diagnostics[0]
    head = f"Question: {TEMPLATE}\n\nParameters:\n- drug : the drug of the question\n\n"
    assert str(checked) == f"{head}New actions:\n- None\n\n{TAKEN}"
    assert "arfarin" not in model.requests[0].prompt
    assert "- drug : the drug of the question" in model.requests[0].prompt
    assert "Parameters" not in plan(GOOD)[1].requests[0].prompt


def test_a_parameter_in_a_string_is_mended_but_in_the_question() -> None:
    reply = (
        '1. a = FIND(CTX, "when {drug} was stopped") : Find when\n'
        '2. ans = FIND_REASON(a, "Why was {drug} stopped?") : Find why'
    )
    checked, model, _ = plan(reply, question=TEMPLATE, parameters=DRUG)
    assert len(model.requests) == 1
    assert '["when drug was stopped", "drug:", drug]' in str(checked)
    assert str(checked).endswith(reply.partition("\n")[2])


def test_a_plan_in_json_takes_the_parameter_as_an_output() -> None:
    arguments = {"CTX": {"output": "CTX"}, "X": ["the stopping of", {"output": "drug"}]}
    step = {"output": "ans", "action": "FIND_REASON", "arguments": arguments, "purpose": "Find why"}
    text = plan_form(LIBRARY).text_of({"new_actions": [], "steps": [step]})
    checked, model, _ = plan(text, question=TEMPLATE, parameters=DRUG)
    assert len(model.requests) == 1
    assert str(checked).endswith(TAKEN)


@pytest.mark.parametrize(
    ("question", "values", "planned"),
    [
        ("Why was Warfarin stopped?", DRUG, TEMPLATE),
        ("Was warfarin, not warfarins, stopped?", DRUG, "Was {drug}, not warfarins, stopped?"),
        ("Is aspirin 100 aspirin?", {"a": "aspirin", "b": "aspirin 100"}, "Is {b} {a}?"),
        ("Why was {drug} stopped?", {"x": "drug"}, "Why was {{x}} stopped?"),
        ("Why was it stopped?", DRUG, "does not contain the value of the parameter 'drug'"),
        ("Why was a a stopped?", {"x": "a", "y": "a"}, "does not contain the value of the parameter 'y'"),
        ("Why was it stopped?", {"CTX": "it"}, "'CTX' cannot name a parameter"),
        ("Why was it stopped?", {"v1": "it"}, "'v1' cannot name a parameter"),
        ("Why was it stopped?", {"a b": "it"}, "'a b' cannot name a parameter"),
        ("Why was it stopped?", {"a": " "}, "'a' is empty"),
        ("Why was it stopped?", {"a": "it" * 501}, "'a' has 1,002 characters, 1,000 are allowed"),
    ],
)  # fmt: skip
def test_values_of_a_question_become_names(
    question: str, values: dict[str, str], planned: str
) -> None:
    def named() -> str:
        given = {name: parameter_value(name, value) for name, value in values.items()}
        return with_names(question, given)

    if "?" in planned:
        assert named() == planned
    else:
        with pytest.raises(UsageError, match=planned):
            named()


def attempts(trace: Trace) -> list[PlanAttempted]:
    return [event for event in trace if isinstance(event, PlanAttempted)]


def test_an_output_in_a_string_is_repaired_and_text_of_the_question_is_not() -> None:
    steps = '1. who = FIND(CTX, "the owner") : Find\n2. ans = FIND_REASON(CTX, "{}") : Find why'
    wrong, right = (
        steps.format("why the owner in step 1 left"),
        steps.replace('"{}"', '["why", who]'),
    )
    checked, model, _ = plan(wrong, right)
    assert "[reference-in-string]" in model.requests[1].prompt
    assert checked.plan.steps == parse(right).steps
    assert len(plan(steps.format("why {who} left"))[1].requests) == 1  # mended without a call
    assert (
        len(
            plan(steps.format("why {who} left"), question="Who wrote 'why {who} left'?")[1].requests
        )
        == 1
    )


def test_every_leniency_is_noted() -> None:
    checked, model, trace = plan("Sure!\n```\n1) ans = FIND(CTX, “the key”)\n```\nGood luck.")
    assert [step.output for step in checked.plan.steps] == ["ans"]
    assert len(model.requests) == 1
    notes = "\n".join(attempts(trace)[0].notes)
    for lapse in ("fence", "smart quotes", "no explanation", "not part of a plan"):
        assert lapse in notes


def test_one_repair_round_sees_every_problem_at_once() -> None:
    broken = (
        "1. a = EXPLORE(CTX) : nothing like it is known\n2. b = FIND(CTX) : arity\n"
        '3. c = FIND(CTX, "x : unclosed\n4. d = CONCAT(zebra) : undefined'
    )
    _, model, trace = plan(broken, GOOD)
    assert len(model.requests) == 2
    told = model.requests[1].messages[-1].content
    for code in ("unknown-action", "wrong-arity", "syntax", "undefined-name"):
        assert f"[{code}]" in told
    assert model.requests[1].messages[2].content == broken
    assert [bool(attempt.diagnostics) for attempt in attempts(trace)] == [True, False]


def test_when_the_budget_is_spent_all_attempts_come_back() -> None:
    with pytest.raises(PlanningError, match="no valid plan after 3 calls") as caught:
        plan("I cannot", "1. a = EXPLORE(CTX) : x", "no", max_repairs=2)
    assert [attempt.reply for attempt in caught.value.attempts] == [
        "I cannot",
        "1. a = EXPLORE(CTX) : x",
        "no",
    ]
    assert all(attempt.diagnostics for attempt in caught.value.attempts)


def test_a_plan_that_reads_no_document_goes_back() -> None:
    """Seen of a small model under its grammar: a sum of made-up numbers, and an answer."""
    blind = 'New actions:\n- None\n\n1. ans = CONCAT("1", "2") : Add them'
    checked, model, trace = plan(blind, GOOD)
    assert checked.outputs == ("ans",)
    assert "no step reads the document [unread-document]" in model.requests[1].prompt
    assert attempts(trace)[0].diagnostics
    with pytest.raises(PlanningError, match="unread-document"):
        plan(blind, max_repairs=0)


def test_a_plan_that_makes_a_call_twice_goes_back() -> None:
    """Seen of a model of 1.5 billion parameters: the same two steps until the limit of steps."""
    looping = GOOD + "".join(f'\n{i}. v{i} = FIND(CTX, "a lock") : Find it' for i in range(2, 5))
    checked, model, _ = plan(looping, GOOD)
    assert checked.outputs == ("ans",)
    assert "step 3 is the same call as step 2 [repeated-step]" in model.requests[1].prompt
    with pytest.raises(PlanningError, match=r"after 2 calls; .*repeated-step"):
        plan(looping, looping, max_repairs=4)  # once more would repeat the request


COUNTED = 'New actions:\n- None\n\n1. v = RETRIEVE(CTX, "x", 9) : Find\n2. n = COUNT(v) : Count'


def test_a_plan_that_counts_what_a_search_gave_goes_back_once() -> None:
    searching = with_operators(LIBRARY)
    checked, model, _ = plan(COUNTED, GOOD, library=searching)
    assert "not from all passages [counts-best]" in model.requests[1].prompt
    assert str(checked) == str(plan(GOOD, library=searching)[0])
    for replies in ([COUNTED, COUNTED], [COUNTED, "no", "no"], [COUNTED]):
        kept, model, _ = plan(*replies, library=searching, max_repairs=len(replies) - 1)
        assert [step.action for step in kept.plan.steps] == ["RETRIEVE", "COUNT"]
        assert len(model.requests) == len(replies)


@pytest.mark.parametrize(
    ("question", "words"), [("  \n ", "empty"), ("half \ud800", "half a character at position 6")]
)
def test_invalid_questions_are_refused(question: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        asyncio.run(Pearl().plan(question))


def test_too_long_a_plan_goes_back() -> None:
    long = "\n".join(f'{i}. s{i} = FIND(CTX, "x") : f' for i in range(1, 5))
    with pytest.raises(PlanningError, match="too-many-steps"):
        plan(long, max_repairs=0, max_steps=3)


def test_a_plan_that_was_rejected_is_shown_in_every_round() -> None:
    tried = '1. a = FIND(CTX, "the wrong place") : f'
    _, model, _ = plan("no plan", GOOD, rejected=[Rejected(tried)])
    assert [request.task.n_rejected for request in model.requests] == [1, 1]  # type: ignore[union-attr]
    assert all(tried in request.prompt for request in model.requests)
    _, model, _ = plan(GOOD)
    assert "the wrong place" not in model.requests[0].prompt
    assert model.requests[0].task.n_rejected == 0  # type: ignore[union-attr]


def test_an_endless_reply_ends_the_attempts(openai_server: Server) -> None:
    broken = completion("1. a = FIND_TREASURE(CTX) : x")
    endless = completion("Plan:\n1. a\n" * 300, finish_reason="length")
    openai_server.next(Canned(broken), Canned(endless))
    trace = Trace()

    async def plan() -> None:
        model = OpenAIModel(Endpoint(openai_server.url, "test-model", ""), 10.0, 128_000)
        async with Pearl(model, library=LIBRARY, constrain="off") as pearl:
            await pearl.plan("Why?", trace=trace)

    with pytest.raises(PlanningError, match=r"after 2 calls; .* repeats itself") as caught:
        asyncio.run(plan())
    assert "`pearl ask` answers without a plan" in str(caught.value)
    assert len(caught.value.attempts) == 1
    assert len(openai_server.requests) == 2
    tries = [event for event in trace if event.event == "plan_attempted"]
    assert [bool(event.diagnostics) for event in tries] == [True, True]
    assert tries[1].reply.startswith("Plan:")
    assert trace.usage.n_output_tokens == 6 + 900


def test_every_repair_begins_with_the_first_prompt_and_shows_the_last_attempt_alone() -> None:
    bad, worse = "1. a = EXPLORE(CTX) : x", "1. a = WANDER(CTX) : x"
    _, model, _ = plan(bad, worse, GOOD, max_repairs=2)
    first, second, third = (request.messages for request in model.requests)
    assert second[: len(first)] == first
    assert third[: len(first)] == first
    assert (second[len(first)].content, third[len(first)].content) == (bad, worse)
    assert len(second) == len(third) == len(first) + 2


OTHER = GOOD.replace("the key", "the colour")


@pytest.mark.parametrize(
    "below",
    [
        "Question: What colour is it?\n\n", "**Question:** What colour is it?\n", "### Question 2\nWhat colour?\n\n",
        "User: What colour is it?\n\nAssistant: ", "Human: And the colour?\n\n", "Q: Which colour?\nA:\n", "<|im_start|>user\n",
        "User: What colour is it?\nAssistant:\n",
    ],
)  # fmt: skip
def test_a_question_that_the_model_invents_is_left_out_with_its_plan(below: str) -> None:
    checked, model, _ = plan(f"{GOOD}\n\n{below}{OTHER}")
    assert checked.plan.steps == parse(GOOD).steps
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        f"```\n{GOOD}\n```\nBetter:\n```\n{OTHER}",
        f"```\n{GOOD}\n```\n\n```plan\n{OTHER[:-14]}",
        f"{GOOD}\n\n{GOOD}",
        f"Use this plan:\n{GOOD}\n\nThis plan is not wrong.",
        f"```\n{GOOD}\n```\n\nHow it works:\n\n1. **ans** = `FIND(CTX, 'the key')` finds the key.",
        f"Question: where's the key\n\n{GOOD}",
    ],
)
def test_the_intended_plan_of_several_is_taken(reply: str) -> None:
    checked, model, _ = plan(reply)
    assert checked.plan.steps == parse(GOOD).steps
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (f"Do not use this plan:\n{OTHER}", "not to use this plan"),
        (f"{OTHER}\n\nThis plan is wrong.", "not to use this plan"),
        (f"{OTHER}\n\n{GOOD}", "several plans"),
        (f"```\n{GOOD}\n```\nActually:\n{OTHER[21:]}", "several plans"),
        ('1. a = FIND(CTX, "x") : F\n\n1. b = FIND(CTX, "y") : F', "several plans"),
        (f"{GOOD}\n\nQuestion: Where is the key?\n\n{OTHER}", "several plans"),
        (f"{OTHER}\n\nNo, wait.\n\n{GOOD}", "several plans"),
        (f"Question: Who sold the boat?\n\n{OTHER}\n\nQuestion: Where is the key?\n\n{GOOD}", "another question"),
    ],
)  # fmt: skip
def test_a_reply_with_ambiguous_plans_is_repaired(reply: str, why: str) -> None:
    checked, model, _ = plan(reply, GOOD)
    assert why in model.requests[1].messages[-1].content
    assert checked.plan.steps == parse(GOOD).steps


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        ('1. a = FIND(CTX, "x") : F', 'a = FIND(CTX, "x") : F'),
        (
            '1. a = FIND(CTX, "x") : F\n2. b = FIND(CTX, "y") : F',
            'answer = ANSWER("Where is the key?", a, b) : Answer the question',
        ),
        (
            '1. a = FIND(CTX, "x") : F\n2. b = FIND(CTX, a) : F\n3. c = ANSWER("Where?", a, b) : A',
            'c = ANSWER("Where?", a, b) : A',
        ),
        (  # what the plan's own ANSWER leaves out is in the answer, too
            '1. a = FIND(CTX, "x") : F\n2. b = FIND(CTX, "y") : F\n3. answer = ANSWER("Where?", a) : A',
            'answer = ANSWER("Where is the key?", a, b) : Answer the question',
        ),
    ],
)
def test_several_results_are_composed(steps: str, last: str) -> None:
    model = Scripted(lambda request: steps)
    model.reads_prompts = True
    checked = asyncio.run(Pearl(model, library=LIBRARY).plan("Where is the key?"))
    assert print_plan(checked.plan).splitlines()[-1].partition(". ")[2] == last
