"""Parts of questions by rule: what is sure, and what is not taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.dsl.signatures import ActionLibrary
from pearl.embedded.decomposition import decompose
from pearl.llm import DecomposeTask
from pearl.planner.routing import (
    Decomposition,
    decomposition_constraint,
    flaws,
    level_of,
    read_decomposition,
    shown,
)

NONE = ActionLibrary("none", [])


def parts(question: str) -> Decomposition:
    return read_decomposition(decompose(DecomposeTask(question, NONE)))


@pytest.mark.parametrize(
    ("question", "level", "lines"),
    [
        ("What was Acme Corp's total lease expense for 2014?", 1, ["total lease expense of Acme Corp in 2014"]),
        ("What was the long-term debt as of December 31, 2011?", 1, ["long-term debt in December 31, 2011"]),
        ("what was the revenue for acme in fiscal 2013", 1, ["revenue for acme in fiscal 2013"]),
        ("In 2013, what was it?", 5, None),
        ("What was the property, plant and equipment of Acme in 2012?", 1, ["property, plant and equipment of Acme in 2012"]),
        ("What were net sales in 2008 and 2009?", 2, ["net sales in 2008", "net sales in 2009"]),
        ("What was the EPS of Acme in 2015?", 1, ["EPS of Acme in 2015"]),
        ("What was the operating margin of the boats of Acme Company in 2015?", 3, ["operating margin of the boats of Acme Company in 2015"]),
        ("What is Acme's current ratio in 2011?", 3, ["current ratio of Acme in 2011"]),
        ("By how much did net revenue increase from 2007 to 2008?", 3, ["net revenue in 2008", "net revenue in 2007", "difference(p1, p2)"]),
        ("By what percentage did net revenue fall from 2007 to 2008?", 3, ["net revenue in 2008", "net revenue in 2007", "percentage change(p1, p2)"]),
        ("What was the percent change in sales for Acme from 2008 to 2009?", 3, ["sales of Acme in 2009", "sales of Acme in 2008", "percentage change(p1, p2)"]),
        ("What was the growth rate of sales from 2008 to 2009?", 3, ["sales in 2009", "sales in 2008", "percentage change(p1, p2)"]),
        ("What was the change in sales between 2009 and 2008?", 3, ["sales in 2009", "sales in 2008", "difference(p1, p2)"]),
        ("What was the change in sales from 2009 to 2008?", 5, None),
        ("What was the ratio of current assets to current liabilities of Acme in 2010?", 3, ["current assets of Acme in 2010", "current liabilities of Acme in 2010", "ratio(p1, p2)"]),
        ("What was the ratio of A to B in 2010 divided by 4 in 2011?", 5, None),
        ("What were exports as a percentage of sales in 2010?", 3, ["exports in 2010", "sales in 2010", "share(p1, p2)"]),
        ("What was the average of net sales in 2008 and 2009?", 4, ["net sales in 2008", "net sales in 2009", "sum(p1, p2)", "ratio(p3, 2)"]),
        ("What was the sum of the net income of Acme and Zenith in 2010?", 4, ["net income of Acme in 2010", "net income of Zenith in 2010", "sum(p1, p2)"]),
        ("What was the sum of net income of Acme and interest expense in 2010?", 5, None),
        ("Were the sales of Acme lower in 2016 than in 2013?", 4, ["sales of Acme in 2016", "sales of Acme in 2013", "greater(p2, p1)"]),
        ("Which was greater, net sales in 2008 or in 2009?", 4, ["net sales in 2008", "net sales in 2009", "greater(p1, p2)"]),
        ("Which is lower: exports or sales of Acme in 2010?", 4, ["exports of Acme in 2010", "sales of Acme in 2010", "greater(p1, p2)"]),
        ("Which was greater, sales or exports or costs in 2008?", 5, None),
        ("What was the revenue and net income in 2015?", 5, None),
        ("What was the average price in 2015?", 5, None),
        ("What was the highest revenue in 2015?", 5, None),
        ("What was the revenue?", 5, None),
        ("Why did sales fall in 2009?", 5, None),
        ("Who sold the mill?", 5, None),
        ("What were sales in 2009, and why did they fall?", 5, None),
    ],
)  # fmt: skip
def test_parts_by_rule(question: str, level: int, lines: list[str] | None) -> None:
    found = parts(question)
    assert (found.level, level_of(found.parts)) == (level, level)
    assert flaws(found, question) == ()
    said = [line.partition(": ")[2] for line in shown(found.parts)]
    assert said == ([f"{question} (text)"] if lines is None else lines)


def test_a_rejected_decomposition_is_not_repeated() -> None:
    found = read_decomposition(decompose(DecomposeTask("What were sales in 2009?", NONE, round=1)))
    assert level_of(found.parts) == 5


WORDS = st.sampled_from(
    ["What was", "the", "change in", "ratio of", "to", "sum of", "and", "of", "Acme", "Zenith's", "sales",
     "operating margin", "in", "from", "2009", "2010", "divided by", "as a percentage of", ",", "?",
     "difference between", "By how much did", "increase", "as of December 31,", "\u0130", "'"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=14).map(" ".join))
def test_the_parts_of_any_question_pass_the_checks(question: str) -> None:
    """Rules bring in nothing that the question does not name, and leave out no year of it."""
    text = decompose(DecomposeTask(question or "x", NONE))
    found = read_decomposition(text)
    if level_of(found.parts) < 5:
        assert flaws(found, question) == ()
        assert found.level == level_of(found.parts)
    form = decomposition_constraint().json_form
    assert form is not None
    assert form.text_of(found.model_dump(mode="json")) == text


@given(st.text(max_size=200))
def test_any_text_has_parts(question: str) -> None:
    assert parts(question if question.strip() else "x").parts
