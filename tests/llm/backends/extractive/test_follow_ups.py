"""Questions about the results of those before, by rule: what is sure, and what is never guessed."""

from __future__ import annotations

import asyncio

import pytest

from pearl import Document, Pearl
from pearl.data.samples import Turn, asked_with
from pearl.dsl.signatures import ActionLibrary
from pearl.llm import DecomposeTask
from pearl.llm.backends.extractive.decomposition import decompose
from pearl.planner.routing import Calculation, Figure, Other, Part, flaws, read_decomposition

NONE = ActionLibrary("none", [])
SALES = "what were net sales in {}"


def formula(question: str, *earlier: str) -> str | None:
    """What a question comes to, such as `difference(net sales 2016, net sales 2015)`; None if no rule is sure."""
    asked = asked_with(question, "; ".join(earlier))
    found = read_decomposition(decompose(DecomposeTask(asked, NONE)))
    assert flaws(found, asked) == ()
    parts = {part.id: part for part in found.parts}

    def shown(part: Part) -> str:
        if isinstance(part, Figure):
            return " ".join(filter(None, (part.metric, part.entity, part.period)))
        assert isinstance(part, Calculation)
        operands = [shown(parts[id]) if id in parts else id for id in part.operands]
        return f"{part.operation}({', '.join(operands)})"

    if any(isinstance(part, Other) for part in found.parts):
        return None
    used = {id for part in found.parts if isinstance(part, Calculation) for id in part.operands}
    (result,) = (part for part in found.parts if part.id not in used)
    return shown(result)


BOTH = "net sales 2016, net sales 2015"
CHANGE = f"difference({BOTH})"
RATE = f"percentage change({BOTH})"


@pytest.mark.parametrize("years", [("2015", "2016"), ("2016", "2015")])
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the net change?", CHANGE),
        ("by how much, then, did it increase over the year?", CHANGE),
        ("how much did it change in that time?", CHANGE),
        ("what was the difference between these values?", CHANGE),
        ("what was the net change from 2015 to 2016?", CHANGE),
        ("what is the 2016 value less the 2015 value?", CHANGE),
        ("what is the 2015 value less the 2016 value?", "difference(net sales 2015, net sales 2016)"),
        ("and as a percentage?", RATE),
        ("what percentage change does this represent?", RATE),
        ("what was the percent change?", RATE),
        ("what is the growth rate over these years?", RATE),
        ("what is the net change over the 2015 value?", f"ratio({CHANGE}, net sales 2015)"),
        ("how much does this change represent in relation to the 2015 net sales, in percentage?", f"share({CHANGE}, net sales 2015)"),
        ("what is the ratio of 2015 to 2016?", "ratio(net sales 2015, net sales 2016)"),
        ("what was the value in 2015?", "net sales 2015"),
    ],
)  # fmt: skip
def test_of_two_years_the_order_is_sure(
    question: str, expected: str, years: tuple[str, str]
) -> None:
    assert formula(question, *map(SALES.format, years)) == expected


@pytest.mark.parametrize(
    ("question", "earlier", "expected"),
    [
        ("and as a percentage?", [SALES.format(2015), SALES.format(2016), "what is the net change"], RATE),
        ("what is that as a percentage of the 2015 figure?", [SALES.format(2015), SALES.format(2016), "what is the net change"], f"share({CHANGE}, net sales 2015)"),
        ("what is the change over the 2015 value?", [SALES.format(2015), SALES.format(2016), "what is the net change", "what was the 2015 value"], f"ratio({CHANGE}, net sales 2015)"),
        ("what is the percent change?", ["what was the change in net sales from 2015 to 2016"], RATE),
        ("what is the change?", [SALES.format(year) for year in (2013, 2015, 2016)], CHANGE),
        ("what is the change?", ["why did rents fall", SALES.format(2015), SALES.format(2016)], CHANGE),
        ("what is that less 100?", [SALES.format(2015)], "difference(net sales 2015, 100)"),
        ("what is that divided by 100?", [SALES.format(2015), "what is that less 100"], "ratio(difference(net sales 2015, 100), 100)"),
        ("what percentage change does this represent?", [SALES.format(2015), "what is that less an initial $100 investment"], "percentage change(net sales 2015, 100)"),
        ("what is the total of these?", [SALES.format(2015), SALES.format(2016)], "sum(net sales 2015, net sales 2016)"),
        ("what is the total for all 3 years?", [SALES.format(year) for year in (2014, 2015, 2016)], "sum(sum(net sales 2014, net sales 2015), net sales 2016)"),
        ("what is the average per year?", [SALES.format(2015), SALES.format(2016), "what is the sum"], "ratio(sum(net sales 2015, net sales 2016), 2)"),
        ("what was the average?", [SALES.format(2015), SALES.format(2016)], "ratio(sum(net sales 2015, net sales 2016), 2)"),
        ("what is the sum?", [SALES.format(2015), "what was the rent in 2015"], "sum(net sales 2015, rent 2015)"),
    ],
)  # fmt: skip
def test_results_are_computed_with(question: str, earlier: list[str], expected: str) -> None:
    assert formula(question, *earlier) == expected


