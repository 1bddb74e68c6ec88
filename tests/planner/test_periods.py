"""Relative periods: what each phrase is read as, and what stays as it is."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import UsageError
from pearl.planner.periods import MAX_LENGTH, Calendar, resolve_periods

MAY = Calendar(date(2024, 5, 1))
FISCAL = Calendar(date(2024, 11, 5), (9, 30))

READ = {
    # The examples of the report on a planning agent that the rules go back to.
    "What is the revenue last year ?": "What is the revenue in 2023 ?",
    "What is the DISH Network Corporation's current ratio in 13 years ago?":
        "What is the DISH Network Corporation's current ratio in 2011?",
    "What was the revenue of Apple last year?": "What was the revenue of Apple in 2023?",
    "What is the revenue 5 years ago?": "What is the revenue in 2019?",
    # From the reference date.
    "What are sales this year?": "What are sales in 2024?",
    "What will sales be next year?": "What will sales be in 2025?",
    "Compare this year with last year.": "Compare 2024 with 2023.",
    "What was last year's margin?": "What was 2023's margin?",
    "What was Apple's last year revenue?": "What was Apple's 2023 revenue?",
    "Last year, what was the margin?": "In 2023, what was the margin?",
    "How much was it (last year)?": "How much was it (2023)?",
    "WHAT WERE SALES LAST YEAR?": "WHAT WERE SALES in 2023?",
    "What were sales the year before last?": "What were sales in 2022?",
    "What were sales a year ago?": "What were sales in 2023?",
    "What were sales twenty-five years ago?": "What were sales in 1999?",
    "What were sales a couple of years ago?": "What were sales in 2022?",
    "What were sales a decade ago?": "What were sales in 2014?",
    "How did sales grow from five years ago to last year?": "How did sales grow from 2019 to 2023?",
    "What will sales be two years from now?": "What will sales be in 2026?",
    "What was it in the previous fiscal year?": "What was it in fiscal 2023?",
    "What was it in the latest fiscal year?": "What was it in fiscal 2023?",
    "What was it in the most recent financial year?": "What was it in fiscal 2023?",
    "What was it in its last fiscal year?": "What was it in fiscal 2023?",
    "What was it last FY?": "What was it in fiscal 2023?",
    "What was it last calendar year?": "What was it in calendar 2023?",
    "What was debt at last year-end?": "What was debt at the end of 2023?",
    "What was debt at the end of last year?": "What was debt at the end of 2023?",
    "What were sales over the last three years?": "What were sales from 2021 to 2023?",
    "What were sales in the past 5 years?": "What were sales from 2019 to 2023?",
    "Over the last 2 full years, did sales grow?": "From 2022 to 2023, did sales grow?",
    "What is the average of the last 3 years' sales?": "What is the average of 2021 to 2023 sales?",
    "What were sales in the past decade?": "What were sales from 2014 to 2023?",
    "How do sales develop this decade?": "How do sales develop from 2020 to 2029?",
    "What is planned for the next two years?": "What is planned from 2025 to 2026?",
    "What were sales last quarter?": "What were sales in Q1 2024?",
    "What were sales two quarters ago?": "What were sales in Q4 2023?",
    "What were sales over the last 4 quarters?": "What were sales from Q2 2023 to Q1 2024?",
    "What were sales last month?": "What were sales in April 2024?",
    "What were sales in the last 12 months?": "What were sales from May 2023 to April 2024?",
    "What were sales in Q3 of last year?": "What were sales in Q3 of 2023?",
    "What were sales in the third quarter last year?": "What were sales in the third quarter of 2023?",
    "What were sales in March last year?": "What were sales in March 2023?",
    "What were sales in the year to date?": "What were sales from 2024-01-01 to 2024-05-01?",
    "What are sales YTD?": "What are sales from 2024-01-01 to 2024-05-01?",
    # From a year that the question names, or that was put in.
    "What did it change by in 2013 from the previous year?": "What did it change by in 2013 from 2012?",
    "How much more than the year before was it in 2014?": "How much more than 2013 was it in 2014?",
    "What was it in 2012, and two years prior to that?": "What was it in 2012, and 2010?",
    "What was it in 2007 and two years earlier?": "What was it in 2007 and 2005?",
    "What was it in 2007 and a year later?": "What was it in 2007 and 2008?",
    "What was it the year before 2013?": "What was it in 2012?",
    "What was it three years before 2015?": "What was it in 2012?",
    "What was it in the three years before 2015?": "What was it from 2012 to 2014?",
    "What was it in fiscal 2013 and the prior year?": "What was it in fiscal 2013 and fiscal 2012?",
    "What was it in FY13 and the year before?": "What was it in FY13 and fiscal 2012?",
    "What was it in 2010 and the following two years?": "What was it in 2010 and 2011 to 2012?",
    "What was it in 2010 and the next year?": "What was it in 2010 and 2011?",
    "Compared with the previous year, what was it last year?": "Compared with 2022, what was it in 2023?",
    "What was it last year and the year before?": "What was it in 2023 and 2022?",
    "What was it two years before last year?": "What was it in 2021?",
    "What was it in Q1 2013 against the preceding quarter?": "What was it in Q1 2013 against Q4 2012?",
    "What was it last quarter and the previous quarter?": "What was it in Q1 2024 and Q4 2023?",
    "What was it in March 2013 and the previous month?": "What was it in March 2013 and February 2013?",
    "The year ended 31.12.2013 versus the previous year?": "The year ended 31.12.2013 versus 2012?",
    "What was it in 2012 and the same quarter of the prior year?":
        "What was it in 2012 and the same quarter of 2011?",
}  # fmt: skip

KEPT = (
    "What was the revenue of Apple in 2022?",
    "How did revenue change from 2010 to 2013?",
    "What were sales in the 1990s?",
    "What is the current ratio?",
    'Was "last year" in the title?',
    "Was ‘the previous year’ meant?",
    "Who directed Last Year at Marienbad?",
    "What was revenue more than three years ago?",
    "What was revenue two or three years ago?",
    "What was revenue 1.5 years ago?",
    "What was revenue a few years ago?",
    "What was revenue 5,000 years ago?",
    "What was it in the last quarter of 2012?",
    "What was it in the last year of the lease?",
    "What was it in the last year for which there are figures?",
    "What is the latest year in the table?",
    "What was it in its last year as a company?",
    "What is the last year included in the remaining terms of the facility leases?",
    "What is the last year?",
    "What was its change in that last year?",
    "What part of the obligations is due within the next year?",
    "What was it last year (2013)?",
    "What was it in the last fiscal year ended 30 June 2012?",
    "What was it two years before the merger?",
    "What was it in the year before the merger?",
    "What were prior year adjustments?",
    "What is the YTD 2023 revenue?",
    "What is the year-over-year growth?",
    "What is the last-year effect?",
    "What was it in any previous year?",
    "Did the last several years differ?",
)

OPEN = {
    "In which year was it higher than the previous year?": "asks about several years",
    "From 2010 to 2013, and the previous year?": "several years precede it",
    "Than the year before, was it more in 2010 or in 2013?": "the year to count from is ambiguous",
    "In 2012/13 and the previous year?": "the year to count from is ambiguous",
    "In 2012 and the previous quarter?": "the quarter to count from is ambiguous",
    "What was it the following year?": "the year to count from is ambiguous",
    "As of 31 March 2012, what was it last year?": "gives its own date",
    "In 2012 and 500 years earlier?": "more than 200 years from 2024-05-01",
}


@pytest.mark.parametrize(("asked", "question"), READ.items())
def test_relative_periods_become_absolute(asked: str, question: str) -> None:
    found, notes = resolve_periods(asked, MAY)
    assert found == question
    assert notes
    assert all(" read as " in note for note in notes)


@pytest.mark.parametrize("asked", KEPT)
def test_other_phrases_stay_without_a_note(asked: str) -> None:
    assert resolve_periods(asked, MAY) == (asked, ())


@pytest.mark.parametrize(("asked", "why"), OPEN.items())
def test_ambiguous_phrases_stay_with_a_note(asked: str, why: str) -> None:
    found, (note,) = resolve_periods(asked, MAY)
    assert found == asked
    assert "is left as it is" in note
    assert why in note


@pytest.mark.parametrize(
    ("asked", "question"),
    [
        ("What was it last year?", "What was it in fiscal 2024?"),
        ("What is it this year?", "What is it in fiscal 2025?"),
        ("What was it last fiscal year?", "What was it in fiscal 2024?"),
        ("What was it last calendar year?", "What was it in calendar 2023?"),
        ("What was it 13 years ago?", "What was it in fiscal 2012?"),
        ("What was it in the last 2 years?", "What was it from fiscal 2023 to 2024?"),
        ("What was it last quarter?", "What was it in Q4 of fiscal 2024?"),
        ("What was it last month?", "What was it in October 2024?"),
        ("What was it in March last year?", "What was it in March 2023?"),
        ("What was it year to date?", "What was it from 2024-10-01 to 2024-11-05?"),
        ("What was it in 2013 and the year before?", "What was it in 2013 and 2012?"),
    ],
)
def test_bare_years_are_fiscal_where_an_end_is_given(asked: str, question: str) -> None:
    assert resolve_periods(asked, FISCAL)[0] == question


def test_notes_say_what_was_chosen_and_why() -> None:
    asked = "What was it last year, in the last quarter and over the last 2 years?"
    assert resolve_periods(asked, FISCAL)[1] == (
        '"last year" read as fiscal 2024, 2023-10-01 to 2024-09-30 '
        "(as of 2024-11-05; fiscal years end on 09-30)",
        '"the last quarter" read as Q4 of fiscal 2024, 2024-07-01 to 2024-09-30 '
        "(as of 2024-11-05; fiscal years end on 09-30)",
        '"the last 2 years" read as fiscal 2023 to 2024, 2022-10-01 to 2024-09-30 '
        "(as of 2024-11-05; fiscal years end on 09-30; without fiscal 2025, which is in progress)",
    )
    asked = "What was it in the past year, and the year before that?"
    assert resolve_periods(asked, MAY)[1] == (
        '"the past year" read as 2023 (as of 2024-05-01; the last full one, not the twelve months '
        "before that day)",
        '"the year before that" read as 2022 (counted from 2023)',
    )


@pytest.mark.parametrize(
    ("end", "as_of", "year", "days"),
    [
        ((9, 30), "2024-09-30", "fiscal 2024", "2023-10-01 2024-09-30"),
        ((9, 30), "2024-10-01", "fiscal 2025", "2024-10-01 2025-09-30"),
        ((2, 28), "2024-02-29", "fiscal 2024", "2023-03-01 2024-02-29"),
        ((2, 29), "2023-02-28", "fiscal 2023", "2022-03-01 2023-02-28"),
        ((2, 28), "2024-03-01", "fiscal 2025", "2024-03-01 2025-02-28"),
        ((4, 5), "2024-04-06", "fiscal 2025", "2024-04-06 2025-04-05"),
        ((12, 31), "2024-12-31", "2024", "2024-01-01 2024-12-31"),
    ],
)
def test_days_of_fiscal_years(end: tuple[int, int], as_of: str, year: str, days: str) -> None:
    calendar = Calendar(date.fromisoformat(as_of), end)
    now = calendar.current("year")
    assert str(now) == year
    assert " ".join(map(str, calendar.days(now))) == days


ENDS = st.dates(date(2000, 1, 1), date(2000, 12, 31)).map(lambda day: (day.month, day.day))
CALENDARS = st.builds(Calendar, st.dates(date(1700, 1, 1), date(2199, 12, 31)), ENDS)


@given(CALENDARS, st.sampled_from(["year", "quarter", "month"]), st.integers(-200, 200))
def test_periods_follow_each_other_without_a_gap(calendar: Calendar, unit: str, n: int) -> None:
    now = calendar.current(unit)  # type: ignore[arg-type]
    first, last = calendar.days(now)
    assert first <= calendar.as_of <= last
    period = now.later(n)
    assert calendar.days(period)[1] + timedelta(days=1) == calendar.days(period.later(1))[0]


@pytest.mark.parametrize(
    "wrong",
    [
        (datetime(2024, 5, 1), (12, 31)),
        ("2024-05-01", (12, 31)),
        (date(1066, 5, 1), (12, 31)),
        (date(2024, 5, 1), (13, 1)),
        (date(2024, 5, 1), (2, 30)),
        (date(2024, 5, 1), 9),
    ],
)
def test_invalid_calendars_are_refused(wrong: tuple[object, object]) -> None:
    with pytest.raises(UsageError):
        Calendar(*wrong)  # type: ignore[arg-type]


PHRASES = st.sampled_from(
    [*["last", "this", "next", "previous", "prior", "past", "current", "the", "in", "of", "year", "years", "quarter", "month", "ago", "before", "after", "that", "and", "to", "fiscal", "two", "3", "500", "2012", "2013,", "Q1", "2014", "1999", "earlier", "later", "(", ")", '"', "'", "?", ".", "as", "decade", "each"]]
)  # fmt: skip
QUESTIONS = st.lists(PHRASES | st.text(max_size=4), max_size=14).map(" ".join)


@given(QUESTIONS, CALENDARS)
def test_a_question_with_absolute_periods_stays_as_it_is(asked: str, calendar: Calendar) -> None:
    once, notes = resolve_periods(asked, calendar)
    again, others = resolve_periods(once, calendar)
    assert again == once
    assert all("is left as it is" in note for note in others)
    if once != asked:
        assert any(" read as " in note for note in notes)


def test_a_very_long_question_stays() -> None:
    asked = "What was it last year? " * MAX_LENGTH
    assert resolve_periods(asked, MAY) == (asked, ())
