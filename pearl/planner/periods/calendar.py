"""Fiscal and calendar years, quarters and months, counted from a reference date."""

from __future__ import annotations

from calendar import month_name, monthrange
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal, Self

from pearl.errors import UsageError

Unit = Literal["year", "quarter", "month"]
"""What is counted."""

Style = Literal["", "fiscal", "calendar"]
"""Which years are meant, as it is written before them; "" where fiscal years are calendar years."""

MONTHS = tuple(month_name)[1:]
"""Their English names."""

MAX_YEARS = 200
"""Periods farther from the reference date are not read."""

_AS_OF = range(1700, 2200)
"""Years of a reference date: with `MAX_YEARS`, all years have four digits."""

_PER_YEAR: dict[Unit, int] = {"year": 1, "quarter": 4, "month": 12}


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """One year, quarter or month.

    Example:
        >>> quarter = CalendarPeriod("quarter", 4 * 2024 + 2, "fiscal")
        >>> str(quarter), str(quarter.later(2)), quarter.year
        ('Q3 of fiscal 2024', 'Q1 of fiscal 2025', 2024)
    """

    unit: Unit
    index: int
    style: Style = ""

    @property
    def year(self) -> int:
        """The year that it is or lies in."""
        return self.index // _PER_YEAR[self.unit]

    def later(self, n: int) -> Self:
        """The period so many units later, or earlier if negative."""
        return replace(self, index=self.index + n)

    def __str__(self) -> str:
        number = self.index % _PER_YEAR[self.unit]
        year = f"{self.style} {self.year}".strip()
        if self.unit == "quarter":
            return f"Q{number + 1} {'of ' if self.style else ''}{year}"
        return year if self.unit == "year" else f"{MONTHS[number]} {self.year}"


@dataclass(frozen=True, slots=True)
class Calendar:
    """What relative periods refer to.

    Example:
        >>> calendar = Calendar(date(2024, 11, 5), (9, 30))
        >>> str(calendar.current("year")), str(calendar.current("year", "calendar"))
        ('fiscal 2025', 'calendar 2024')
        >>> [day.isoformat() for day in calendar.days(calendar.current("quarter"))]
        ['2024-10-01', '2024-12-31']
    """

    as_of: date
    fiscal_year_end: tuple[int, int] = (12, 31)

    def __post_init__(self) -> None:
        if not isinstance(self.as_of, date) or isinstance(self.as_of, datetime):
            raise UsageError(
                f"as_of is a date, not {self.as_of!r}", help="as datetime.date(2024, 5, 1)"
            )
        if self.as_of.year not in _AS_OF:
            raise UsageError(
                f"as_of is from {_AS_OF[0]} to {_AS_OF[-1]}, not {self.as_of}",
                help="leave it out for no reference date",
            )
        try:
            month, day = self.fiscal_year_end
            date(2000, month, day)
        except (TypeError, ValueError):
            raise UsageError(
                f"fiscal_year_end is a month and a day, not {self.fiscal_year_end!r}",
                help="as (9, 30) for 30 September",
            ) from None

    @property
    def is_fiscal(self) -> bool:
        """Whether fiscal years are not calendar years."""
        return self.fiscal_year_end != (12, 31)

    def current(self, unit: Unit, style: Style = "") -> CalendarPeriod:
        """The period in progress on the reference date."""
        if unit == "month":
            return CalendarPeriod(unit, 12 * self.as_of.year + self.as_of.month - 1)
        style = style or ("fiscal" if self.is_fiscal else "")
        # A fiscal year has no name later than the calendar year after its first day's.
        first = CalendarPeriod(unit, _PER_YEAR[unit] * self.as_of.year, style)
        return next(
            period
            for n in range(2 * _PER_YEAR[unit])
            if self.as_of <= self.days(period := first.later(n))[1]
        )

    def days(self, period: CalendarPeriod) -> tuple[date, date]:
        """The first and the last day of a period."""
        return self._end(period.later(-1)) + timedelta(days=1), self._end(period)

    def _end(self, period: CalendarPeriod) -> date:
        months = 12 // _PER_YEAR[period.unit]
        last_month = months * (period.index + 1) - 1
        is_shifted = period.unit != "month" and period.style != "calendar"
        month, day = self.fiscal_year_end if is_shifted else (12, 31)
        year, before = divmod(last_month - (12 - month), 12)
        n_days = monthrange(year, before + 1)[1]
        # 28 February as well: a year that ends on it ends on the 29th in leap years.
        is_last = day >= monthrange(2001, month)[1]
        return date(year, before + 1, n_days if is_last else min(day, n_days))
