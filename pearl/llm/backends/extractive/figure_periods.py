"""Periods as headings, names of rows and questions write them, as far as they can be compared."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_QUARTERS = ("first", "second", "third", "fourth")
_DAY_OF = re.compile(
    rf"\b({_MONTH})\b[ .]*(\d{{1,2}})?(?=[ ,]*(?:(?:19|20)\d\d(?!\d)|\W|\Z))", re.I
)
_YEAR = re.compile(r"(?<![\d.,$€£¥/-])(?<![$€£¥] )((?:19|20)\d\d)(?![\d%/]|[.,]\d)")
_AFTER_DAY = re.compile(rf"\b{_MONTH}[ .]*\d{{1,2}}[ ,]*((?:19|20)\d\d)(?!\d)", re.I)
_OF_NUMBERS = re.compile(
    r"(?<![\d/])(?:(?P<month>\d{1,2})/)?(?:(?P<day>\d{1,2})/)?(?<=/)(?P<year>(?:19|20)?\d\d)(?![\d/])"
)
_SHORT = re.compile(r"\bfy[ -]?['’]?(\d\d)\b|(?<=\s)['’](\d\d)\b", re.I)
_QUARTER = re.compile(
    rf"\b(?:q([1-4])\b|([1-4])(?:st|nd|rd|th)[ -]quarter|({'|'.join(_QUARTERS)})[ -]quarter)", re.I
)
_WHOLE_YEAR = re.compile(r"\byears?[ -]end(?:ed|ing|s)?\b", re.I)
"""The month after it is that of a whole year's end."""
_SPAN = re.compile(r"\b((?:19|20)\d\d)\s*(?:[-–—]|to|through|2013)\s*((?:19|20)\d\d)\b", re.I)
_WORDS = re.compile(
    r"\b(?:fiscal|calendar|years?|quarters?|months?|ended|as|at|of|in|for|during"
    rf"|on|the|{_MONTH}\b[ .]*(?:\d{{1,2}})?)\b",
    re.I,
)
_LAST = frozenset({12})
_FIRST_OF_TWO_DIGITS = 69
"""Years of two digits are 1969 to 2068."""


@dataclass(frozen=True, slots=True)
class FigurePeriod:
    """What a text says of time."""

    years: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    quarter: int | None = None
    is_span: bool = False

    def is_of(self, wanted: FigurePeriod) -> bool:
        """Whether what stands below this period is of the wanted one.

        The year has to be the same, and the quarter. A year without a month is that to the end of December.

        Example:
            >>> heading, asked = read_period_words("december 31 2010"), read_period_words("fiscal 2010")
            >>> heading.is_of(asked), heading.is_of(read_period_words("june 2010"))
            (True, False)
        """
        if not self.years or self.years != wanted.years or self.is_span != wanted.is_span:
            return False
        months = self.months or _LAST
        if wanted.months and months.isdisjoint(wanted.months):
            return False
        return self.quarter == wanted.quarter


def read_period_words(text: str) -> FigurePeriod:
    """What a text says of time.

    Example:
        >>> sorted(read_period_words("dec . 31 2014").years), sorted(read_period_words("12/09").years)
        ([2014], [2009])
        >>> read_period_words("years ended 2013 to 2016").is_span, read_period_words("$ 2009").years
        (True, frozenset())
    """
    years = {int(year) for year in _YEAR.findall(text)}
    years |= {int(year) for year in _AFTER_DAY.findall(text)}
    years |= {_full(one or other) for one, other in _SHORT.findall(text)}
    months = {1 + _MONTHS.index(name[:3].lower()) for name, _ in _DAY_OF.findall(text)}
    if _WHOLE_YEAR.search(text):
        months.clear()
    for match in _OF_NUMBERS.finditer(text):
        if match["month"] and 1 <= int(match["month"]) <= 12:
            years.add(_full(match["year"]))
            months.add(int(match["month"]))
    quarters = {
        int(digit or nth) if digit or nth else 1 + _QUARTERS.index(word.lower())
        for digit, nth, word in _QUARTER.findall(text)
    }
    quarter = quarters.pop() if len(quarters) == 1 else None
    return FigurePeriod(frozenset(years), frozenset(months), quarter, bool(_SPAN.search(text)))


def without_period(text: str) -> str:
    """A text without the words and numbers of time, and without what stands in brackets.

    Example:
        >>> without_period("net sales ( note 3 ) as of december 31 , 2010").split()
        ['net', 'sales']
    """
    for pattern in (_BRACKETS, _AFTER_DAY, _OF_NUMBERS, _SHORT, _QUARTER, _WORDS, _YEAR):
        text = pattern.sub(" ", text)
    return text


_BRACKETS = re.compile(r"\([^()]*\)")


def _full(year: str) -> int:
    number = int(year)
    if number >= 100:
        return number
    return number + (1900 if number >= _FIRST_OF_TWO_DIGITS else 2000)
