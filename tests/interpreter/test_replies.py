"""What the interpreter makes of replies: nothing found, undecided, asked again, held to a form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import pytest

from pearl.actions.library import read_library
from pearl.documents.document import Document
from pearl.llm import ActionTask, Constrains, Message, Request
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.trace import ConstraintRefused, ModelCalled, StepFinished, Trace
from tests.models import Acting, RandomWriter

LIBRARY = read_library(
    """\
FIND(CTX, X) : Find X in CTX
LIST_ALL(CTX, X) -> List : List every X of CTX
DOSE(CTX) -> Number : The dose
DID(CTX, X) -> Bool : Whether X
MERGE(A, B) : Merge A and B
CONCAT(S1, S2, ...) : Join
COUNT(ITEMS) : Count
FIRST(ITEMS) : The first
MAX(NUMBERS) : The largest
SUM(NUMBERS) : Add
RELATION(A, B) : Compare
""",
    "test",
)
FARM = Document(
    "Ada keeps bees. Ben keeps goats. They trade honey for milk. Eve takes 30 mg.", "farm.txt"
)
Status = Literal["answered", "degraded", "nothing_found", "undecided"]


def plan(*steps: str) -> str:
    return "\n".join(f"{i}. {step} : step {i}" for i, step in enumerate(steps, start=1))


def by_output(replies: dict[str, str]) -> Callable[[Request], str]:
    def reply(request: Request) -> str:
        assert isinstance(request.task, ActionTask)
        return replies[request.task.output]

    return reply


@pytest.mark.parametrize(
    ("steps", "replies", "status", "answer"),
    [
        (['a = FIND(CTX, "x")'], {"a": "bees\n> Ada keeps bees."}, "answered", "bees"),
        (['a = FIND(CTX, "x")'], {"a": "> Ada keeps bees."}, "answered", "Ada keeps bees."),
        (['a = FIND(CTX, "x")'], {"a": "Nothing found."}, "nothing_found", "Nothing found."),
        (['a = LIST_ALL(CTX, "x")'], {"a": "None"}, "nothing_found", "Nothing found."),
        (["a = DOSE(CTX)"], {"a": "30 mg\n> Eve takes 30 mg."}, "answered", "30 mg"),
        (["a = DOSE(CTX)"], {"a": "30 mg\n> Ada keeps bees."}, "undecided", None),
        (["a = DOSE(CTX)"], {"a": "30 mg\n> a dose of 30 mg"}, "degraded", "30 mg"),
        (["a = DOSE(CTX)"], {"a": '{"value": "30 mg", "quotes": ["Eve takes 30 mg."]}'}, "answered", "30 mg"),
        (["a = DOSE(CTX)"], {"a": '{"value": "30 mg", "quotes": ["a dose of 30 mg"]}'}, "degraded", "30 mg"),
        (["a = DOSE(CTX)"], {"a": '{"value": null, "quotes": []}'}, "nothing_found", "Nothing found."),
        (["a = DOSE(CTX)"], {"a": "The dose is 30 mg"}, "undecided", None),
        (["a = DOSE(CTX)"], {"a": "The dose is 30 mg or 40 mg"}, "undecided", None),
        (['a = FIND(CTX, "x")', "n = SUM(a)"], {"a": '{"entries": ["138.0", "$124.0"]}'}, "answered", "262"),
        (['a = FIND(CTX, "x")', "n = SUM(a)"], {"a": "- 30 mg\n- a few"}, "undecided", None),
        (['a = FIND(CTX, "x")', "n = SUM(a)"], {"a": "- $5\n- <20"}, "undecided", None),
        (['a = FIND(CTX, "x")', "n = RELATION(a, 3)"], {"a": "5"}, "answered", "more"),
        (['a = DID(CTX, "x")'], {"a": "Yes."}, "answered", "yes"),
        (['a = DID(CTX, "x")'], {"a": "Perhaps."}, "undecided", None),
        (['a = FIND(CTX, "x")', "f = FIRST(a)"], {"a": "none"}, "nothing_found", "Nothing found."),
        (['a = FIND(CTX, "x")', "m = MAX(a)"], {"a": "none"}, "nothing_found", "Nothing found."),
        (['a = FIND(CTX, "x")', "f = FIRST(a)", "n = COUNT(f)"], {"a": "none"}, "answered", "0"),
        (['a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', "c = CONCAT(a, b)"],
         {"a": "bees\n> q", "b": "Nothing found: no y."}, "degraded", "bees\n\nNothing found: no y."),
        (['a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', "c = CONCAT(a, b)"],
         {"a": "Nothing found.", "b": "Nothing found: no y."}, "nothing_found", "Nothing found.\n\nNothing found: no y."),
        (['a = FIND(CTX, "x")', 'c = CONCAT("Bees:", a)'], {"a": "Nothing found."}, "nothing_found", None),
        (['a = FIND(CTX, "x")', "c = CONCAT(CTX, a)"], {"a": "Nothing found."}, "degraded", None),
        (['a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', "n = COUNT([a, b])"],
         {"a": "- bees", "b": "Nothing found: no y."}, "answered", "1"),
        (['a = LIST_ALL(CTX, "x")', 'n = COUNT([a, "cow"])'], {"a": "- bees\n- goats"}, "answered", "3"),
        (['a = FIND(CTX, "x")', 'n = COUNT(["cow", a])'], {"a": "- bees\n- goats"}, "answered", "3"),
        (['a = FIND(CTX, "x")', 'n = COUNT(["cow", a])'], {"a": "There is no mention of it"}, "undecided", None),
        (['a = FIND(CTX, "x")', 'n = SUM([a, 3])'], {"a": "He paid 5 in May, not in June"}, "undecided", None),
        (['a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', "c = CONCAT(a, b)", "n = COUNT(c)"],
         {"a": '{"entries": [{"entry": "a dog"}, {"entry": "a cat"}]}', "b": "Nothing found."}, "answered", "2"),
        (['a = FIND(CTX, "x")', "n = COUNT(a)"], {"a": "- goats"}, "answered", "1"),
        (['a = FIND(CTX, "x")', "n = COUNT(a)"], {"a": "a tractor"}, "undecided", None),
        (['a = FIND(CTX, "x")', "n = COUNT(a)", "c = CONCAT(n, a)"], {"a": "Some bees."}, "undecided", None),
        (['a = FIND(CTX, "x")', "n = COUNT(a)", "m = MERGE(n, a)"],
         {"a": "Some bees.", "m": "There are 3."}, "undecided", None),
    ],
)  # fmt: skip
def test_what_an_answer_is(
    steps: list[str], replies: dict[str, str], status: Status, answer: str | None
) -> None:
    pearl = Pearl(Scripted(by_output(replies)), library=LIBRARY)
    done = asyncio.run(pearl.execute(plan(*steps), FARM))
    assert done.status == status
    assert answer is None or done.text == answer
    if status == "undecided":
        assert done.text.partition("\n")[0].removeprefix("Step 1: ").startswith("undecided")


def test_the_trace_says_what_is_undecided() -> None:
    trace = Trace()
    pearl = Pearl(Scripted(by_output({"a": "Some bees."})), library=LIBRARY)
    asyncio.run(pearl.execute(plan('a = FIND(CTX, "x")', "n = COUNT(a)"), FARM, trace=trace))
    finished = {event.step: event for event in trace if isinstance(event, StepFinished)}
    assert {name: event.state for name, event in finished.items()} == {
        "a": "undecided", "n": "undecided",
    }  # fmt: skip
    assert finished["a"].n_calls == 2
    assert "after '- '" in finished["a"].value


def test_a_text_that_is_put_together_keeps_what_is_decided() -> None:
    pearl = Pearl(Scripted(by_output({"a": "Some bees."})), library=LIBRARY)
    steps = ('a = FIND(CTX, "x")', "n = COUNT(a)", 'c = CONCAT("Kept:", n)')
    done = asyncio.run(pearl.execute(plan(*steps), FARM))
    assert done.status == "undecided"
    assert done.text.startswith("Kept:\n\nundecided: ")


@pytest.mark.parametrize(
    ("steps", "reply", "reason"),
    [
        (['a = FIND(CTX, "x")', "n = COUNT(a)"], "- bees\nand goats", "an entry after '- '"),
        (['a = FIND(CTX, "x")', "n = COUNT(a)"], "- bees\n- cows", "'cows' may be a remark"),
        (['a = FIND(CTX, "x")', "n = SUM(a)"], '{"entries": ["30 mg", "a few"]}', "no number in 'a few'"),
        (['a = FIND(CTX, "x")', "n = SUM(a)"], '{"entries": ["30 mg", "$5"]}', "different units"),
        (['a = DID(CTX, "x")'], "Yes, but\n\nlate" + "x" * 999, "nothing else in 'Yes, but late"),
        (['a = FIND(CTX, "x")'], '{"answer": "be', "its JSON is broken"),
    ],
)  # fmt: skip
def test_the_reason_is_sent_when_it_is_asked_again(
    steps: list[str], reply: str, reason: str
) -> None:
    model = Scripted(lambda request: reply)
    asyncio.run(Pearl(model, library=LIBRARY).execute(plan(*steps), FARM))
    first, again = model.requests
    assert "Reply with one JSON object" in first.prompt
    assert again.messages[:-1] == (*first.messages, Message("assistant", reply))
    told = again.messages[-1].content
    assert reason in told
    assert f"<input>\n{told.splitlines()[2]}\n</input>" in told
    assert "late" not in told.splitlines()
    assert "x" * 81 not in told


def test_it_is_not_asked_again_where_that_does_not_fit() -> None:
    model = Scripted(lambda request: "Some bees, " * 60)
    pearl = Pearl(model, library=LIBRARY, window=700, max_output_tokens=200)
    done = asyncio.run(pearl.execute(plan('a = FIND(CTX, "x")', "n = COUNT(a)"), FARM))
    assert done.status == "undecided"
    assert len(model.requests) == 1


def test_parts_of_a_document_are_merged_before_they_are_read() -> None:
    def reply(request: Request) -> str:
        if request.messages[-2].role == "assistant":
            return '{"entries": ["bees", "goats"]}'
        return "Bees and goats." if getattr(request.task, "parts", None) else "Bees."

    trace = Trace()
    model = Scripted(reply)
    pearl = Pearl(model, library=LIBRARY, window=1_200, max_output_tokens=80)
    long = Document("Ada keeps bees and Ben keeps goats. " * 300)
    steps = plan('a = FIND(CTX, "x")', "n = COUNT(a)")
    done = asyncio.run(pearl.execute(steps, long, trace=trace))
    assert done.text == "2"
    purposes = [event.purpose for event in trace if isinstance(event, ModelCalled)]
    assert purposes.count("again") == 1
    assert purposes[-2:] == ["combine", "again"]
    assert done.steps[0].n_calls == len(purposes) == len(model.requests)


# ---------------------------------------------------------------------------------------------
# Held to the form

STEPS = plan('a = FIND(CTX, "x")', "n = COUNT(a)", 'b = FIND(CTX, "y")')


def asked(model: RandomWriter) -> tuple[list[str | None], Trace]:
    """The constraint of every request, by the order in which they were sent."""
    trace = Trace()
    pearl = Pearl(model, library=LIBRARY)
    asyncio.run(pearl.execute(STEPS, FARM, trace=trace))
    names = [request.constraint.name if request.constraint else None for request in model.requests]
    return sorted(names, key=str), trace


def test_lists_and_texts_are_held_to_their_forms() -> None:
    names, trace = asked(RandomWriter(["json"]))
    assert set(names) == {"reply-text", "reply-list"}
    assert not any(isinstance(event, ConstraintRefused) for event in trace)
    finished = {event.step: event for event in trace if isinstance(event, StepFinished)}
    assert finished["a"].state in ("found", "nothing", "undecided")


def test_a_server_that_refuses_is_asked_without() -> None:
    model = RandomWriter(["json"], refuses=("reply-list",))
    _, trace = asked(model)
    refused = [event for event in trace if isinstance(event, ConstraintRefused)]
    assert [event.constraint for event in refused] == ["json"], "once: it is remembered"


def test_a_server_that_ignores_it_is_found_out() -> None:
    _, trace = asked(RandomWriter(["json"], ignores=True))
    refused = [event for event in trace if isinstance(event, ConstraintRefused)]
    assert [event.constraint for event in refused] == ["json"]
    assert "violates the grammar" in refused[0].reason


def test_json_is_asked_for_in_words_and_as_a_schema() -> None:
    async def act(request: Request) -> str:
        assert request.constraint is not None
        assert request.constraint.json_form is not None
        key = next(iter(request.constraint.json_form.schema["properties"]))
        assert f'"{key}"' in request.messages[-1].content
        said: object = {"entries": ["bees"], "quotes": []}
        if key == "answer":
            said = {"answer": None, "quote": []}
        return request.constraint.json_form.text_of(said)

    model = Acting(act)
    model.constrains = Constrains(frozenset({"json"}))  # type: ignore[misc]
    done = asyncio.run(Pearl(model, library=LIBRARY).execute(STEPS, FARM))
    assert done.steps[1].value == 1
