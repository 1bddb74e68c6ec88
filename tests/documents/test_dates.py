"""Dates: what is written is read, in one order for a column, and nothing is guessed."""

from __future__ import annotations

from datetime import date, timedelta
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.dates import (
    DATE_PARTS,
    Dates,
    Period,
    date_part,
    find_dates,
    read_dates,
    read_period,
    why_unstated,
)

DAY = date(2023, 2, 3)

DAYS = st.dates(date(1969, 1, 1), date(2068, 12, 31))


def days(read: Dates) -> list[date | None]:
    return [each.first if each and each.first == each.last else None for each in read.periods]


FORMS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.000001+02:00", "%B %d, %Y",
    "%b %d, %Y", "%b. %d %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d. %B %Y", "%A, %d %B %Y", "%a %b %d, %Y",
    "%Y %b %d", "%d %b %Y, %H:%M", "%B %d, %Y at %I:%M %p", "%dth of %B, %Y", "%B %dth, %Y", "%d %b '%y",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@given(day=DAYS)
def test_a_date_is_read_however_it_is_written(form: str, day: date) -> None:
    read = read_dates([f" {day.strftime(form)} "])
    assert days(read) == [day]
    assert ("two digits" in read.note) == ("%y" in form)


MAY, FEBRUARY = date(2024, 5, 3), date(2024, 2, 1)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("3. Mai 2024", MAY), ("3 mai 2024", MAY), ("1er février 2024", FEBRUARY), ("1 févr. 2024", FEBRUARY),
        ("3 de mayo de 2024", MAY), ("1 FEBRERO 2024", FEBRUARY), ("3 maggio 2024", MAY), ("1º febbraio 2024", FEBRUARY),
        ("3 mei 2024", MAY), ("3 de maio de 2024", MAY), ("1 de fevereiro de 2024", FEBRUARY), ("3 maja 2024", MAY),
        ("1 lutego 2024", FEBRUARY), ("3 мая 2024", MAY), ("1 февраля 2024", FEBRUARY), ("٣ مايو ٢٠٢٤", MAY),
        ("3 मई 2024", MAY), ("3 Μαΐου 2024", MAY), ("3rd day of May 2024", MAY), ("third of May 2024", MAY), ("May third, 2024", MAY), ("3rd day of May, 2024", MAY),
    ],
)  # fmt: skip
def test_a_date_of_any_language_is_read_and_found(text: str, day: date) -> None:
    for same in (text, normalize("NFD", text)):
        assert days(read_dates([same])) == [day]
        (found,) = find_dates(f"Signed on this {same} by both.")
        assert found.period == Period(day, day)


@pytest.mark.parametrize(
    "text",
    [
        "3 mayor 2024", "3 maison 2024", "3 men 2024", "3 Mai 20245", "30 février 2024", "3 days of May 2024",
        "3 listopada 2024",  # October in Croatian, November in Polish
    ],
)  # fmt: skip
def test_words_near_names_of_months_make_no_day(text: str) -> None:
    assert days(read_dates([text])) == [None]


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "5", "12", "2023", "1,234", "99.5", "20230203", "1.2.3", "1.2.10", "3 May", "May", "Friday",
        "12:30", "2023-02-30", "2023-13-01", "31/02/2023", "0000-01-01", "2023-02-03-04", "v2023-02-03",
        "between 2023-02-03 and 2023-02-04", "2023-02/03", "not 2023-02-03", "2023-02-03 or so",
        "1" * 50 + "/1/2023", "Marc 3, 2023", "³/2/2023", "-1/2/2023", "x" * 100,
    ],
)  # fmt: skip
def test_nothing_is_guessed(text: str) -> None:
    assert days(read_dates([text])) == [None]


@given(
    st.lists(
        st.one_of(st.none(), st.text(max_size=20), st.text("0123456789-/.: TWQ", max_size=12)),
        max_size=5,
    )
)
def test_any_column_is_read(values: list[str | None]) -> None:
    read = read_dates(values)
    assert len(read.periods) == len(values)
    for value in values:
        period, _ = read_period(value or "")
        assert period is None or period.first <= period.last