@pytest.mark.parametrize(
    ("question", "earlier"),
    [
        ("what is the change?", [SALES.format(2015)]),
        ("what is the change?", [SALES.format(2015), "what was the operating income in 2016"]),
        ("what is the difference?", [SALES.format(2015), "what was the rent in 2015"]),
        ("what is the change?", [SALES.format(2015), SALES.format(2015)]),
        ("what is the change?", [SALES.format("march 2015"), SALES.format(2016)]),
        ("what is the change?", [SALES.format(2015), "why did they rise", SALES.format(2016), "who sold"]),
        ("what is the change?", [SALES.format(2015), "...", SALES.format(2016)]),
        ("what is the change in tax?", [SALES.format(2015), SALES.format(2016)]),
        ("why did it change?", [SALES.format(2015), SALES.format(2016)]),
        ("what is the sum?", [SALES.format(year) for year in (2014, 2015, 2016)]),
        ("what is the sum?", [SALES.format(2014), "and of the others", SALES.format(2015), SALES.format(2016)]),
        ("what is the sum of the three years?", [SALES.format(2015), SALES.format(2016)]),
        ("what is the ratio?", [SALES.format(2015), SALES.format(2016)]),
        ("what is that divided by 100?", [SALES.format(2015), "why did they rise"]),
        ("what is that divided by 100?", ["what were net sales in 2015 and 2016"]),
        ("what is the change over the 2014 value?", [SALES.format(2015), SALES.format(2016)]),
        ("what is the change over the 2015 rent?", [SALES.format(2015), SALES.format(2016)]),
        ("what is the change over the 2015 value?", [SALES.format(2015), SALES.format(2016), "what was the rent in 2014"]),
        ("what is the percent change?", [SALES.format(2015), SALES.format(2016), "what was the rent in 2014"]),
        ("what is the net change from 2016 to 2015?", [SALES.format(2015), SALES.format(2016)]),
        ("what was the price in 2015?", [SALES.format(2015), SALES.format(2016)]),
        ("what was the average?", [SALES.format(2015), SALES.format(2016), "what is that less 100"]),
        ("what is the percentage change in rent?", [SALES.format(2015), SALES.format(2016)]),
        ("what is the sum of net sales and rent?", [SALES.format(2015), SALES.format(2016)]),
        ("what is the total in 2017?", [SALES.format(2015), SALES.format(2016)]),
    ],
)  # fmt: skip
def test_what_is_not_sure_is_left_to_the_planner(question: str, earlier: list[str]) -> None:
    assert formula(question, *earlier) is None


def test_an_answer_that_would_not_be_told_is_not_planned_by_rule() -> None:
    asked = "What was the change in sales from 2011 to 2012, and what were sales in 2012?"
    (part,) = read_decomposition(decompose(DecomposeTask(asked, NONE))).parts
    assert isinstance(part, Other)


def test_a_long_conversation_ends_soon() -> None:
    many = [f"what were sales of boat {n} in 2015" for n in range(20_000)]  # each beside all others
    assert formula("what is the change?", *many) is None
    deep = [SALES.format(2015), *["what is that times 2"] * 40]
    assert formula("what is that times 2?", *deep) is None  # more parts than a reply may have


def test_a_conversation_computes() -> None:
    page = Document(
        "Sales by product, in millions:\n\n| item | 2017 | 2016 |\n| --- | --- | --- |\n"
        "| cabinet sales | 2467.1 | 2397.8 |\n| plumbing sales | 1720.8 | 1534.4 |\n"
    )
    asked = ["what were cabinet sales in 2017?", "what were they in 2016?", "what is the net change?",
             "what is that as a percentage of the 2016 figure?", "and the ratio?"]  # fmt: skip
    ask = Pearl(domain="finance").ask
    said: list[str] = []
    for n, question in enumerate(asked):
        history = [Turn(*each) for each in zip(asked[:n], said, strict=True)]
        said.append(asyncio.run(ask(question, page, history=history)).text)
    assert [text.split(" million")[0] for text in said[:3]] == ["2467.1", "2397.8", "69.3"]
    assert said[3] == "2.89%"
    assert "2.89" not in said[4]
