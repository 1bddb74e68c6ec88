"""Questions as they are planned: clear without the turns before them, with absolute periods."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import date, timedelta

import pytest

from pearl import Document, Pearl, Trace, pipeline
from pearl.data.domains import load_domain
from pearl.data.samples import Turn
from pearl.errors import UsageError
from pearl.llm import ActionTask, PlanTask, Request
from pearl.llm.backends.scripted import Scripted
from pearl.planner.periods import Calendar
from pearl.planner.understanding import understand
from pearl.trace import QuestionUnderstood

MAY = date(2024, 5, 1)
DOCUMENT = Document("Sales were 12 in 2023 and 10 in 2022.", "report.txt")


def reply(request: Request) -> str:
    if isinstance(request.task, PlanTask):
        return 'New actions:\n- None\n\n1. ans = FIND(CTX, "sales") : Find them'
    assert isinstance(request.task, ActionTask)
    return "12 in 2023"


def test_a_question_is_planned_with_absolute_periods_and_told_as_it_was_asked() -> None:
    model, trace = Scripted(reply), Trace()
    pearl = Pearl(model, as_of=MAY)
    answer = asyncio.run(pearl.ask("What were sales <last year>?", DOCUMENT, trace=trace))
    planned, *_ = (each.task for each in model.requests)
    assert isinstance(planned, PlanTask)
    assert planned.question == "What were sales <in 2023>?"
    note = '"last year" read as 2023 (as of 2024-05-01)'
    row = json.loads(json.dumps(answer.to_dict()))
    assert row["question"] == answer.question == "What were sales <last year>?"
    assert row["understood"] == {"question": "What were sales <in 2023>?", "notes": [note]}
    assert "Understood as: What were sales &lt;in 2023&gt;?" in answer._repr_html_()
    (event,) = [each for each in trace if isinstance(each, QuestionUnderstood)]
    assert (event.question, event.notes) == ("What were sales <in 2023>?", (note,))


@pytest.mark.parametrize("as_of", [None, MAY])
def test_a_question_without_relative_periods_is_unchanged(as_of: date | None) -> None:
    asked = "What were sales in 2023?" if as_of else "What were sales last year?"
    trace = Trace()
    answer = asyncio.run(Pearl(Scripted(reply), as_of=as_of).ask(asked, DOCUMENT, trace=trace))
    assert answer.understood is None
    assert "understood" not in answer.to_dict()
    assert answer.question == asked
    assert not [each for each in trace if isinstance(each, QuestionUnderstood)]


def test_a_note_explains_an_ambiguous_period() -> None:
    asked = "In which year were sales higher than the previous year?"
    answer = asyncio.run(Pearl(Scripted(reply), as_of=MAY).ask(asked, DOCUMENT))
    assert answer.understood is not None
    assert answer.understood.question == asked
    assert "is left as it is" in answer.understood.notes[0]


def test_periods_are_those_of_the_question_with_its_turns() -> None:
    said = "What were sales in 2014 compared with the previous year?"
    found = asyncio.run(
        understand(
            "And compared with the previous year?",
            Scripted(lambda request: said),
            history=[Turn("What were sales in 2014?", "12")],
            calendar=Calendar(MAY),
        )
    )
    assert found.question == "What were sales in 2014 compared with 2013?"


def test_a_dated_domain_has_a_date_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Pearl().planner.settings.calendar is None
    dated = replace(load_domain("generic"), is_dated=True)
    monkeypatch.setattr(pipeline, "load_domain", lambda name: dated)
    before = date.today()
    calendar = Pearl().planner.settings.calendar
    assert calendar is not None
    assert before <= calendar.as_of <= date.today()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"fiscal_year_end": (9, 30)}, "has no effect without as_of"),
        ({"as_of": "2024-05-01"}, "as_of must be a date"),
        ({"as_of": MAY, "fiscal_year_end": (9, 31)}, "a month and a day"),
        ({"as_of": MAY - timedelta(days=400 * 365)}, "from 1700 to 2199"),
    ],
)
def test_settings_that_make_no_calendar_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Pearl(**settings)  # type: ignore[arg-type]
