"""Dates are computed by Python: one that a model works out is not taken for one that the text states."""

from __future__ import annotations

import asyncio
import json

import pytest

from pearl import Answer, Document, Pearl
from pearl.llm import ActionTask, Request
from tests.models import Reading

LEASE = Document(
    "The agreement of 1 March 2021 was signed in Graz. The deposit is due ten days after the agreement of "
    "1 March 2021. Mr Weiss moved in on 12 April. The keys were handed over on 12.04.2021, in April 2021. "
    "Either side ends it with 30 days' notice. The flat was inspected on 5/6/2021.",
    "lease.txt",
)
AGREEMENT = "The agreement of 1 March 2021 was signed in Graz."
DUE = "The deposit is due ten days after the agreement of 1 March 2021."
KEYS = "The keys were handed over on 12.04.2021, in April 2021."
TWO = """1. signed = FIND_EVENT(CTX, "the agreement") : When it was signed
2. keys = FIND_EVENT(CTX, "the keys") : When they were handed over
3. ans = {} : The days between"""


def run(plan: str, **replies: tuple[object, str]) -> Answer:
    def reply(request: Request) -> str:
        assert isinstance(request.task, ActionTask)
        value, quote = replies[request.task.output]
        key = "value" if request.task.gives in ("Date", "Number") else "answer"
        return json.dumps({key: value, "quote": quote})

    more = (quote for _, quote in replies.values() if quote not in LEASE.text)
    document = Document("\n".join((LEASE.text, *more)), "lease.txt")
    return asyncio.run(Pearl(Reading(reply), library="quality").execute(plan, document))


def between(signed: object, keys: object, unit: str = "days", quote: str = KEYS) -> Answer:
    plan = TWO.format(f'DATE_DIFF(signed, keys, "{unit}")')
    return run(plan, signed=(signed, AGREEMENT), keys=(keys, quote))


def test_days_between_two_dates_that_steps_found_with_the_evidence_of_both() -> None:
    answer = between("1 March 2021", "2021-04-12")
    assert (answer.text, answer.status) == ("42", "answered")
    assert [each.text for each in answer.evidence] == [AGREEMENT, KEYS]
    assert answer.parts[0].evidence == (1, 2)


@pytest.mark.parametrize(
    ("signed", "keys", "unit", "status", "text"),
    [
        ("1 March 2021", None, "days", "nothing_found", "Nothing found."),
        ("1 March 2021", "April 2021", "months", "answered", "1"),
        ("1 March 2021", "April 2021", "days", "undecided", "'April 2021' is no single day: it may be 31 to 60 days"),
        ("1 March", "2021-04-12", "days", "undecided", "not one date with its year: '1 March'"),
        ("ten days after 1 March 2021", "2021-04-12", "days", "undecided", "not one date"),
        ("2 March 2021", "2021-04-12", "days", "undecided", "the date 2 March 2021 is not in its passage"),
    ],
)  # fmt: skip
def test_what_is_no_day_of_its_quote_gives_no_number(
    signed: object, keys: object, unit: str, status: str, text: str
) -> None:
    answer = between(signed, keys, unit)
    assert answer.status == status
    assert text in (answer.why or answer.text)


def test_day_and_month_that_may_be_swapped_are_undecided_unless_it_is_the_same() -> None:
    quote = "The flat was inspected on 5/6/2021."
    days = between("1 March 2021", "5/6/2021", quote=quote)
    assert (days.status, days.value) == ("undecided", None)
    assert "the day and the month of '5/6/2021' may be swapped: it may be 66 to 96 days" in days.why
    assert between("1 March 2021", "5/6/2021", "years", quote=quote).text == "0"


@pytest.mark.parametrize(
    ("quote", "day", "status"),
    [
        ("Bob signed on 04/05/2022.", "2022-05-04", "undecided"),
        ("Bob signed on 04/05/2022.", "2022-04-05", "undecided"),
        ("Bob signed on 04/05/2022, Ann on 25/12/2022.", "2022-05-04", "answered"),
        ("Bob signed on 04/05/2022, Ann on 25/12/2022.", "2022-04-05", "undecided"),
        ("Bob signed on 25/12/2022.", "2022-12-25", "answered"),
        ("Bob signed on 4 May 2022.", "2022-05-04", "answered"),
        ("Bob signed on 04.05.2022.", "2022-05-04", "answered"),
        ("Bob signed on 2022-05-04.", "4 May 2022", "answered"),
    ],
)  # fmt: skip
def test_a_date_is_that_of_its_quote_only_if_day_and_month_cannot_be_swapped(
    quote: str, day: str, status: str
) -> None:
    answer = between("1 March 2021", day, quote=quote)
    assert answer.status == status
    assert ("may be swapped in its passage" in answer.why) == (quote == "Bob signed on 04/05/2022.")
    # So is one that stands in a text.
    told = run('1. ans = FIND_EVENT(CTX, "the signature") : When', ans=(f"On {day}.", quote))
    assert told.status == status.replace("undecided", "degraded")


def test_a_date_that_a_model_works_out_in_a_step_is_not_taken_as_copied() -> None:
    plan = '1. due = FIND_EVENT(CTX, "the deposit") : When it is due'
    answer = run(plan, due=("On 11 March 2021.", DUE))
    assert answer.status == "degraded"
    assert "the date 11 March 2021 is not in its passage; DATE_ADD computes dates" in answer.why  # fmt: skip
    # The day alone, in the form of the text, or in the plan, is stated.
    quote = "Mr Weiss moved in on 12 April."
    assert run(plan, due=("On 12 April 2021.", quote)).status == "answered"
    assert run(plan, due=("On April 12, 2021.", KEYS)).status == "answered"
    # Of what is more than a date, not every sentence is quoted.
    assert run(plan, due=("They got the keys on 12 April 2021.", DUE)).status == "answered"
    assert run(plan, due=("12 April 2021", DUE)).status == "degraded"
    asked = plan.replace("the deposit", "what happened after 11 March 2021")
    assert run(asked, due=("After 11 March 2021 they moved in.", KEYS)).status == "answered"


def test_a_date_that_python_adds_is_computed_and_typed() -> None:
    plan = """1. signed = FIND_EVENT(CTX, "the agreement") : When it was signed
2. n = FIND_TIME(CTX, "the days of notice") : How many
3. due = DATE_SUBTRACT(signed, n, "days") : The last day
4. ans = FIND_REASON(CTX, ["what had to be done by", due]) : Find it"""
    given = {
        "signed": ("1 March 2021", AGREEMENT),
        "n": ("30 days", "Either side ends it with 30 days' notice."),
    }
    answer = run(plan, **given, ans=("Notice.", AGREEMENT))
    assert (answer.status, answer.steps[2].value) == ("answered", "2021-01-30")
    twice = given | {"n": ("thirty (30) days", "He has thirty (30) days to leave.")}
    answer = run(plan, **twice, ans=("Notice.", AGREEMENT))
    assert (answer.status, answer.steps[2].value) == ("answered", "2021-01-30")
    with_weeks = run(plan.replace('n, "days"', 'n, "weeks"'), **given, ans=("Notice.", AGREEMENT))
    assert "'30 days' is not a whole number of weeks" in with_weeks.why
