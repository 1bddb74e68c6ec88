"""Figures from replies and tables, as operands of steps that compute."""

from __future__ import annotations

import asyncio

import pytest

from pearl import Document, Pearl
from pearl.errors import ExecutionError
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, Request
from pearl.llm.backends.scripted import Scripted

FARM = Document("Ada keeps bees. Ben keeps goats.", "farm.txt")
WIDE = Document("item,2013,2014\nnet sales,$10,$12\ncosts,3,4\n", "wide.csv")
LONG = Document("Year,Item,Amount\n2013,sales,10\n2014,sales,12\n2013,costs,3\n", "long.csv")


def plan(*steps: str) -> str:
    return "\n".join(f"{i}. {step} : step {i}" for i, step in enumerate(steps, start=1))


def execute(text: str, document: Document, replies: str | dict[str, str] = "") -> Answer:
    """The answer of a plan where every step of a model gets the same reply, or its own."""

    def reply(request: Request) -> str:
        assert isinstance(request.task, ActionTask)
        return replies if isinstance(replies, str) else replies[request.task.output]

    return asyncio.run(Pearl(Scripted(reply), library="finance").execute(text, document))


@pytest.mark.parametrize(
    ("steps", "replies", "status", "answer"),
    [
        (['a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', 'n = CALCULATE("difference", a, b)'],
         {"a": "**$138.0 million**", "b": "USD 124 million."}, "answered", "$14 million"),
        (['a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', 'n = CALCULATE("difference", a, b)'],
         {"a": "- 138.0", "b": "124.0"}, "undecided", None),
        (['a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', 'n = CALCULATE("difference", a, b)'],
         {"a": "$138.0 million", "b": "124.0"}, "undecided", None),
        (['a = FIND(CTX, "x")', 'b = FIND(CTX, "y")', 'n = CALCULATE("difference", a, b)'],
         {"a": "$138.0 million", "b": "Nothing found."}, "nothing_found", None),
        (['a = FIND(CTX, "x")', "n = EVALUATE(CTX, a)"], {"a": "Nothing found."}, "nothing_found", None),
        (['a = FIND(CTX, "x")', 'n = EVALUATE(a, "table_sum(x)")'], {"a": "Nothing found."}, "nothing_found", None),
        (['a = FIND(CTX, "x")', "n = EVALUATE(CTX, a)"], {"a": "add(1, 2)"}, "answered", "3"),
        (['a = FIND(CTX, "x")', "n = EVALUATE(CTX, a)"], {"a": "add them up"}, "undecided", None),
    ],
)  # fmt: skip
def test_operands_of_replies(
    steps: list[str], replies: dict[str, str], status: str, answer: str | None
) -> None:
    done = execute(plan(*steps), FARM, replies)
    assert done.status == status
    assert answer is None or done.text == answer


def test_a_division_by_0_fails_its_step() -> None:
    with pytest.raises(ExecutionError, match="divides by 0"):
        execute(plan('a = FIND(CTX, "x")', 'n = CALCULATE("ratio", 1, a)'), FARM, "0")


@pytest.mark.parametrize("said", ["Nothing found.", "Nothing found: no net sales in 2015"])
@pytest.mark.parametrize(
    "use",
    [
        'CALCULATE("percentage change", new, "10")',
        'CALCULATE("difference", "10", new)',
        'RELATION(new, "10")',
    ],
)
def test_a_year_that_is_told_not_to_be_there_is_no_number(said: str, use: str) -> None:
    plan = f'1. new = FIND_FIGURE(CTX, "net sales", "2015") : a\n2. ans = {use} : b'
    answer = execute(plan, WIDE, said)
    assert answer.status == "nothing_found"
    assert not any(character.isdigit() for character in answer.text.replace("2015", ""))


@pytest.mark.parametrize("said", ["the figure for 2015", "Sales of 2015"])
def test_a_year_among_other_words_is_no_operand(said: str) -> None:
    plan = (
        '1. a = FIND_FIGURE(CTX, "net sales", "2015") : a\n2. b = CALCULATE("ratio", a, "10") : b'
    )
    assert execute(plan, WIDE, said).status == "undecided"
    assert execute(plan, WIDE, "2015").text == "201.5"
    assert execute(plan, WIDE, "$2,015").text == "$201.5"


def test_a_condition_that_leaves_no_row_leaves_nothing_to_compute() -> None:
    plan = """1. rows = SPLIT(CTX, "record") : a
2. year = WHERE(rows, "Year", "is", "2015") : b
3. new = FIELD(year, "Amount") : c
4. ans = CALCULATE("difference", new, "3") : d"""
    answer = execute(plan, LONG)
    assert (answer.status, answer.text) == (
        "nothing_found",
        "Nothing found. There is nothing in 'new'",
    )
