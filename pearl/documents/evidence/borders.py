"""Token boundaries: a quote may begin and end between words and numbers, not inside one.

A number is one token with its sign, comparison and currency before it, its decimals, groups,
fractions and range, and the `%`, `°` or currency after it: `5` is not in `1.5`, `-5`, `< 5`, `$5`,
`1 250`, `1/2`, `10-20` or `5%`. A hyphen, a slash or an apostrophe between letters joins words, also
over a line break: `sign` is not in `re-sign`, nor `can` in `can't`. A unit or currency that stands apart
(`5 mg`, `5 %`, `$ 5`) may be omitted, but is then included in the passage.
"""

from __future__ import annotations

import re

_REACH = 24
"""Characters inspected on either side of a boundary; no rule needs more."""
_AT = "\0"

_W = r"[^\W_]"
_LETTER = r"[^\W\d_]"
_HYPHEN = r"[-\u2010\u2011\xad]"
_DASH = r"[-\u2010-\u2013\u2212]"  # to the en dash: an em dash is no part of a number
_BLANK = r"[ \u00a0\u2009\u202f]"  # on the same line
_CURRENCY = "[$€£¥₹₩₽¢]"
_HAN_NUMBER = "[〇零一二三四五六七八九十百千万萬亿億兆两兩]"
_DECIMAL = r"[-\u2013\u2212+]?[.·]?\d"


def _cut(before: str, after: str) -> str:
    """A boundary pattern; the text before the boundary is matched backwards to fail fast."""
    return f"{before}[^{_AT}]*{_AT}{{1,2}}{after}"


def _join(before: str, between: str, after: str, backwards: str | None = None) -> str:
    """Patterns of a boundary before or after the joint of a two-part token."""
    joint = between if backwards is None else backwards
    return f"{_cut(joint + before, after)}|{_cut(before, between + after)}"


_JOINED = re.compile(
    "|".join((
        _join(r"\d", r"[.,:'’·/^×*]", r"\d"),
        _join(_W, rf"{_HYPHEN}(?:[ \t]*\n\s*)?", _W, rf"(?:\s*\n[ \t]*)?{_HYPHEN}"),
        _join(r"\d", rf"{_DASH}(?:[ \t]*\n\s*)?", _W, rf"(?:\s*\n[ \t]*)?{_DASH}"),
        _join(_W, _DASH, r"\d"),
        _join(r"\d", rf"{_BLANK}?(?:{_DASH}|[±×]){_BLANK}?", r"\d"),
        _join(rf"(?:\d{{3}}{_BLANK})*\d{{1,3}}(?![\d.,])", _BLANK, r"\d{3}(?!\d)"),
        _join(r"\d{1,3}(?!\d)", f"{_BLANK}?", r"(?:\d{1,2}[/⁄]\d{1,2}(?![\d/])|[¼-¾⅐-⅞])"),
        _join(_W, "[/_@]", _W),
        _cut(rf"[.·](?:{_AT}|[\s(\[<>~≈±$€£+–−-])", r"\d"),
        _cut(rf"[-–−+±](?:{_AT}|[^\w–—-])", r"[.·]?\d"),
        _cut(rf"{_BLANK}?(?:[<≤≥≦≧⩽⩾≠≈~±]|>[ \t]*[^\s>{_AT}])", _DECIMAL),  # `> 5` quotes, at a line's begin
        _cut(_CURRENCY, _DECIMAL),
        _cut(r"\d", rf"(?:[%‰°]|{_CURRENCY})(?!{_BLANK}?\d)"),
        _cut(_LETTER, rf"['’ʼ](?!s\b|[\u3040-\u9fff]){_LETTER}"),  # `the dog` may be of `the dog's`
        _cut(r"['’ʼ][nN](?!\w)", _LETTER),  # French `n'est`; `l'homme` may lose its article
        _cut("[不没沒未勿莫]", r"\w"),
        _cut(_HAN_NUMBER, _HAN_NUMBER),
        _cut(r"\d", r"[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]"),
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
    """Whether an offset is inside a number or a compound word."""
    before = text[max(at - _REACH, 0) : at][::-1]
    # The second mark stands for the beginning of the text.
    return _JOINED.match(f"{before}{_AT}{_AT}{text[at : at + _REACH]}") is not None


def with_units(text: str, start: int, end: int) -> tuple[int, int]:
    """Extend a range by the currency before its first number and the unit after its last.

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
