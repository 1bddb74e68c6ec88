"""DATE_DIFF and DATE_ADD against a computation day by day, and over rows."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pytest

from pearl.actions import native
from pearl.actions.values import Scalar, Value
from pearl.documents.rows import Row, Rows
from pearl.errors import Span
from tests.examples import times

UNITS = ("days", "business days", "weeks", "months", "years")
DAY = timedelta(1)


def compute(name: str, *values: Value) -> Value:
    result = native.compute(native.known()[name], values)
    return result.value if isinstance(result, Scalar) else result


def walked(a: date, b: date) -> dict[str, int]:
    """The differences by walking from one day to the other; a month is over where its day comes again, or its last day."""
    step, sign = (DAY, 1) if b >= a else (-DAY, -1)
    first, last = min(a, b), max(a, b)
    n_days = n_business = n_months = 0
    day = a
    while day != b:
        day += step
        n_days += 1
        n_business += day.weekday() < 5
    day = first
    while day != last:
        day += DAY
        is_month_end = (day + DAY).day == 1
        n_months += day.day == first.day or (is_month_end and day.day < first.day)
    n = {"days": n_days, "business days": n_business, "weeks": n_days // 7,
         "months": n_months, "years": n_months // 12}  # fmt: skip
    return {unit: sign * each for unit, each in n.items()}


def random_day(random: random.Random, near: date | None = None) -> date:
    if near is not None:
        return near + timedelta(random.randint(-800, 800))
    if random.random() < 0.4:  # the ends of months, leap years among them
        year, month = random.choice((1999, 2000, 2020, 2023, 2024, 2100)), random.randint(1, 12)
        return date(year, month, 1) - timedelta(random.randint(0, 3))
    return date.fromordinal(
        random.randint(date(1900, 1, 1).toordinal(), date(2100, 1, 1).toordinal())
    )


def test_random_dates_have_the_difference_that_walking_gives() -> None:
    rng = random.Random(38)
    for _ in range(times(5_000)):
        a = random_day(rng)
        b = random_day(rng, a)
        expected = walked(a, b)
        for unit in UNITS:
            found = compute("DATE_DIFF", a.isoformat(), f"{b:%d %B %Y}", unit)
            assert found == expected[unit], (a, b, unit)
        unit, n = rng.choice(UNITS), rng.randint(-60, 60)
        later = compute("DATE_ADD", a.isoformat(), n, unit)
        assert compute("DATE_SUBTRACT", a.isoformat(), -n, unit) == later
        # What is added is what lies between.
        assert compute("DATE_DIFF", a.isoformat(), later, unit) == n, (a, n, unit, later)
        if unit in ("months", "years"):
            assert isinstance(later, str)
            assert int(later[-2:]) == a.day or (date.fromisoformat(later) + DAY).day == 1


@pytest.mark.parametrize(
    ("given", "result"),
    [
        (("2024-01-31", 1, "months"), "2024-02-29"),
        (("2024-02-29", 1, "years"), "2025-02-28"),
        (("29 Feb 2024", "4 years", "years"), "2028-02-29"),
        (("Friday, 3 May 2024", 1, "business days"), "2024-05-06"),
        (("2024-05-05", -1, "business days"), "2024-05-03"),
        (("2024-05-05", 0, "business days"), "2024-05-05"),
        (("March 2021", 2, "months"), "2021-05"),
        (("2021", 3, "years"), "2024"),
        (("2021-W10", 2, "weeks"), "2021-W12"),
        (("1.6.2023", "10 working days", "business days"), "2023-06-15"),
        (("2021-03-01", "thirty (30) days", "days"), "2021-03-31"),
        (("2021-03-01", "Thirty days", "days"), "2021-03-31"),
        (("2021-03-01", "one (1) month", "months"), "2021-04-01"),
        (("2021-03-01", "30 (30) days", "days"), "2021-03-31"),
    ],
)
def test_dates_are_added(given: tuple[Value, ...], result: str) -> None:
    assert compute("DATE_ADD", *given) == result


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            ("March 2021", 10, "days"),
            "'March 2021' is no single day; days are counted from a single date",
        ),
        (("1/6/2023", 1, "days"), "the day and the month of '1/6/2023' may be swapped"),
        (("9999-12-31", 1, "days"), "outside the years 1 to 9999"),
        (("0001-01-01", -1, "months"), "outside the years 1 to 9999"),
        (("2021-03-01", 10**30, "years"), "outside the years 1 to 9999"),
        (("2021-03-01", 2.5, "years"), "'2.5' is not a whole number of years"),
        (
            ("2021-03-01", "10 days", "business days"),
            "'10 days' is not a whole number of business days",
        ),
        (("2021-03-01", "thirty (40) days", "days"), "more than one number"),
        (("2021-03-01", "130 (30) days", "days"), "more than one number|below 0"),
        (("2021-03-01", "about (30) days", "days"), "below 0"),
        (("2021-03-01", "five or six days", "days"), "more than one number"),
        (("2021-03-01", "some days", "days"), "no number in 'some days'"),
        (("before 2 May 2021", 1, "days"), "no date stands alone in 'before 2 May 2021'"),
        (("2 May 2021 or 3 May 2021", 1, "days"), "2 dates stand in"),
        (("soon", 1, "days"), "no date stands in 'soon'"),
        ((["2 May 2021", "3 May 2021"], 1, "days"), "2 dates stand in"),
        (("2023-02-30", 1, "days"), "no date stands"),
    ],
)
def test_what_is_not_certain_has_a_reason(given: tuple[Value, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        compute("DATE_ADD", *given)


def test_the_century_of_a_short_year_is_noted_and_open_where_it_makes_a_difference_negative() -> (
    None
):
    found = native.compute(native.known()["DATE_DIFF"], ["01.06.23", "05.06.23", "days"])
    assert isinstance(found, Scalar)
    assert (found.value, found.rows.notes) == (4, ("years of two digits are read as 1969 to 2068",))
    with pytest.raises(ValueError, match=r"the century of '03\.05\.45' is not stated"):
        compute("DATE_DIFF", "03.05.45", "2024-01-01", "years")


def stays(*cells: tuple[str | None, str]) -> tuple[Rows, Rows]:
    rows = tuple(
        Row(f"stay {i}", {"in": one, "out": other}, (Span(9 * i, 9 * i + 6),), f"stay {i}")
        for i, (one, other) in enumerate(cells)
    )
    one, other = (
        native.compute(native.known()["FIELD"], [Rows(rows), name]) for name in ("in", "out")
    )
    assert isinstance(one, Rows)
    assert isinstance(other, Rows)
    return one, other


def test_rows_have_a_date_each_in_the_order_of_day_and_month_of_their_field() -> None:
    one, other = stays(
        ("1/6/2023", "2023-06-03"), ("13/6/2023", "2023-06-12"), ("", "2023-06-03"), (None, "2023-06-03"), ("soon", "2023-06-03"),
    )  # fmt: skip
    found = native.compute(native.known()["DATE_DIFF"], [one, other, "days"])
    assert isinstance(found, Rows)
    assert [row.value for row in found] == ["2", "-1", "", None, None]
    assert [row.fields["days"] for row in found][:2] == ["2", "-1"]
    assert found.notes == ("stay 4: no date stands in 'soon'",)
    # One date for all; and no order is guessed where no date of the field shows it.
    open_, _ = stays(("1/6/2023", ""))
    found = native.compute(native.known()["DATE_DIFF"], [open_, "2024-06-02", "years"])
    assert isinstance(found, Rows)
    assert [row.value for row in found] == ["1"]
    with pytest.raises(ValueError, match="the dates are of different rows"):
        compute("DATE_DIFF", one, open_, "days")


def test_a_row_whose_text_does_not_state_the_date_that_a_model_gives_is_undecided() -> None:
    texts = ("Due ten days after 1 March 2021.", "Due on 1 March 2021.")
    given = Rows(tuple(Row(value, {}, (Span(0, 9),), text) for value, text in zip(("11 March 2021", "2021-03-01"), texts, strict=True)), is_answered=True)  # fmt: skip
    found = native.compute(native.known()["DATE_ADD"], [given, 1, "days"])
    assert isinstance(found, Rows)
    assert [row.value for row in found] == [None, "2021-03-02"]
    assert "the date 11 March 2021 is not in its passage" in found.notes[0]
