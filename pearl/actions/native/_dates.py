"""Native actions on dates. In a month without the day, the last day is taken: 31 January + 1 month = 28 February."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import product
from typing import NamedTuple

from msgspec.structs import replace

from pearl.actions.columns import MAX_SHOWN
from pearl.actions.native import Family
from pearl.actions.values import Scalar, Value, as_text, behind
from pearl.documents.comparisons import is_no_key
from pearl.documents.dates import (
    DATE_PARTS,
    Period,
    date_part,
    find_dates,
    read_dates,
    readings,
    why_unstated,
)  # fmt: skip
from pearl.documents.lexicon import SMALL_NUMBERS, singular
from pearl.documents.numbers import UnclearNumberError, once, quoted, read_number
from pearl.documents.rows import Rows, shortened, unused_name
from pearl.dsl.signatures import Parameter, ValueType

PLUGINS = Family()


def _weekdays(day: int) -> int:
    """The number of days from Monday to Friday among the days 1 to `day` of the calendar; day 1 is a Monday."""
    return day // 7 * 5 + min(day % 7, 5)


def _business_days(a: date, b: date) -> int:
    """Count the business days after A up to and including B; the other units are counted in the same way."""
    is_back = b < a
    return _weekdays(b.toordinal() - is_back) - _weekdays(a.toordinal() - is_back)


def _add_business_days(day: date, n: int) -> date:
    is_back = n < 0
    weeks, rest = divmod(_weekdays(day.toordinal() - is_back) + n - 1 + is_back, 5)
    return date.fromordinal(7 * weeks + rest + 1) if n else day


def _add_months(day: date, n: int) -> date:
    from calendar import monthrange  # late: `pearl check` imports all actions

    year, month = divmod(12 * day.year + day.month - 1 + n, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _months(a: date, b: date) -> int:
    """Count whole months, starting at the earlier day; negative if B is before A."""
    if b < a:
        return -_months(b, a)
    n = 12 * (b.year - a.year) + b.month - a.month
    return n - (b < _add_months(a, n))


_UNITS: dict[str, tuple[Callable[[date, date], int], Callable[[date, int], date]]] = {
    "days": (lambda a, b: (b - a).days, lambda day, n: day + timedelta(n)),
    "business days": (_business_days, _add_business_days),
    "weeks": (lambda a, b: int((b - a).days / 7), lambda day, n: day + timedelta(7 * n)),
    "months": (_months, _add_months),
    "years": (lambda a, b: int(_months(a, b) / 12), lambda day, n: _add_months(day, 12 * n)),
}
_UNIT = Parameter("UNIT", choices=tuple(_UNITS))
_A_AND_B = (Parameter("A", reads="date"), Parameter("B", reads="date"), _UNIT)
_DATE_AND_N = (Parameter("DATE", reads="date"), Parameter("N", reads="figure"), _UNIT)
_SHORT = "years of two digits are read as 1969 to 2068"


class _Date(NamedTuple):
    text: str
    periods: tuple[Period, ...]

    @property
    def flaw(self) -> str:
        if len(self.periods) > 1:
            return f"the day and the month of {quoted(self.text)} may be swapped"
        return f"{quoted(self.text)} is no single day"

    @property
    def has_short_year(self) -> bool:
        return not re.search(r"\d{4}", self.text)


@PLUGINS.action(
    "DATE_DIFF", _A_AND_B,
    f"Return how many whole UNIT date B is after date A, below 0 if before: {', '.join(_UNITS)}; years of an age, too",
    traits=("figures",),
)  # fmt: skip
def date_diff(a: Value, b: Value, unit: str) -> Value:
    """Count the whole units from one date to another; for rows, in each row."""

    def between(dates: Sequence[_Date]) -> int:
        ends = [{day for each in one.periods for day in (each.first, each.last)} for one in dates]
        found = {_UNITS[unit][0](*days) for days in product(*ends)}
        if len(found) > 1:
            flaw = next(one.flaw for one, days in zip(dates, ends, strict=True) if len(days) > 1)
            raise UnclearNumberError(f"{flaw}: it may be {min(found):,} to {max(found):,} {unit}")
        short = [quoted(one.text) for one in dates if one.has_short_year]
        if short and min(found) < 0:  # born on 3.5.45
            raise UnclearNumberError(f"the century of {short[0]} is not stated")
        return found.pop()

    return _computed([a, b], unit, unit, between)


def _moved(sign: int, when: Value, n: Value, unit: str) -> Value:
    """Return the date N units after another, or before it if `sign` is -1; for rows, in each row."""

    def later(dates: Sequence[_Date]) -> str:
        ((text, periods),) = dates
        number = sign * _whole(n, unit)
        ends = periods[0].first, periods[0].last
        try:
            first, last = (_UNITS[unit][1](day, number) for day in ends)
        except (ValueError, OverflowError):
            why = f"{number:,} {unit} from {quoted(text)} is outside the years 1 to 9999"
            raise UnclearNumberError(why) from None
        # Months added to a month give a month; days can only be added to a day.
        part = next(each for each in DATE_PARTS if date_part(periods[0], each))
        found = date_part(Period(first, last), part)
        if len(periods) > 1 or found is None:
            raise UnclearNumberError(f"{dates[0].flaw}; {unit} are counted from a single date")
        return found

    return _computed([when], unit, "date", later, n)


for _name, _sign, _where in (("DATE_ADD", 1, "after"), ("DATE_SUBTRACT", -1, "before")):
    PLUGINS.action(
        _name, _DATE_AND_N, f"Return the date that is N UNIT {_where} DATE",
        returns=ValueType.DATE, traits=("figures",),
    )(partial(_moved, _sign))  # fmt: skip


def _whole(value: Value, unit: str) -> int:
    """Read a whole number without a unit, or with this unit."""
    words = once(_text(value)).split()
    text = " ".join(str(SMALL_NUMBERS.get(word.casefold(), word)) for word in words)
    number = read_number(text)
    of = re.findall(r"[^\W\d_]+", text.casefold().replace("working", "business"))
    if {*map(singular, of)} not in (set(), {*map(singular, unit.split())}) or number % 1:
        raise UnclearNumberError(f"{quoted(text)} is not a whole number of {unit}")
    return int(number)


def _computed(
    dates: Sequence[Value], unit: str, heading: str,
    compute: Callable[[Sequence[_Date]], int | str], *beside: Value,
) -> Value:  # fmt: skip
    """Compute a value from single dates, or one for each row; two arguments with rows must have the same rows."""
    if unit not in _UNITS:
        raise ValueError(f"unknown unit {quoted(unit)}; units are {', '.join(_UNITS)}")
    notes = ["business days are Monday to Friday, public holidays included"] * ("busi" in unit)
    collections = [each for each in dates if isinstance(each, Rows)]
    if not collections:
        read = [_read(_text(each)) for each in dates]
        single = compute(read)
        notes += [_SHORT] * any(each.has_short_year for each in read)
        rows = behind([*dates, *beside])
        if rows is None and not notes:
            return single
        return Scalar(single, (Rows(()) if rows is None else rows).noting(*notes))
    first = collections[0]
    if len({(len(each), *(row.key for row in each.every)) for each in collections}) > 1:
        raise ValueError("the dates are of different rows: take both with FIELD from the same rows")
    columns = zip(*(_cells(each, len(first.every)) for each in dates), strict=True)
    heading, computed = unused_name(heading, first.names), []
    for row, cells in zip(first.every, columns, strict=True):
        texts = [text for text, *_ in cells if text is not None]
        value: int | str | None = "" if any(map(is_no_key, texts)) else None
        try:
            if value is None and len(texts) == len(cells):
                read = [_read(text or "", *rest) for text, *rest in cells]
                value = compute(read)
                notes += [_SHORT] * any(each.has_short_year for each in read)
        except UnclearNumberError as error:
            notes.append(f"{shortened(row.text, 60)}: {error}")
        computed.append(row.with_column(heading, None if value is None else str(value)))
    n = len(first)
    return replace(
        first, rows=tuple(computed[:n]), doubtful=tuple(computed[n:]), column=heading,
        is_answered=False, columns=(), totals=(), stated=None,
    ).noting(*list(dict.fromkeys(notes))[:MAX_SHOWN])  # fmt: skip


def _cells(value: Value, n: int) -> list[tuple[str | None, bool | None, str | None]]:
    """The texts of `n` dates, each with the order of day and month in its column and, if a model read it, the text of its row."""
    if not isinstance(value, Rows):
        return [(_text(value), None, None)] * n
    dates = read_dates([row.value for row in value.every])
    order = dates.is_day_first if dates.is_certain else None
    return [(row.value, order, row.text if value.is_answered else None) for row in value.every]


def _text(value: Value) -> str:
    if isinstance(value, Rows) or (isinstance(value, Scalar) and value.rows.undecided):
        raise UnclearNumberError(f"one certain value is needed: {quoted(as_text(value))}")
    value = value.value if isinstance(value, Scalar) else value
    return value[0] if isinstance(value, list) and len(value) == 1 else as_text(value)


def _read(text: str, is_day_first: bool | None = None, source: str | None = None) -> _Date:
    """Read a text that is only a date; other words may change its meaning: `before 2 May 2021`."""
    if not (periods := readings(text, is_day_first)):
        n = len(find_dates(text))
        found = f"{n} dates stand" if n > 1 else "no date stands alone" if n else "no date stands"
        raise UnclearNumberError(f"{found} in {quoted(text)}")
    if source is not None and (why := why_unstated(source, text)):
        raise UnclearNumberError(why)
    return _Date(text, periods)
