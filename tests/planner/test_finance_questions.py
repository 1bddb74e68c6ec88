"""Questions about several figures, from the parts to an answer with its cells, over pages made up for this."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.embedded import ExtractiveModel
from pearl.interpreter.answer import Answer
from pearl.llm import ActionTask, Completion, DecomposeTask, PlanTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.trace import QuestionRouted, Trace

PAGE = """# Figures of several companies

| $ in millions | 2013 | 2016 |
|---|---|---|
| Union Pacific: revenue | $21,500 | $19,250 |

| $ in millions | 2015 | 2016 |
|---|---|---|
| Air Products: operating income | $1,500 | $2,100 |
| Air Products: net sales | $10,000 | $8,400 |

| $ in millions | 2004 | 2005 | 2006 |
|---|---|---|---|
| International Paper: sales | $20,000 | $21,000 | $22,000 |
| International Paper: operating profit | $1,600 | $1,700 | $1,540 |
| International Paper, printing papers: sales | $7,000 | $8,000 | $8,100 |
| International Paper, printing papers: operating profit | $490 | $560 | $600 |
| International Paper, printing papers: energy costs | $810 | $930 | $990 |

| $ in millions | 2013 | 2017 |
|---|---|---|
| Goldman Sachs: total assets | $910,000 | $920,000 |

| $ in millions | 2014 |
|---|---|
| American Tower Corp: total lease expense | $655.0 |
"""

PRINTING = "of the printing papers business of International Paper Company"
FOUND = {
    ("revenue of Union Pacific", "2013"): ("$21,500 million", "| Union Pacific: revenue | $21,500 | $19,250 |"),
    ("revenue of Union Pacific", "2016"): ("$19,250 million", "| Union Pacific: revenue | $21,500 | $19,250 |"),
    ("operating income (or operating profit) of Air Products", "2015"): ("$1,500 million", "| Air Products: operating income | $1,500 | $2,100 |"),
    ("operating income (or operating profit) of Air Products", "2016"): ("$2,100 million", "| Air Products: operating income | $1,500 | $2,100 |"),
    ("revenue (or net sales) of Air Products", "2015"): ("$10,000 million", "| Air Products: net sales | $10,000 | $8,400 |"),
    ("revenue (or net sales) of Air Products", "2016"): ("$8,400 million", "| Air Products: net sales | $10,000 | $8,400 |"),
    ("operating income (or operating profit) of International Paper", "2004"): ("$1,600 million", "| International Paper: operating profit | $1,600 | $1,700 | $1,540 |"),
    ("operating income (or operating profit) of International Paper", "2006"): ("$1,540 million", "| International Paper: operating profit | $1,600 | $1,700 | $1,540 |"),
    ("revenue (or net sales) of International Paper", "2004"): ("$20,000 million", "| International Paper: sales | $20,000 | $21,000 | $22,000 |"),
    ("revenue (or net sales) of International Paper", "2006"): ("$22,000 million", "| International Paper: sales | $20,000 | $21,000 | $22,000 |"),
    (f"operating income (or operating profit) {PRINTING}", "2005"): ("$560 million", "| International Paper, printing papers: operating profit | $490 | $560 | $600 |"),
    (f"revenue (or net sales) {PRINTING}", "2005"): ("$8,000 million", "| International Paper, printing papers: sales | $7,000 | $8,000 | $8,100 |"),
    ("total assets of Goldman Sachs", "2013"): ("$910,000 million", "| Goldman Sachs: total assets | $910,000 | $920,000 |"),
    ("total assets of Goldman Sachs", "2017"): ("$920,000 million", "| Goldman Sachs: total assets | $910,000 | $920,000 |"),
    ("total lease expense of American Tower Corp", "2014"): ("$655.0 million", "| American Tower Corp: total lease expense | $655.0 |"),
}  # fmt: skip
"""What a reader who sees the page finds; anything else is not there."""

TWO_QUESTIONS = (
    "What was the change in revenue for Union Pacific from 2013 to 2016, and what was the operating "
    "margin for Air Products in 2015?"
)
SEGMENT = f"What was the Operating Profit Margin {PRINTING} in 2005?"
OF_THREE = (
    "What is the change in total assets for Goldman Sachs from 2013 to 2017 divided by the sum of the "
    "operating margins for Air Products in 2016 and International Paper in 2004?"
)
OF_TWO = (
    "What was the difference between the operating margins of Air Products in 2015 and International "
    "Paper in 2006?"
)
LEASE = "What was American Tower Corp's total lease expense for 2014?"
MISSING = "What was the total value of Entergy Corp's long-term securities available for issuance in 2008?"


def figure(id: str, metric: str, entity: str, period: str) -> dict[str, Any]:
    return {"id": id, "kind": "figure", "metric": metric, "entity": entity, "period": period}


class Reader:
    """Tells parts by rule, and reads the page from a script; it writes no plan."""

    name = identity = "reader"
    notice = ""
    reads_prompts = False
    window: int | None = None
    constrains = ExtractiveModel.constrains

    async def complete(self, request: Request) -> Completion:
        task = request.task
        if isinstance(task, DecomposeTask):
            return await ExtractiveModel().complete(request)
        assert isinstance(task, ActionTask)
        assert task.action.name == "FIND_FIGURE"
        what, period = (value for name, value in task.arguments if name in ("X", "PERIOD"))
        value, row = FOUND.get((what, period), (f"Nothing found: no such figure for {period}.", ""))
        return Completion(f"{value}\n\n> {row}" if row else value, self.name)

    async def aclose(self) -> None:
        """Nothing to let go of."""


def ask(question: str, by: str) -> tuple[Answer, QuestionRouted]:
    trace = Trace()
    pearl = Pearl("extractive" if by == "embedded" else Reader(), library="finance", route=True)
    answer = asyncio.run(pearl.ask(question, Document(PAGE, "page.md"), trace=trace))
    (routed,) = [event for event in trace if isinstance(event, QuestionRouted)]
    return answer, routed


@pytest.mark.parametrize("by", ["rules", "embedded"])
class TestSeeds:
    def test_two_questions_have_two_answers_in_their_order(self, by: str) -> None:
        answer, routed = ask(TWO_QUESTIONS, by)
        assert answer.text == (
            "Change in revenue of Union Pacific from 2013 to 2016:\n\n$-2250 million\n\n"
            "Operating margin of Air Products in 2015:\n\n15%"
        ).replace("$-", "-$")
        assert (routed.level, routed.by) == (4, "rule")
        cited = {each.text for each in answer.evidence}
        assert len(cited) == 3
        assert all(PAGE[each.span.start : each.span.end] == each.text for each in answer.evidence)

    def test_a_segment_is_divided_by_its_own_sales(self, by: str) -> None:
        """Energy costs and the sales of the whole company stand beside them."""
        answer, routed = ask(SEGMENT, by)
        assert answer.text == "7%"
        assert routed.level == 3
        assert not any("energy" in each.text for each in answer.evidence)

    def test_a_change_by_a_sum_of_margins(self, by: str) -> None:
        answer, routed = ask(OF_THREE, by)
        # 10,000 million / (2,100 / 8,400 + 1,600 / 20,000)
        assert answer.text == "$30303030303.0303"
        assert routed.level == 4
        assert len(answer.evidence) == 5

    def test_a_difference_of_margins(self, by: str) -> None:
        answer, _ = ask(OF_TWO, by)
        assert answer.text == "8%"  # 15% - 7%

    def test_a_figure_is_looked_up(self, by: str) -> None:
        answer, routed = ask(LEASE, by)
        assert answer.text == "$655.0 million"
        assert (routed.level, [step.action for step in answer.steps]) == (1, ["FIND_FIGURE"])

    def test_a_missing_figure_is_not_found(self, by: str) -> None:
        answer, _ = ask(MISSING, by)
        assert answer.status == "nothing_found"
        assert answer.text.startswith("Nothing found")


def test_an_operand_that_is_missing_is_named_and_the_other_answer_stands() -> None:
    """The period in the reader's refusal is no operand."""
    question = (
        "What was the change in revenue for Union Pacific from 2013 to 2014, and what was the operating "
        "margin for Air Products in 2015?"
    )
    answer, _ = ask(question, "rules")
    assert answer.text.split("\n\n")[1] == (
        "Nothing found. first is not given: nothing in 'revenue_2014'"
    )
    assert answer.text.endswith("\n\n15%")
    alone = "What was the change in revenue for Union Pacific from 2013 to 2014?"
    answer, _ = ask(alone, "rules")
    assert answer.status == "nothing_found"


