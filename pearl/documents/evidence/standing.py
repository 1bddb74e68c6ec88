"""Find places where a text may state a value, for a reply without a quote; `value_checks` decides if it does."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from pearl.documents.dates import find_dates
from pearl.documents.evidence.value_checks import Stated, places_in
from pearl.dsl.fields import Field
from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern

MIN_FIGURES = 3
"""Minimum digits of a whole number to look up; most texts have shorter ones with other meanings."""
MIN_LETTERS = 4  # Minimum letters and digits of a text to look up
MAX_AROUND = 120  # Maximum characters shown on either side of a value

_ENDS = ("\n", ". ", "! ", "? ", "; ", "。", "！", "？")


def is_telling(field: Field, value: Stated) -> bool:
    """Whether a value without a quote can be looked up: truth values, labels and summaries cannot."""
    if field.type in ("int", "number", "decimal"):
        return "." in _digits(value) or len(_digits(value)) >= MIN_FIGURES
    return (
        field.type in ("str", "date")
        and isinstance(value, str)
        and sum(map(str.isalnum, value)) >= MIN_LETTERS
        and value.casefold() != field.name.casefold()  # `Inspector: T. Okafor`
    )


def places_of(field: Field, value: Stated, text: str, within: Span) -> list[Span]:
    """Places in a part of a text where a value may be stated: its words, a date, or the digits of a number."""
    if field.type == "date":
        days = find_dates(str(value))
        day = days[0].period if len(days) == 1 else None
        found = _dates(text[within.start : within.end]) if day else []
        at = within.start
        return [Span(at + each.start, at + each.end) for each in found if each.period == day]
    part = text[within.start : within.end]
    if field.type != "str":
        wanted = _digits(value).replace(".", "").strip("0")
        found_at = [(at, end) for at, end, figures in _numbers(part) if figures == wanted]
    else:
        words = " ".join(str(value).split())
        folded = _folded(part)
        # A single word must agree in case, as `Mark` is not `mark`.
        is_in_any_case = " " in words and len(folded) == len(part)
        found_at = list(
            places_in(*((words.casefold(), folded) if is_in_any_case else (words, part)))
        )
    return [Span(within.start + at, within.start + end) for at, end in found_at]


@lru_cache(maxsize=8)
def _numbers(text: str) -> list[tuple[int, int, str]]:
    """The numbers of a text: start, end, and digits without zeros at both ends."""
    return [
        (each.start(), each.end(), "".join(filter(str.isdigit, each[0])).strip("0"))
        for each in _NUMBER.finditer(text)
    ]


_NUMBER = lazy_pattern(r"[0-9]+(?:[.,'’][0-9]+|\s[0-9]{3}(?![0-9]))*")  # 5, 1,250.50, 1 250
_dates = lru_cache(maxsize=8)(find_dates)
_folded = lru_cache(maxsize=8)(str.casefold)


def _digits(value: Stated) -> str:
    shown = f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
    return "".join(each for each in shown if each == "." or (each.isascii() and each.isdigit()))


def clause_around(text: str, span: Span) -> Span:
    """The line or sentence around a value; a long one is cut between words."""
    low, high = max(0, span.start - MAX_AROUND), min(len(text), span.end + MAX_AROUND)
    before, behind = text[low : span.start], text[span.end : high]
    starts = [at + len(mark) for mark in _ENDS if (at := before.rfind(mark)) >= 0]
    ends = [at for mark in _ENDS if (at := behind.find(mark)) >= 0]
    start = max(starts, default=before.find(" ") + 1 if low else 0)
    end = min(ends, default=behind.rfind(" ") if high < len(text) else len(behind))
    return Span(low + start, span.end + max(end, 0))
