"""The words that periods are named with, and the periods that a question names by itself."""

from __future__ import annotations

import re

from pearl.planner.periods.calendar import MONTHS, CalendarPeriod, Style, Unit

_SMALL = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ORDINALS = ("first", "second", "third", "fourth")

COUNT = (
    rf"(?:\d{{1,3}} | (?:{'|'.join(_TENS)})(?:[- ](?:{'|'.join(_SMALL[:9])}))? | {'|'.join(_SMALL)}"
    r" | (?:a\ )?couple\ of | an? )"
)
"""A number of units."""

KIND = r"(?:(?P<kind>fiscal|financial|calendar)\s+)?"
YEAR = r"(?:1[5-9]|2[0-3])\d\d"
MONTH = rf"(?:{'|'.join(f'{name}|{name[:3]}' for name in MONTHS)})\b\.?"
DAY = r"\d{1,2}(?:st|nd|rd|th)?\b,?"


def pattern(text: str) -> re.Pattern[str]:
    """A pattern that ignores case, and blanks of its own."""
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


_named = pattern(
    rf"""(?<![\w$€£]) (?<!\d,) (?<!\d\.)
    (?: (?: Q(?P<quarter>[1-4]) | (?P<ordinal>{"|".join(_ORDINALS)})\s+quarter
          | (?P<month>{MONTH})(?:\s+{DAY})? ) [\s,-]* (?:(?:of|in)\s+(?:the\s+)?)?
      | \d{{1,2}}[./]\d{{1,2}}[./] )?
    (?: (?P<style>fiscal|financial|calendar|FY)(?:\s+years?)?[\s-]* )?
    (?: (?P<year>{YEAR})(?P<several>[/–-]\d\d(?!\d)|s\b)? | (?<=FY)(?P<short>\d\d) | ['’](?P<cut>\d\d) )
    (?! [\w%] | [.,]\d
      | \s*(?:million|billion|thousand|percent|people|employees|shares|units|stores)\b )"""
)
"""A year that the question names, perhaps with its quarter or month."""


def find_named(text: str) -> list[tuple[int, int, CalendarPeriod | None]]:
    """The periods that a text names, with their places; None for one that nothing can be counted from.

    Example:
        >>> [str(period) for *_, period in find_named("Q3 of fiscal 2013, May 2012, 2010/11")]
        ['Q3 of fiscal 2013', 'May 2012', 'None']
    """
    return [(match.start(), match.end(), _period(match)) for match in _named.finditer(text)]


def _period(match: re.Match[str]) -> CalendarPeriod | None:
    """A period that a question names; None where it may be several."""
    if match["cut"] or (match["year"] is None and match["short"] is None):
        return None
    year = int(match["year"] or f"20{match['short']}")
    said = match["several"]
    if said and (said == "s" or (year + 1) % 100 == int(said[1:])):
        return None
    style = _as_style(match["style"])
    if match["quarter"] or match["ordinal"]:
        quarter = int(match["quarter"] or 1 + _ORDINALS.index(match["ordinal"].lower()))
        return CalendarPeriod("quarter", 4 * year + quarter - 1, style)
    if match["month"]:
        names = [name[:3].lower() for name in MONTHS]
        return CalendarPeriod("month", 12 * year + names.index(match["month"][:3].lower()))
    return CalendarPeriod("year", year, style)


def _as_style(word: str | None) -> Style:
    if not word:
        return ""
    return "calendar" if word.lower() == "calendar" else "fiscal"


def style_of(match: re.Match[str]) -> Style:
    """Which years a phrase says that it is about, by its groups `kind` and `unit`."""
    is_short = match["unit"].lower() == "fy"
    return _as_style("FY" if is_short else match["kind"])


def unit_of(match: re.Match[str]) -> Unit:
    """What it counts."""
    word = match["unit"].lower()
    return "quarter" if word.startswith("q") else "month" if word.startswith("m") else "year"


def count_of(match: re.Match[str]) -> int:
    """How many units; a decade is ten years."""
    word = (match["count"] or "a").lower()
    per_unit = 10 if match["unit"].lower().startswith("decade") else 1
    if word.isdigit():
        return per_unit * int(word)
    if word.endswith("couple of"):
        return per_unit * 2
    tens, _, ones = word.replace("-", " ").partition(" ")
    small = {"": 0, "a": 1, "an": 1, **{name: n for n, name in enumerate(_SMALL, 1)}}
    if tens in _TENS:
        return per_unit * (10 * (2 + _TENS.index(tens)) + small[ones])
    return per_unit * small[word]
