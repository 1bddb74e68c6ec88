"""Questions of conversations by rule: rewritten where that is sure, never guessed."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.actions.library import load_library
from pearl.data.samples import Turn, asked_with, without_background
from pearl.dsl.checker import compile_plan
from pearl.llm import StandaloneTask
from pearl.llm.backends.extractive.planning import write_plan
from pearl.llm.backends.extractive.standalone import make_standalone
from pearl.planner.understanding import read_reply
from tests.shared import shared

SALES = "What were net sales of the printing business in 2014?"


def rewritten(*questions: str) -> str:
    *earlier, last = questions
    return make_standalone(StandaloneTask(last, tuple(map(Turn, earlier))))


@pytest.mark.parametrize(
    ("questions", "expected"),
    [
        ((SALES, "and in 2013?"), "What were net sales of the printing business in 2013?"),
        ((SALES, "What about 2013?"), "What were net sales of the printing business in 2013?"),
        ((SALES, "And what were they in the previous year, 2013?"),
         "What were net sales of the printing business in 2013?"),
        ((SALES, "and in 2013?", "and in 2012?"),
         "What were net sales of the printing business in 2012?"),
        ((SALES, "and in 2013?", "what is the net change?", "what was the 2013 value again?"),
         "What were net sales of the printing business in 2013?"),
        (("What was the 2009 rental expense?", "what about in 2008?"),
         "What was the 2008 rental expense?"),
        (("What was the highest stock price in 2007?", "what about the lowest stock price?"),
         "What was the lowest stock price in 2007?"),
        ((SALES, "and what were the wages of the mill in 2011?"),
         "what were the wages of the mill in 2011?"),
        (("Who sold the boat?", "Why did Nils leave the harbour?"),
         "Why did Nils leave the harbour?"),
    ],
)  # fmt: skip
def test_a_rule_that_is_sure_rewrites(questions: tuple[str, ...], expected: str) -> None:
    assert rewritten(*questions) == expected


@pytest.mark.parametrize(
    "questions",
    [
        (SALES, "How much did that change?"),
        (SALES, "and in 2013?", "what is the net change?"),
        (SALES, "what is the net change?", "and in 2011?"),  # of the change, or of the sales?
        ("What was the change from 2010 to 2014?", "and in 2013?"),
        ("What was the debt due in 2014?", "and in 2013?"),  # one day's debt
        ("What is the value of the 2014 notes?", "and in 2013?"),  # their name
        ("What was the price in the second quarter of 2014?", "and in 2013?"),
        ("What were assets on december 28, 2013?", "and in 2012?"),
        ("What were sales and assets in 2014?", "what was the 2013 price?"),
        ("What were net sales in 2009?", "what about Europe?"),
        ("What were net sales in 2009?", "what about in millions?"),
        ("What is the gross value of tax benefits in 2018?", "what is the beginning balance in 2017?",
         "and in 2016?"),
        ("Who sold the boat?", "And why?"),
        ("Who sold the boat?", "Why did he leave?"),
    ],
)  # fmt: skip
def test_what_is_not_sure_stays_and_has_the_others_beside_it(questions: tuple[str, ...]) -> None:
    asked, background = without_background(rewritten(*questions))
    assert asked == questions[-1]
    assert questions[0].rstrip("?") in background


def test_a_rule_is_not_sure_of_a_question_that_was_not_clear_itself() -> None:
    first = "What were the gains of the fund in 2014?"
    said = rewritten(first, "How did it change?", "and in 2013?")
    assert said == f"and in 2013? (asked with: {first.rstrip('?')}; How did it change)"


def test_what_is_left_out_of_the_brackets_is_marked_and_nothing_is_put_together() -> None:
    asked = [f"What was item {chr(97 + n)}; or its like?" for n in range(9)]
    said = rewritten(*asked, asked[3], "What is the net change?")
    _, background = without_background(said)
    first, mark, *latest = background.split("; ")
    assert (first, mark) == ("What was item a or its like", "...")
    assert latest[-2:] == ["What was item i or its like", "What was item d or its like"]
    assert len(latest) == 5


questions = st.lists(
    st.one_of(st.text(), st.sampled_from([SALES, "and in 2013?", "why (it)?", "the 2011 value?"])),
    min_size=1, max_size=12,
)  # fmt: skip


@given(questions, questions)
def test_every_word_is_one_that_was_said_and_a_plan_can_be_written(
    earlier: list[str], last: list[str]
) -> None:
    question = " ".join(" ".join(last).split()) or "Why?"
    history = tuple(map(Turn, earlier))
    said = make_standalone(StandaloneTask(question, history))
    known = " ".join((*earlier, question, "(asked with: ; ...)"))
    assert set(said) <= set(known)
    assert read_reply(said, question, history)[1] in ("", "it is blank", "it is no question")
    library = load_library("quality")
    compile_plan(write_plan(said, library), library)


@pytest.mark.parametrize("asked", ["Why?", "Why (so)?", "a (asked with: b) c"])
def test_a_background_is_split_off_as_it_was_put_there(asked: str) -> None:
    assert without_background(asked_with(asked, "Who (or what) left")) == (
        asked,
        "Who (or what) left",
    )
    assert without_background(asked) == (asked, "")


def test_the_earlier_questions_lead_to_the_passage() -> None:
    story = Document(
        "Nils sold the boat because the hull was rotten.\n\nThe weather was fine all week.\n\n"
        "Ines sold the mill because the wheel was broken.\n\nNobody came to the fair."
    )
    history = [Turn("Who sold the mill?", "Ines")]
    answer = asyncio.run(Pearl().ask("And why?", story, history=history))
    assert answer.understood is not None
    assert answer.understood.question == "And why? (asked with: Who sold the mill)"
    assert [each.text for each in answer.evidence] == [
        "Ines sold the mill because the wheel was broken."
    ]


def test_follow_ups_of_real_dialogues_can_be_used_and_many_are_rewritten() -> None:
    n_rewritten = n = 0
    for line in shared("convfinqa/dev.jsonl").read_text(encoding="utf-8").splitlines():
        asked = json.loads(line)["dialogue"]["conv_questions"]
        for number, question in enumerate(asked[1:], start=1):
            history = tuple(map(Turn, asked[:number]))
            said = make_standalone(StandaloneTask(question, history))
            assert read_reply(said, question, history) == (said, "")
            head, background = without_background(said)
            n += 1
            n_rewritten += not background and head not in question
    assert n == 769
    assert n_rewritten >= 65