@pytest.mark.parametrize(
    ("values", "expected", "is_day_first", "note"),
    [
        (["03/02/2023", "25/02/2023"], DAY, True, "dates such as 03/02/2023 are read day first: the others allow only this order"),
        (["02/03/2023", "02/25/2023"], DAY, False, "dates such as 02/03/2023 are read month first: the others allow only this order"),
        (["02/03/2023", None, "x"], DAY, False, "dates such as 02/03/2023 are read month first: no date of the column decides the order"),
        (["03.02.2023"], DAY, True, "dates such as 03.02.2023 are read day first: no date of the column decides the order"),
        (["03/02/2023", "25/02/2023", "26/02/2023", "02/25/2023"], DAY, True,
         "dates such as 03/02/2023 are read day first: of the others, 2 must be day first, 1 month first"),
        (["03/02/23", "25/02/23"], DAY, True,
         "dates such as 03/02/23 are read day first: the others allow only this order; years of two digits are read as 1969 to 2068"),
        (["2023-02-03", "2/2/2023"], DAY, None, ""),
        (["Feb 3, 2023", "25/02/2023"], DAY, True, ""),
    ],
)  # fmt: skip
def test_the_order_is_decided_once_and_noted(
    values: list[str | None], expected: date, is_day_first: bool | None, note: str
) -> None:
    read = read_dates(values)
    assert days(read)[0] == expected
    assert (read.is_day_first, read.note) == (is_day_first, note)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2023", "2023-01-01", "2023-12-31"),
        ("2023-06", "2023-06-01", "2023-06-30"),
        ("06/2023", "2023-06-01", "2023-06-30"),
        ("June 2023", "2023-06-01", "2023-06-30"),
        ("Feb. 2024", "2024-02-01", "2024-02-29"),
        ("2023 December", "2023-12-01", "2023-12-31"),
        ("Q2 2023", "2023-04-01", "2023-06-30"),
        ("2023-Q4", "2023-10-01", "2023-12-31"),
        ("2023-W01", "2023-01-02", "2023-01-08"),
        ("2023-06-05", "2023-06-05", "2023-06-05"),
    ],
)
def test_a_plan_may_name_a_period(text: str, first: str, last: str) -> None:
    expected = Period(date.fromisoformat(first), date.fromisoformat(last))
    assert read_period(text) == (expected, "")


@pytest.mark.parametrize(
    "text", ["", "13/2023", "2023-13", "2023-Q5", "2023-W54", "0000", "soon", "9999-W53"]
)
def test_a_text_that_is_not_a_period_is_none(text: str) -> None:
    assert read_period(text)[0] is None


def test_a_literal_is_read_in_the_order_of_its_column() -> None:
    order = read_dates(["25/02/2023"]).is_day_first
    assert read_period("03/02/2023", order) == (Period(DAY, DAY), "")
    assert read_period("02/13/2023", order) == (Period(date(2023, 2, 13), date(2023, 2, 13)), "")
    period, note = read_period("02/03/2023")
    assert (period, bool(note)) == (Period(DAY, DAY), True)


@pytest.mark.parametrize("part", DATE_PARTS)
@given(a=DAYS, b=DAYS)
def test_keys_sort_as_their_days_do_and_can_be_read(part: str, a: date, b: date) -> None:
    a, b = sorted((a, b))
    one, other = date_part(a, part), date_part(b, part)
    assert one
    assert other
    if part == "weekday":
        assert date_part(a + timedelta(days=7), part) == one
        return
    assert one <= other
    period, _ = read_period(one)
    assert period
    assert period.first <= a <= period.last
    assert date_part(period, part) == one


def test_a_period_has_only_parts_that_contain_it() -> None:
    june, _ = read_period("June 2023")
    assert june
    assert [date_part(june, part) for part in DATE_PARTS] == [
        None,
        None,
        "2023-06",
        "2023-Q2",
        "2023",
        None,
    ]
    with pytest.raises(ValueError, match="unknown part of a date 'hour'; parts are day, week"):
        date_part(DAY, "hour")


@pytest.mark.parametrize(
    ("text", "shown", "is_stated"),
    [
        ("It was the fourteenth of November 1926.", "14 November 1926", True),
        ("It was the fourteenth of November 1926.", "4 November 1926", False),
        ("She left on May 21st, 2020.", "21 May 2020", True),
        ("She left in May, 2020.", "May 2020", True),
    ],
)
def test_a_day_in_words_is_the_day_in_digits(text: str, shown: str, is_stated: bool) -> None:
    assert (why_unstated(text, shown) == "") == is_stated
