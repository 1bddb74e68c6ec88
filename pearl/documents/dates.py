r"""Read dates and periods. A whole column is read at once, so that its order of day and month is decided once.

A closed list of forms is read and nothing is guessed: 2023-06-01 (`/` and `.` too), 1/6/2023, 1.6.23,
Feb 02, 2023, 2 February 2023, 2-Feb-23, 2. Februar 2023 in some thirty languages, optionally with a weekday before and a time after; months, quarters, weeks
of the ISO calendar and years. A number alone is not a date.

Date libraries guess what a text does not contain. python-dateutil 4 gives today's month to "5", the year 234 to "1,234",
this year to "3 May", and swaps day and month silently where they do not fit. Patterns that
prevented this would already read the dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from msgspec import Struct

from pearl.documents.lexicon import (
    APART,
    MONTH,
    MONTHS,
    ORDINALS,
    UNSPACED,
    WEEKDAYS,
    any_of,
    words_in,
)
from pearl.errors.patterns import lazy_pattern

_MAX_LENGTH = 60  # maximum characters of a date
_FIRST_OF_TWO_DIGITS = 69  # years of two digits are 1969 to 2068, as in POSIX


@cache
def _months() -> Mapping[str, int]:
    """Map lower-case names of months in languages other than English to 1 to 12."""
    lines = Path(__file__).with_name("months.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {name: int(number) for number, names in rows for name in names.split(", ")}


_ENGLISH = rf"(?P<month>{MONTH})\b\.?"
# Longer names first: `juni` is not `jun`.
_SPELLED = {normalize(form, name) for name in _months() for form in ("NFC", "NFD")}
_NAMES_OF_MONTHS = "|".join(map(re.escape, sorted(_SPELLED, key=len, reverse=True)))
_MONTH = rf"(?P<month>(?:{MONTH}|{_NAMES_OF_MONTHS})(?![^\W\d_]))\.?"
_DAY = rf"(?P<day>{any_of(ORDINALS)}|\d{{1,2}})(?:st|nd|rd|th|er|[º°ª])?"
# "3rd day of May 2024", "3 de mayo de 2024"
_OF = r"(?:[ ](?:day[ ]of|of|de|del))?"
_YEAR = r"(?P<year>\d{4}|['’]?\d{2})"
_WEEKDAY = r"(?:(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?[ ]+)?"
_TIME = (
    r"(?:(?:T|,?[ ]+(?:at[ ]+)?)\d{1,2}[:.]\d{2}(?:[:.]\d{2}(?:[.,]\d{1,9})?)?(?:[ ]?[ap]\.?m\b\.?)?"
    r"(?:[ ]?(?:Z|UTC|GMT|[a-z]{1,3}T|(?:UTC|GMT)?[-+]\d{2}:?\d{2}))?)?"
)


def _pattern(*forms: str) -> Callable[[str], re.Match[str] | None]:
    compiled = lazy_pattern("|".join(forms), re.IGNORECASE)
    return lambda text: compiled.fullmatch(text)


def _in_full(*forms: str) -> str:
    return f"{_WEEKDAY}(?:{'|'.join(forms)}){_TIME}"


_YEAR_FIRST = r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})"
_NUMBERS = r"(?P<one>\d{1,2})(?P<mark>[-/.])(?P<two>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})"
_NAMES = (
    rf"{_DAY}{_OF}[-/. ]{{1,2}}{_MONTH}{_OF}[-/, ]{{1,2}}{_YEAR}",
    rf"{_ENGLISH}[- ]{{0,2}}{_DAY}[-, ]{{1,2}}(?P<year>\d{{4}})",
    rf"(?P<year>\d{{4}})[-/, ]{{1,2}}{_MONTH}[-/ ]{{0,2}}{_DAY}",
)
_SIGNED = (
    r"(?P<year>\d{4})[ ]?[年년][ ]?(?P<month>\d{1,2})[ ]?[月월][ ]?(?P<day>\d{1,2})[ ]?[日일号號]"
)
_of_numbers = _pattern(_in_full(_NUMBERS))
_of_year = _pattern(r"(?P<year>\d{4})")
_of_one_reading = tuple(
    _pattern(form)
    for form in (
        _in_full(_YEAR_FIRST),
        _SIGNED,
        *map(_in_full, _NAMES),
        rf"{_MONTH}{_OF}[-/, ]{{1,2}}(?P<year>\d{{4}})",
        rf"(?P<year>\d{{4}})[-/, ]{{1,2}}{_MONTH}",
        r"(?P<year>\d{4})[-/](?P<month>\d{1,2})",
        r"(?P<month>\d{1,2})/(?P<year>\d{4})",
        r"(?P<year>\d{4})[ ]?[年년][ ]?(?P<month>\d{1,2})[ ]?[月월]",
        r"(?P<year>\d{4})[- ]?Q(?P<quarter>[1-4])",
        r"Q(?P<quarter>[1-4])[-/ ](?P<year>\d{4})",
        r"(?P<year>\d{4})-?W(?P<week>\d{2})",
    )
)


class Period(NamedTuple):
    """Days from the first to the last, both included; one day is a date."""

    first: date
    last: date


class FoundDate(Struct, frozen=True):
    """A date in a text; `period` is None if day and month may be swapped, or if the calendar has no such day."""

    start: int
    end: int
    period: Period | None


class Dates(Struct, frozen=True):
    """A column of dates."""

    periods: tuple[Period | None, ...]
    note: str = ""
    is_day_first: bool | None = None
    is_certain: bool = False  # some dates have this order of day and month, and none the other


class _Orders(Struct):
    """Evidence from the numeric dates of a column for the order of day and month."""

    n_day_first: int = 0
    n_month_first: int = 0
    n_open: int = 0
    n_dotted: int = 0
    example: str = ""
    has_short_years: bool = False

    def is_day_first(self) -> bool:
        """The order of the unambiguous dates, else the usual order of their notation."""
        if self.n_day_first != self.n_month_first:
            return self.n_day_first > self.n_month_first
        return 2 * self.n_dotted > self.n_open

    def note(self) -> str:
        notes: list[str] = []
        if self.n_open:
            order = "day first" if self.is_day_first() else "month first"
            if self.n_day_first and self.n_month_first:
                why = f"of the others, {self.n_day_first:,} must be day first, {self.n_month_first:,} month first"
            elif self.n_day_first or self.n_month_first:
                why = "the others allow only this order"
            else:
                why = "no date of the column decides the order"
            notes.append(f"dates such as {self.example} are read {order}: {why}")
        if self.has_short_years:
            notes.append("years of two digits are read as 1969 to 2068")
        return "; ".join(notes)


def read_dates(values: Sequence[str | None]) -> Dates:
    """Read a column."""
    orders = _Orders()
    known: dict[str, tuple[Period | None, Period | None]] = {}  # month first, day first
    for value in values:
        if value is not None and value not in known:
            known[value] = _read(value.strip(), orders)
    is_day_first = orders.is_day_first()
    periods = tuple(None if value is None else known[value][is_day_first] for value in values)
    has_order = orders.n_open + orders.n_day_first + orders.n_month_first > 0
    is_certain = (orders.n_day_first > 0) != (orders.n_month_first > 0)
    return Dates(periods, orders.note(), is_day_first if has_order else None, is_certain)


def read_period(text: str, is_day_first: bool | None = None) -> tuple[Period | None, str]:
    """Read a date, month, quarter, week or year that a plan names."""
    text = text.strip()
    if year := _of_year(text):
        return _period(year, 1, 12), ""
    orders = _Orders()
    readings = _read(text, orders)
    if is_day_first is not None and orders.n_open:
        return readings[is_day_first], ""
    return readings[orders.is_day_first()], orders.note()


@lru_cache(maxsize=10_000)
def readings(text: str, is_day_first: bool | None = None) -> tuple[Period, ...]:
    """All readings of a text as a date, month, quarter, week or year: two if day and month may be swapped, none for other texts."""
    text = text.strip()
    orders = _Orders()
    both = (_period(year, 1, 12),) * 2 if (year := _of_year(text)) else _read(text, orders)
    if orders.n_dotted or is_day_first is not None:
        both = (both[orders.n_dotted > 0 if is_day_first is None else is_day_first],) * 2
    return tuple(dict.fromkeys(filter(None, both)))


def why_unstated(text: str, shown: str) -> str:
    """Return why a date from a model is refused; "" if the text states it, in the words of `shown` or in another unambiguous form."""
    words, read, certain = _known(text)
    own = readings(shown)
    if _words(shown) in words or not certain.isdisjoint(own):
        return ""
    if not read.isdisjoint(own):
        return f"the day and the month of the date {shown[:60]} may be swapped in its passage"
    return f"the date {shown[:60]} is not in its passage; DATE_ADD computes dates"


@lru_cache(maxsize=8)
def _known(text: str) -> tuple[str, frozenset[Period], frozenset[Period]]:
    """Return the words of a text, all readings of its dates, and the readings of unambiguous dates; other dates may resolve one."""
    dates = [text[each.start : each.end] for each in find_dates(text)]
    column = read_dates(dates)
    order = column.is_day_first if column.is_certain else None
    read = [readings(each, order) for each in dates]
    certain = (each for each in read if len(each) == 1)
    return _words(text), frozenset(chain(*read)), frozenset(chain(*certain))


def _words(text: str) -> str:
    """The words of a text, separated by blanks, so that `May 2021` is found in "in May, 2021"."""
    return f" {' '.join(words_in(text.casefold()))} "


_ANY_FORM = f"{_in_full(_YEAR_FIRST, _NUMBERS, *_NAMES)}|{_SIGNED}".replace("(?P=mark)", "[-/.]")
_UNNAMED = re.sub(r"\(\?P<\w+>", "(?:", _ANY_FORM)
_ANYWHERE = lazy_pattern(
    rf"{APART}(?<![./-])(?:{_UNNAMED})(?![^\W{UNSPACED}]|[-/.]\d)", re.IGNORECASE
)


def find_dates(text: str) -> list[FoundDate]:
    """Find the days that a text names, in order; `1.6.2023` is read day first."""
    dates = []
    for match in _ANYWHERE.finditer(text):
        orders = _Orders()
        month_first, day_first = _read(match[0].strip(), orders)
        is_clear = month_first == day_first or orders.n_dotted
        dates.append(FoundDate(match.start(), match.end(), day_first if is_clear else None))
    return dates


def _read(text: str, orders: _Orders) -> tuple[Period | None, Period | None]:
    """Read a text month first and day first; both are equal if the text has only one reading."""
    if len(text) > _MAX_LENGTH:
        return None, None
    if match := _of_numbers(text):
        return _numbers(match, orders)
    match = next(filter(None, (form(text) for form in _of_one_reading)), None)
    return (None if match is None else _one_reading(match, orders),) * 2


def _one_reading(match: re.Match[str], orders: _Orders) -> Period | None:
    """A day, week, quarter or month."""
    parts = match.groupdict()
    if "day" in parts:
        year = _year(parts["year"].lstrip("'’"), orders)
        day = parts["day"].lower()
        return _day(year, _month(parts["month"]), ORDINALS.get(day) or int(day))
    if "week" in parts:
        year, week = int(parts["year"]), int(parts["week"])
        try:
            return Period(*(date.fromisocalendar(year, week, day) for day in (1, 7)))
        except (ValueError, OverflowError):  # week 54; the last week of the calendar
            return None
    last = 3 * int(parts["quarter"]) if "quarter" in parts else _month(parts["month"])
    return _period(match, last - 2 * ("quarter" in parts), last)


def _numbers(match: re.Match[str], orders: _Orders) -> tuple[Period | None, Period | None]:
    one, two, digits = match["one"], match["two"], match["year"]
    if match["mark"] == "." and len(digits) == 2 and len(one) + len(two) < 4:
        return None, None  # 1.2.10 is the number of a section
    year = _year(digits, orders)
    month_first = _day(year, int(one), int(two))
    day_first = _day(year, int(two), int(one))
    if month_first and day_first:
        if month_first != day_first:
            orders.n_open += 1
            orders.n_dotted += match["mark"] == "."
            orders.example = orders.example or match[0][match.start("one") : match.end("year")]
        return month_first, day_first
    orders.n_day_first += day_first is not None
    orders.n_month_first += month_first is not None
    return (month_first or day_first,) * 2


def _year(digits: str, orders: _Orders) -> int:
    year = int(digits)
    if len(digits) > 2:
        return year
    orders.has_short_years = True
    return year + (1900 if year >= _FIRST_OF_TWO_DIGITS else 2000)


def _month(name: str) -> int:
    if name.isdigit():
        return int(name)
    short = [month[:3] for month in MONTHS]
    return _months().get(normalize("NFC", name).lower()) or 1 + short.index(name[:3].capitalize())


def _day(year: int, month: int, day: int) -> Period | None:
    try:
        found = date(year, month, day)
    except ValueError:  # 30 February
        return None
    return Period(found, found)


def _period(match: re.Match[str], first: int, last: int) -> Period | None:
    """The period of a year from its month `first` to its month `last`."""
    year = int(match["year"])
    try:
        after = date(year + last // 12, last % 12 + 1, 1)
        return Period(date(year, first, 1), after - timedelta(days=1))
    except ValueError:  # month 13, year 0
        return None


_PARTS: dict[str, Callable[[date], str]] = {
    "day": date.isoformat,
    "week": lambda day: "{:04}-W{:02}".format(*day.isocalendar()),
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
    "weekday": lambda day: WEEKDAYS[day.weekday()],
}

DATE_PARTS = tuple(_PARTS)  # the parts that `date_part` accepts


def part_of_dates(name: str) -> tuple[str, str] | None:
    """Split the name of a part of dates, `Hired by year`, into the column and the part; None for another name."""
    rest, _, part = name.rpartition(" ")
    column, _, by = rest.rpartition(" ")
    part = part.lower().removesuffix("s")
    return (column, part) if column and by.lower() == "by" and part in _PARTS else None


def date_part(when: date | Period, part: str) -> str | None:
    """Return the day, week, month, quarter, year or weekday of a date as a group key; keys sort by time, except weekdays."""
    if part not in _PARTS:
        raise ValueError(f"unknown part of a date '{part}'; parts are {', '.join(DATE_PARTS)}")
    name = _PARTS[part]
    if isinstance(when, date):
        return name(when)
    if part == "weekday" and when.first != when.last:
        return None
    key = name(when.first)
    return key if key == name(when.last) else None


MAX_YEARS = 30
"""Years from the first to the last of a range that includes all years between; a longer range counts as its ends."""

_YEAR_OF_FOUR = r"(?:1[89]|20)\d\d"
_YEARS = lazy_pattern(  # 2008 to 2010, FY2008-09, 2008/09
    rf"(?<![\w.,$€£¥])(?:FY\s?)?(?P<first>{_YEAR_OF_FOUR})\s*(?P<mark>[-–—/]|to|through|until|and)\s*"
    rf"(?:FY\s?)?(?P<last>{_YEAR_OF_FOUR}|(?<=[-–—/])\d\d)(?!\w|\s?%|[-.,]\d)",
    re.IGNORECASE,
)
_ONE_YEAR = lazy_pattern(  # FY2008, fy '09
    rf"(?<![\w.,$€£¥])(?:FY\s?)?(?P<year>{_YEAR_OF_FOUR})(?!\w|\s?%|[.,]\d)|\bFY\s?['’]?(?P<short>\d\d)\b",
    re.IGNORECASE,
)


def years_in(text: str) -> tuple[int, ...]:
    """Return the years from 1800 that a text names, ascending, with all years of ranges; amounts and percentages are not years."""
    found: set[int] = set()
    for match in _YEARS.finditer(text):
        first, last = int(match["first"]), int(match["last"])
        if last < 100:
            last += first - first % 100
        before = text[max(match.start() - 20, 0) : match.start()].rstrip().casefold()
        is_range = match["mark"].lower() != "and" or before.endswith("between")
        if is_range and first < last <= first + MAX_YEARS:
            found.update(range(first, last + 1))
    for match in _ONE_YEAR.finditer(text):
        found.add(int(match["year"] or f"20{match['short']}"))
    return tuple(sorted(found))
