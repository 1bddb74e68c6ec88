"""Numbers in texts: read where they are written out and surely one, refused otherwise."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from pearl.documents.measures import unit_of

__all__ = [
    "check_alike",
    "find_quantity",
    "is_bound",
    "numbers",
    "quantity",
    "read_number",
    "whole_number",
]

_NUMBER = re.compile(
    r"(?<!\w)(?:[-+−][$€£¥]?)?(?:\d{1,3}(?:,\d{3})++(?!\d)(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++)"
    r"(?:[eE][-+]?\d{1,3}\b)?"
)
_SCALE = re.compile(
    r"\s?+(?:(?:[kKM]|MM|[mb]n|cr|hundred|thousand|[bt]?rillion|billion|dozen|lakh|crore|quarter)s?\b"
    r"|(?i:hundert|tausend|mio|mrd|mill(?:ion|iarde?)\w*|milli[oó]n\w*|mil(?:iardi|ioni|hão|hões|e)?|mille|"
    r"bilhão|bilhões|tys|mln|mld|млн|млрд|тыс\w*|миллион\w*|миллиард\w*|duzend|douzaines?|docenas?)\b"
    r"|[만억천백])"
    r"|[ _^]?[²³]|_\d|[eExX][-+]?\d|\s?+(?i:bps|basis points?)\b"
)
"""Suffixes that change the value of the digits before them."""
_IN_WORDS = re.compile(
    r"\b(?:half|zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|"
    r"eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|(?:hundred|thousand|million|billion|dozen)s?|"
    r"halb\w?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|deux|trois|quatre|cinq|huit|dix|"
    r"dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez)\b",
    re.I,
)
_BOUND = re.compile(
    r"[<>≤≥]|\b(?:(?:more|less|fewer|greater|higher|lower|larger|smaller|other)\s+than|at\s+(?:least|most)|up\s+to"
    r"|over|under|above|below|exceed(?:s|ed|ing)?|nearly|almost)\s+[$€£¥]?\s?[-−]?\d",
    re.I,
)
_MAY_BE_NEGATIVE = re.compile(
    r"(?:[–‒⁻‐‑]|[-−–]\s+[$€£¥]|\b(?:minus|negative|moins|menos|meno)\s)\Z", re.I
)
_OTHER_DIGITS = re.compile(r"(?<![^\W\d_])[²³]|[$€£¥]\s?[\d.,]+\s?m\b")
"""A power of a number, not of a unit; millions of money."""
_IN_BRACKETS = re.compile(r"\s*\(\s*[$€£¥]?\s?[\d.,]+\s?[%$€£¥]?\s*\)\s*")
_MAY_BE_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
"""1250 in most of Europe."""
_BARE = str.maketrans("−", "-", ",$€£¥")
_MAX_DIGITS = 40
"""Maximum digits: longer numbers are not quantities, and Python limits the length it parses."""


def numbers(items: Iterable[str]) -> list[int | float]:
    """The number in each entry.

    Raises:
        ValueError: An entry has no number or several, or the units differ.

    Example:
        >>> numbers(["12 mg", "about 3.5"])
        [12, 3.5]
    """
    entries = list(items)
    read = [read_number(item) for item in entries]
    found = ((item, match.span()) for item in entries for match in _NUMBER.finditer(item))
    check_alike((item, *span) for item, span in found)
    return read


def check_alike(places: Iterable[tuple[str, int, int]]) -> None:
    """Check that numbers are written out and have the same unit, or none.

    Args:
        places: For each number, the entry and the number's start and end offsets.

    Raises:
        ValueError: They are not, so they cannot be added or compared.
    """
    units: dict[str, str] = {}
    for item, start, end in places:
        if _SCALE.match(item, end):
            raise ValueError(f"a number that is not written out in {_short(item)}")
        if unit := unit_of(item, start, end):
            units.setdefault(unit, item)
    if len(units) > 1:
        one, other, *_ = map(_short, units.values())
        raise ValueError(f"numbers in different units: {one} and {other}")


def read_number(text: str) -> int | float:
    """The only number in a text.

    Raises:
        ValueError: There is none, there are several, or it is not surely this one.

    Example:
        >>> read_number("1,250 mg a day")
        1250
    """
    found = list(_NUMBER.finditer(text))
    if len(found) != 1:
        raise ValueError(f"{'more than one' if found else 'no'} number in {_short(text)}")
    match, whole = found[0], text
    if _SCALE.match(whole, match.end()):
        raise ValueError(f"a number that is not written out in {_short(text)}")
    # ½ and 万 are numeric, but not digits.
    is_mixed = any(c.isnumeric() and not c.isdecimal() and c not in "²³" for c in whole)
    if is_mixed or _IN_WORDS.search(whole) or _OTHER_DIGITS.search(whole):
        raise ValueError(f"more than one number in {_short(text)}, one of them not in digits")
    if _MAY_BE_NEGATIVE.search(whole, 0, match.start()) or _IN_BRACKETS.fullmatch(whole):
        raise ValueError(f"a number that may be below 0 in {_short(text)}")
    digits = match[0].translate(_BARE)
    if _MAY_BE_GROUPED.fullmatch(digits):
        raise ValueError(f"a point that may group thousands or begin decimals in {_short(text)}")
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"the number is too long in {_short(text)}")
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number is too large in {_short(text)}")
    return number if set(digits) & set(".eE") else int(digits)


def quantity(text: str) -> tuple[int | float, str]:
    """The only number in a text and its unit, "" if it has none that is known.

    Raises:
        ValueError: As in `read_number`.

    Example:
        >>> quantity("30 mg"), quantity("1,250")
        ((30, 'mg'), (1250, ''))
    """
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text), ""
    number = read_number(text)
    places = (match.span() for match in _NUMBER.finditer(text))
    return number, next(unit_of(text, *place) for place in places)


def find_quantity(text: str) -> tuple[int | float, str] | None:
    """The same; None where `quantity` refuses.

    Example:
        >>> find_quantity("30 mg"), find_quantity("30 or 40 mg")
        ((30, 'mg'), None)
    """
    try:
        return quantity(text)
    except ValueError:
        return None


def is_bound(text: str) -> bool:
    """Whether a text says where a number lies, and not which it is.

    Example:
        >>> is_bound("less than $5"), is_bound(">5"), is_bound("about $5")
        (True, True, False)
    """
    return _BOUND.search(text) is not None


def whole_number(number: int | float, name: str, *, least: int) -> int:
    """A number as a whole one.

    Args:
        number: Any number.
        name: What it is called in a message.
        least: The least that it may be.

    Raises:
        ValueError: It has a fraction, or is less.
    """
    if number != int(number) or number < least:
        raise ValueError(f"{name} has to be a whole number from {least}, not {number:g}")
    return int(number)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