def test_the_planner_gets_the_parts_of_a_difficult_question_as_advice() -> None:
    """Level 5: the planner is asked, after the parts."""
    question = "What was the revenue of Union Pacific in 2013, and why did it fall?"
    parts = [
        figure("p1", "revenue", "Union Pacific", "2013"),
        {"id": "p2", "kind": "other", "question": "why did it fall?", "gives": "text"},
    ]
    plan = '1. why = FIND_REASON(CTX, "the fall of the revenue") : Find out why'

    def reply(request: Request) -> str:
        if isinstance(request.task, DecomposeTask):
            return json.dumps({"parts": parts, "level": 1})
        return plan if isinstance(request.task, PlanTask) else "It rained."

    model, trace = Scripted(reply), Trace()
    pearl = Pearl(model, library="finance", route=True)
    answer = asyncio.run(pearl.ask(question, Document(PAGE, "page.md"), trace=trace))
    assert answer.text == "It rained."
    (prompt,) = [each.prompt for each in model.requests if isinstance(each.task, PlanTask)]
    assert "- p1: revenue of Union Pacific in 2013\n- p2: why did it fall? (text)" in prompt
    (routed,) = [event for event in trace if isinstance(event, QuestionRouted)]
    assert (routed.level, routed.by) == (5, "planner")
    assert routed.notes == ("level 1 according to the model; its parts have level 5",)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which was greater, the revenue of Union Pacific in 2013 or in 2016?", "revenue of Union Pacific in 2013"),
        ("Which was lower, the revenue of Union Pacific in 2013 or in 2016?", "revenue of Union Pacific in 2016"),
        ("Was the revenue of Union Pacific greater in 2013 than in 2016?", "yes"),
    ],
)  # fmt: skip
def test_the_greater_figure_is_answered_by_its_name(question: str, answer: str) -> None:
    asked = Pearl(domain="finance").ask(question, Document(PAGE))
    assert asyncio.run(asked).text == answer
