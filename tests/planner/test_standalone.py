"""Questions of conversations: a reply is used only if it is the question, made clear."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl, Trace
from pearl.data.turns import Turn
from pearl.errors import ModelError
from pearl.llm import PlanTask, Request, StandaloneTask
from pearl.llm.backends.scripted import Scripted
from pearl.planner.standalone import (
    MAX_LENGTH,
    MAX_TURNS,
    Standalone,
    make_standalone,
    read_reply,
    shown_turns,
)
from pearl.trace import QuestionUnderstood
from tests.models import Acting

TURNS = (Turn("What were net sales in 2008?", "$5.2 million"), Turn("Who signed?", "Ines"))
ASKED = "and in 2009?"
CLEAR = "What were net sales in 2009?"


def made(
    replies: Sequence[str], question: str = ASKED, history: Sequence[Turn] = TURNS
) -> tuple[Standalone, list[Request]]:
    left = list(replies)
    model = Scripted(lambda request: left.pop(0))
    return asyncio.run(make_standalone(question, history, model)), model.requests


def test_the_model_is_shown_the_conversation_and_its_question_is_taken() -> None:
    found, requests = made([CLEAR])
    assert found.question == CLEAR
    assert found.notes == ()
    (request,) = requests
    assert request.task == StandaloneTask(ASKED, TURNS)
    for part in (*(turn.question for turn in TURNS), "$5.2 million", "Ines", ASKED):
        assert part in request.prompt


def test_without_a_conversation_nothing_is_asked() -> None:
    assert made([], history=())[0] == Standalone(ASKED)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("$7.1 million", "no question"),
        ("Net sales in 2009 were $7.1 million.", "no question"),
        ("What were net sales in 2009? $7.1 million.", "no question"),
        ("What were net sales?", "leaves out 2009"),
        ("What were net sales in 2008?", "leaves out 2009"),
        ("What were net sales in 2009, after 7.1 million?", "has 7.1"),
        ("What were net sales in 2009?\nThey were higher.", "more than one line"),
        ("What were net sales in 2009 " + "and " * MAX_LENGTH + "?", "more than"),
        ('""', "blank"),
        ("...", "blank"),
    ],
)
def test_a_reply_that_is_not_the_question_is_requested_once_more(reply: str, problem: str) -> None:
    found, requests = made([reply, CLEAR])
    assert found.question == CLEAR
    assert found.n_calls == 2
    assert problem in requests[1].messages[-1].content
    found, requests = made([reply, reply, CLEAR])
    assert len(requests) == 2
    assert found.question == ASKED
    assert "was not made clear" in found.notes[0]
    assert problem in found.notes[0]


@pytest.mark.parametrize(
    ("reply", "question", "expected"),
    [
        (f"Standalone question: {CLEAR}", ASKED, CLEAR),
        (f"“{CLEAR}”", ASKED, CLEAR),
        (f"  {CLEAR}\n", ASKED, CLEAR),
        ('"Who" signed "it"?', "Who did?", '"Who" signed "it"?'),
        ("What were net sales in 2007?", "and the year before?", "What were net sales in 2007?"),
        ("What were net sales in FY09?", "and in 2009?", "What were net sales in FY09?"),
        ("List what Ines signed.", "list them", "List what Ines signed."),
        ("What is 5.20 divided by 2?", "What is that divided by two?", "What is 5.20 divided by 2?"),
        ("Why did Ines sign? (asked with: Who signed)", "Why?",
         "Why did Ines sign? (asked with: Who signed)"),
        ("2009年の売上高は？", "2009年は？", "2009年の売上高は？"),
    ],
)  # fmt: skip
def test_what_is_a_question_is_taken(reply: str, question: str, expected: str) -> None:
    assert read_reply(reply, question, TURNS) == (expected, "")


def test_a_small_number_does_not_take_the_place_of_one_that_was_asked_for() -> None:
    question = "Who of them paid more than 5 dollars?"
    assert read_reply("Who of the crew paid more than 6 dollars?", question, TURNS)[0] == ""
    assert read_reply("Who of the 3 sailors paid more than 5 dollars?", question, TURNS)[0]


def test_a_reply_is_read_in_time_that_grows_as_it_does() -> None:
    reply = "(" * 90_000 + "x"
    assert read_reply(reply, f"and {'y' * 90_000}", TURNS) == ("", "it is no question")


@given(st.text(), st.text(min_size=1).filter(str.strip))
def test_whatever_a_model_says_the_question_is_one_line_with_its_years(
    reply: str, asked: str
) -> None:
    question = " ".join(f"{asked} 2009?".split())
    found, problem = read_reply(reply, question, TURNS)
    assert bool(found) != bool(problem)
    if found:
        assert "\n" not in found
        assert "2009" in found or "09" in found
        assert len(found) <= len(question) + MAX_LENGTH


def test_a_long_conversation_is_shown_by_its_first_and_its_latest_turns() -> None:
    history = [Turn(f"What about {n}?", f"answer {n} " * 500) for n in range(100)]
    wide, narrow = Scripted(str, window=None), Scripted(str, window=1_000)
    shown = shown_turns(history, wide)
    assert shown[0].question == "What about 0?"
    assert [turn.question for turn in shown[1:]] == [
        f"What about {n}?" for n in range(101 - MAX_TURNS, 100)
    ]
    assert all(len(turn.answer) <= 300 for turn in shown)
    few = shown_turns(history, narrow)
    assert len(few) < len(shown)
    assert (few[0], few[-1]) == (shown[0], shown[-1])


def test_a_blank_reply_is_no_error_and_a_server_that_fails_is_one() -> None:
    def fails(kind: str) -> Scripted:
        def reply(request: Request) -> str:
            raise ModelError("no", kind=kind)  # type: ignore[arg-type]

        return Scripted(reply)

    found = asyncio.run(make_standalone(ASKED, TURNS, fails("empty")))
    assert (found.question, found.n_calls) == (ASKED, 2)
    assert found.notes
    with pytest.raises(ModelError, match="no"):
        asyncio.run(make_standalone(ASKED, TURNS, fails("auth")))


PLAN = 'New actions:\n- None\n\n1. a = FIND(CTX, "net sales") : Find them'


def test_the_plan_is_written_for_the_clear_question_and_its_tokens_count() -> None:
    async def act(request: Request) -> str:
        if isinstance(request.task, StandaloneTask):
            return CLEAR
        if isinstance(request.task, PlanTask):
            assert request.task.question == CLEAR
            return PLAN
        return "Nothing."

    model, trace = Acting(act), Trace()
    pearl = Pearl(model, domain="generic")
    answer = asyncio.run(pearl.ask(ASKED, Document("Sales."), history=TURNS, trace=trace))
    assert answer.understood is not None
    assert (answer.understood.asked, answer.understood.question) == (ASKED, CLEAR)
    (event,) = (event for event in trace if isinstance(event, QuestionUnderstood))
    assert (event.question, event.usage.n_input_tokens, event.n_calls) == (CLEAR, 10, 1)
    assert trace.usage.n_input_tokens == 10 * trace.n_calls == 10 * len(model.requests)


def test_an_answer_says_that_its_question_was_not_made_clear() -> None:
    def reply(request: Request) -> str:
        if isinstance(request.task, StandaloneTask):
            return "$7.1 million"
        return PLAN if isinstance(request.task, PlanTask) else "Nothing."

    answer = asyncio.run(Pearl(Scripted(reply)).ask(ASKED, Document("Sales."), history=TURNS))
    assert answer.understood is not None
    assert answer.understood.question == ASKED
    assert "was not made clear" in answer.understood.notes[0]
