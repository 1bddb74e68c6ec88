"""The day of a question, as its planner is told it."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest
from msgspec.structs import replace

from pearl import Document, Pearl, pipeline
from pearl.data.domains import load_domain
from pearl.errors import UsageError
from pearl.llm import ActionTask, PlanTask, Request
from pearl.llm.backends.scripted import Scripted

MAY = date(2024, 5, 1)
DOCUMENT = Document("Sales were 12 in 2023 and 10 in 2022.", "report.txt")


def reply(request: Request) -> str:
    if isinstance(request.task, PlanTask):
        return 'New actions:\n- None\n\n1. ans = FIND(CTX, "sales") : Find them'
    assert isinstance(request.task, ActionTask)
    return "12 in 2023"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, ""),
        ({"as_of": MAY}, "The question is asked on 2024-05-01. Where"),
        ({"as_of": MAY, "fiscal_year_end": (4, 30)}, "in fiscal 2025 (fiscal years end on 04-30)"),
        ({"as_of": MAY, "fiscal_year_end": (5, 1)}, "in fiscal 2024 (fiscal years end on 05-01)"),
    ],
)
def test_the_planner_is_told_the_day_of_the_question(settings: dict[str, Any], told: str) -> None:
    model = Scripted(reply)
    answer = asyncio.run(Pearl(model, **settings).ask("What were sales last year?", DOCUMENT))
    assert answer.question == "What were sales last year?"
    assert told in model.requests[0].prompt
    assert ("is asked on" in model.requests[0].prompt) == bool(told)


def test_a_dated_domain_has_a_date_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Pearl().planner.settings.as_of is None
    dated = replace(load_domain("generic"), is_dated=True)
    monkeypatch.setattr(pipeline, "load_domain", lambda name: dated)
    before = date.today()
    as_of = Pearl().planner.settings.as_of
    assert as_of is not None
    assert before <= as_of <= date.today()


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"fiscal_year_end": (9, 30)}, "has no effect without as_of"),
        ({"as_of": "2024-05-01"}, "as_of: expected date or None"),
        ({"as_of": MAY, "fiscal_year_end": (9, 31)}, "a month and a day"),
    ],
)
def test_settings_that_are_no_days_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Pearl(**settings)  # type: ignore[arg-type]
