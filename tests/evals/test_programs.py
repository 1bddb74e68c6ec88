"""The arithmetic that a plan carried out, and which programs are the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.evals.programs import carried_out, executed, is_same
from pearl.evals.runner import score
from pearl.evals.scorers import load_scorer
from pearl.llm import ActionTask, Request
from pearl.llm.backends.scripted import Scripted
from tests.evals.evallogs import record

PAGE = Document("| item | 2008 | 2007 |\n| --- | --- | --- |\n| rent | 120 | 100 |", "page")


def program_of(*steps: str, **said: str) -> str:
    """The program of a plan over `PAGE`; `said` are the replies of steps, scripted."""

    def reply(request: Request) -> str:
        assert isinstance(request.task, ActionTask)
        return said[request.task.output]

    async def main() -> str:
        pearl = Pearl(Scripted(reply), domain="finance")
        plan = "\n".join(f"{i}. {step} : Do it" for i, step in enumerate(steps, start=1))
        answer = await pearl.execute(f"New actions:\n- None\n\n{plan}", PAGE)
        return carried_out(answer, pearl.compile(answer.plan))

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        ("add(1, 2)", "add(2, 1)", True),
        ("multiply(1, ?)", "multiply(1, ?)", False),  # no program
        ("subtract(1, 2)", "subtract(2, 1)", False),
        ("divide(5%, 2.50)", "divide(0.05, 2.5)", True),
        ("multiply(#0, 1)", "multiply(#0, 1)", False),  # no step before it
        ("multiply(7, const_100)", "multiply(100, 7)", True),
        ("multiply(7, const_m1)", "multiply(7, -1)", True),
        ("add(1, 2), subtract(9, 4), divide(#0, #1)", "subtract(9, 4), add(2, 1), divide(#1, #0)", True),
        ("add(1, 2), subtract(9, 4), divide(#0, #1)", "subtract(9, 4), add(2, 1), divide(#0, #1)", False),
        ("add(1, 1), subtract(9, 4)", "subtract(9, 4)", True),  # a step that nothing needs
        ("table_sum(Net  rent, none)", "table_sum(net  rent, none)", True),
        ("table_sum(rent, none)", "table_max(rent, none)", False),
        ("3", "3.0", True),
        ("3", "-3", False),
        ("add(3, 0)", "3", False),
        ("", "", False),
    ],
)  # fmt: skip
def test_which_programs_are_the_same(one: str, other: str, is_equal: bool) -> None:
    assert is_same(one, other) is is_same(other, one) is is_equal


def test_steps_that_refer_to_each_other_twice_are_compared_at_once() -> None:
    doubled = ", ".join(["add(1, 1)", *(f"add(#{i}, #{i})" for i in range(60))])
    assert is_same(doubled, doubled.replace("add(1, 1)", "add(1.0, 1)"))
    assert not is_same(doubled, doubled.replace("add(1, 1)", "add(1, 2)"))


numbers = st.integers(-999, 999).map(str)
operations = st.sampled_from(["add", "subtract", "multiply", "divide"])


@given(st.lists(st.tuples(operations, numbers, numbers), min_size=2, max_size=6), st.randoms())
def test_the_order_of_steps_does_not_count(steps: list[Any], random: Any) -> None:
    """Steps of their own, in any order, and one that takes two of them."""
    order = list(range(len(steps)))
    random.shuffle(order)
    last, first = len(steps) - 1, 0

    def written(places: list[int]) -> str:
        lines = [f"{steps[i][0]}({steps[i][1]}, {steps[i][2]})" for i in places]
        return ", ".join([*lines, f"subtract(#{places.index(last)}, #{places.index(first)})"])

    one, other = written(list(range(len(steps)))), written(order)
    assert is_same(one, other)
    assert executed(one) == executed(other)


def test_programs_come_to_what_the_authors_code_says() -> None:
    assert executed("subtract(5735, 5180), divide(#0, 5180)") == "0.10714"
    assert executed("multiply(5%, const_100)") == "5"
    assert executed("greater(1, 2)") == "no"
    assert executed("divide(1, 0)") is executed("table_sum(rent, none)") is executed("?") is None


def test_the_program_of_a_step_is_the_one_it_evaluated() -> None:
    assert program_of('ans = EVALUATE(CTX, "subtract(120, 100)")') == "subtract(120, 100)"
    written = 'p = WRITE_PROGRAM(CTX, "the change")', "ans = EVALUATE(CTX, p)"
    assert program_of(*written, p="add(120, 100), divide(#0, const_2)") == (
        "add(120, 100), divide(#0, const_2)"
    )
    assert program_of('ans = EVALUATE(CTX, "table_max(rent, none)")') == "table_max(rent, none)"


def test_a_calculation_has_the_program_of_its_calculator_with_the_numbers_put_in() -> None:
    reading = (
        'new = FIND_FIGURE(CTX, "rent", "2008")',
        'old = FIND_FIGURE(CTX, "rent", "2007")',
        'ans = CALCULATE("percentage change", new, old)',
    )
    found = program_of(*reading, new="$ 1,200 million", old="$1,000 million")
    assert is_same(found, "subtract(1200, 1000), divide(#0, 1000)")
    mixed = program_of(*reading, new="$1.2 billion", old="$1,000 million")
    assert is_same(mixed, "subtract(1200000000, 1000000000), divide(#0, 1000000000)")


def test_a_calculation_of_calculations_is_one_program() -> None:
    found = program_of(
        'a = EVALUATE(CTX, "subtract(120, 100)")',
        'b = CALCULATE("difference", a, 5)',
        'ans = CALCULATE("ratio", b, a)',
    )
    assert is_same(found, "subtract(120, 100), subtract(#0, 5), divide(#1, #0)")


def test_an_answer_that_is_a_number_of_the_document_is_that_number() -> None:
    figure = 'ans = FIND_FIGURE(CTX, "rent", "2008")'
    assert is_same(program_of(figure, ans="$ 120.50 million"), "120.5")
    assert is_same(program_of(figure, ans="-5%"), "-0.05")
    assert program_of(figure, ans="It was raised twice.") == ""


def test_other_computations_have_no_program() -> None:
    assert program_of('a = LIST_ALL(CTX, "rents")', "ans = COUNT(a)", a="- 120\n- 100") == ""
    both = 'a = EVALUATE(CTX, "add(1, 1)")', 'b = EVALUATE(CTX, "add(2, 2)")'
    assert program_of(*both) == ""  # two answers


@pytest.mark.parametrize(
    ("scorer", "program", "answer", "expected"),
    [
        ("program", "subtract(120, 100), divide(#0, 100)", "about a fifth", 1.0),
        ("program", "subtract(100, 120), divide(#0, 100)", "0.2", 0.0),
        ("program", "", "0.2", 0.0),
        ("execution", "subtract(120, 100), divide(#0, 100)", "20%", 1.0),
        ("execution", "subtract(100, 120), divide(#0, 100)", "0.2", 0.0),  # the program counts
        ("execution", "", "20%", 1.0),
        ("execution", "", "It is 0.200001.", 1.0),
        ("execution", "", "0.20001", 0.0),
        ("execution", "table_sum(rent, none)", "0.2", 1.0),  # needs a table: the answer counts
    ],
)
def test_scorers_that_look_at_programs(
    scorer: str, program: str, answer: str, expected: float
) -> None:
    gold = "subtract(120, 100), divide(#0, 100)"
    one = record(options=(), gold=None, reference="0.2", answer=answer)
    one = one.model_copy(update={"program": program, "gold_program": gold})
    assert score(one, scorer) == expected
    assert score(one.model_copy(update={"status": "failed"}), scorer) == 0.0


def test_without_a_gold_program_nothing_is_right() -> None:
    one = record(options=(), gold=None, reference="3", answer="3", program="3")
    assert score(one, "program") == 0.0
    assert load_scorer("program").score("3", "3.0") == 1.0
