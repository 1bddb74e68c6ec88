"""Where a quote may begin and end: between words and numbers, not inside one.

A number is one token with its sign, comparison and currency before it, its decimals, groups,
fractions and range, and the `%`, `°` or currency after it: `5` is not in `1.5`, `-5`, `< 5`, `$5`,
`1 250`, `1/2`, `10-20` or `5%`. A hyphen, a slash or an apostrophe between letters joins words, also
over a line break: `sign` is not in `re-sign`, nor `can` in `can't`. A unit or currency that stands apart
(`5 mg`, `5 %`, `$ 5`) may be left off, but is then shown with the number.
"""

from __future__ import annotations

import re

__all__ = ["is_inside_token", "with_units"]

_REACH = 24
"""Characters looked at on either side of a border; no rule needs more."""
_AT = "\0"

_W = r"[^\W_]"
_LETTER = r"[^\W\d_]"
_HYPHEN = r"[-\u2010\u2011\xad]"
_DASH = r"[-\u2010-\u2013\u2212]"  # to the en dash: an em dash is no part of a number
_BLANK = r"[ \u00a0\u2009\u202f]"  # on the same line
_DECIMAL = r"[-\u2013\u2212+]?[.·]?\d"
_LINE_END = r"(?:[ \t]*\n\s*)?"
_FRACTION = r"(?:\d{1,2}[/⁄]\d{1,2}(?![\d/])|[¼-¾⅐-⅞])"
_CURRENCY = "[$€£¥₹₩₽¢]"
_HAN_NUMBER = "[〇零一二三四五六七八九十百千万萬亿億兆两兩]"


def _either_side(left: str, between: str, right: str) -> str:
    """A join of two halves, cut before or after what joins them."""
    return f"{left}{between}{_AT}{right}|{left}{_AT}{between}{right}"


_JOINED = re.compile(
    "|".join((
        _either_side(r"\d", r"[.,:'’·/^×*]", r"\d"),
        _either_side(_W, _HYPHEN + _LINE_END, _W),
        _either_side(r"\d", _DASH + _LINE_END, _W),
        _either_side(_W, _DASH, r"\d"),
        _either_side(r"\d", rf"{_BLANK}?(?:{_DASH}|[±×]){_BLANK}?", r"\d"),
        _either_side(r"(?<![\d.,])\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})*", _BLANK, r"\d{3}(?!\d)"),
        _either_side(r"(?<!\d)\d{1,3}", f"{_BLANK}?", _FRACTION),
        _either_side(_W, "[/_@]", _W),
        rf"(?:^|[\s(\[<>~≈±$€£+–−-])[.·]{_AT}\d",
        rf"(?:^|[^\w–—-])[-–−+±]{_AT}[.·]?\d",
        # A `>` that begins a line marks a quotation.
        rf"(?:(?:[<≤≥≦≧⩽⩾≠≈~±]|[^\s>][ \t]*>){_BLANK}?|{_CURRENCY}){_AT}{_DECIMAL}",
        rf"\d{_AT}(?:[%‰°]|{_CURRENCY})(?!{_BLANK}?\d)",
        rf"{_LETTER}{_AT}['’ʼ](?!s\b|[\u3040-\u9fff]){_LETTER}",  # `the dog` may be of `the dog's`
        rf"\b[nN]['’ʼ]{_AT}{_LETTER}",  # French; `l'homme` may lose its article
        rf"[不没沒未勿莫]{_AT}\w",
        rf"{_HAN_NUMBER}{_AT}{_HAN_NUMBER}",
        rf"\d{_AT}[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]",
    ))
)  # fmt: skip

_UNIT = re.compile(
    rf"""(?:{_BLANK}|\s)(?:
      [kcmµμnd]?(?:g|m|l|L|s|mol|W|V|Hz|J|Pa|Bq|Gy|Sv)|mcg|ug|lbs?|oz|ft|feet|foot|inch(?:es)?|yd|yards?
    | miles?|mi|kcal|cal|mEq|mmHg|IU|U|units?|cc|bpm|dB|[kMGT]i?B|[kMG]Hz|MW|GW|[kMGT]Wh
    | h|hrs?|hours?|min|minutes?|secs?|seconds?|msec|days?|weeks?|months?|years?|yrs?|decades?|centuries
    | percent|per[ ]cent|pct|degrees?|hundred|thousand|million|billion|trillion|dozen|bn|mn
    | dollars?|cents?|euros?|pounds?|USD|EUR|GBP|CHF|JPY|(?:milli|centi|kilo|micro)?(?:grams?|meters?|metres?)
    | (?:milli)?lit(?:er|re)s?|tablets?|capsules?|drops?|doses?|times
    | Prozent|Tausend|Million(?:en)?|Milliarden?|Stunden?|Tagen?|Wochen?|Monaten?|Jahren?|Minuten?
    | pour[ ]cent|por[ ]ciento|por[ ]cento|per[ ]cento|mille|millions?|milliards?|millones|milhões|milioni
    | heures?|jours?|semaines?|mois|ans|años|horas|días|meses|anni|ore|giorni|mesi
    | процент\w*|тысяч\w*|миллион\w*|миллиард\w*|лет|год\w*|руб\w*|мг|кг|мл|см|км
    )(?!{_W}) | {_BLANK}(?:[%‰°]|{_CURRENCY})(?!{_BLANK}?\d)""",
    re.VERBOSE,
)
_CURRENCY_APART = re.compile(rf"{_CURRENCY}{_BLANK}\Z")


def is_inside_token(text: str, at: int) -> bool:
    """Whether a text would be cut at an offset inside a number or a word of several parts."""
    around = f"{text[max(at - _REACH, 0) : at]}{_AT}{text[at : at + _REACH]}"
    return _JOINED.search(around) is not None


def with_units(text: str, start: int, end: int) -> tuple[int, int]:
    """A range with the currency of the number that it begins with, and the unit of its last.

    Example:
        >>> text = "Pay $ 5 a month."
        >>> begin, end = with_units(text, 6, 7)
        >>> text[begin:end]
        '$ 5'
        >>> with_units("Take 5 mg a day.", 0, 6)
        (0, 9)
    """
    if text[start : start + 1].isdigit():
        currency = _CURRENCY_APART.search(text, max(start - 2, 0), start)
        start = start if currency is None else currency.start()
    if text[max(end - 1, 0) : end].isdigit():
        unit = _UNIT.match(text, end)
        end = end if unit is None else unit.end()
    return start, end
