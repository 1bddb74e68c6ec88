"""Check that a passage supports a value: return the value in its normal form, or why it does not; docs/answers.md lists all rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, time
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from pearl.documents.dates import find_dates
from pearl.documents.evidence.normal import NormalText, is_inside_token, normalise
from pearl.documents.lexicon import (
    APART,
    CURRENCIES,
    CURRENCY_UNITS,
    DIMENSIONS,
    FOREIGN_SCALES,
    MONEY,
    MONEY_SCALES,
    NUMBER_WORD,
    SCALE_WORDS,
    SCALES,
    SCALES_UNSPACED,
    SHARES,
    SMALL_NUMBER,
    SMALL_NUMBERS,
    UNIT_UNSPACED,
    UNITS,
    UNSPACED,
    unit_named,
)
from pearl.documents.marks import SUPERSCRIPTS
from pearl.documents.numbers import (
    FRACTION,
    VULGAR,
    UnclearNumberError,
    listed,
    once,
    plain,
    quantities,
    quantity,
    quoted,
    scale_of,
)
from pearl.documents.passages import STOP_WORDS
from pearl.documents.record import Basis, FieldScalar
from pearl.dsl.fields import Field
from pearl.errors.patterns import lazy_pattern

Stated = str | Decimal | bool  # A value in a reply, before it is read as the type of its field

Reading = tuple[FieldScalar, Basis]

MAX_DIGITS = 30  # maximum digits of a number, so that arithmetic is exact

MAX_BESIDE = 40  # Characters around a passage that may change its numbers


class DisagreementError(ValueError):
    """A value does not follow from its quote; the message says why."""


def agreed(
    field: Field, value: Stated, pieces: Sequence[str], before: str = "", after: str = ""
) -> Reading:
    """Check a value against its quoted `pieces`; return it and its basis (`judged`: a model must check it)."""
    return _READERS[field.type](field, value, " … ".join(pieces), before, after)


def same_value(field: Field, one: FieldScalar, other: FieldScalar) -> bool:
    """Whether two values of a field are equal, in any case and typography."""
    if field.type == "decimal":
        return Decimal(str(one)) == Decimal(str(other))
    if isinstance(one, str) and isinstance(other, str):
        return normalise(one).casefold() == normalise(other).casefold()
    return one == other


def n_standing(value: Stated, passage: str) -> int:
    """How often a passage contains a value in the same words; 0 if it does not."""
    if isinstance(value, Decimal):
        return sum(amount.number == value for amount in _amounts(plain(passage)))
    if isinstance(value, bool):
        return 0
    return sum(1 for _ in places_in(" ".join(value.casefold().split()), passage.casefold()))


def places_in(text: str, passage: str) -> Iterator[tuple[int, int]]:
    """Yield start and end where a passage has the words of a text, consecutively and in any typography."""
    whole, wanted = _normal(passage), _normal(text)
    place = whole.find(wanted)
    while place is not None and place[0] < place[1]:
        span = whole.original(*place)
        yield span.start, span.end
        place = whole.find(wanted, place[1])


def unstated_number(value: str, passages: Sequence[str], asked: str = "") -> str:
    """Why no passage states the number of a reply; "" if one does. The question `asked` may name its scale."""
    read = quantity(value)
    numbers = {read.number, read.amount}
    if read.scale:  # of `138.0 million`, the caption of a table may have the scale
        numbers.add(read.value)
    elif scale := scale_of(asked):  # `3.2` for "sales in millions"
        numbers.add(read.value.scaleb(scale))
    for passage in passages:
        words = {word.strip(".,;:!?()") for word in passage.casefold().split()}
        if numbers == {1} and "one" in words:  # `quantities` leaves "one" out
            return ""
        for shown, number, unit in quantities(once(passage)):
            if isinstance(number, str) or (read.unit and unit and read.unit != unit):
                continue
            is_bracketed = f"({shown})" in passage  # in accounts, a number below 0
            stated = {
                number,
                number.scaleb(SHARES.get(unit, 0)),
                *([-number] if is_bracketed else []),
            }
            if not numbers.isdisjoint(stated):
                return ""
    return f"no quote has {quoted(value)}"


def _instead(kind: str, shown: Sequence[str]) -> str:
    """The reason why a value is not in its quote: it lists the values of this kind that the quote has."""
    if len(shown) < 2:
        return f"the quote has {f'the {kind} {shown[0]}' if shown else f'no {kind}'}"
    return f"{len(shown)} {kind}s stand in the quote: {listed(shown, 3)}"


def _text(value: Stated) -> str:
    if isinstance(value, bool):
        raise DisagreementError(f"{str(value).lower()} is no text")
    return value if isinstance(value, str) else f"{value:f}"


# ---------------------------------------------------------------------------------------------
# Texts, labels, yes and no

_normal = lru_cache(maxsize=1024)(NormalText)


def _place(text: str, passage: str) -> tuple[int, int] | None:
    """The first place where a passage has the words of a text, consecutively, in any case and typography."""
    # `12 High Street, London` may stand on two lines without the comma
    passage, text = (each.replace(", ", "  ").replace(",\n", " \n") for each in (passage, text))
    folded = passage.casefold()
    if len(folded) == len(passage):
        passage, text = folded, text.casefold()
    return next(places_in(text, passage), None)


def _copied(field: Field, value: Stated, passage: str, before: str, after: str) -> Reading:
    """Accept a text that is a run of whole words of its passage; in another order, the checker decides."""
    text = " ".join(_text(value).split())
    place = _place(text, passage)
    if place is None:
        wanted, words = _words(text), _words(passage)
        runs = (words[i : i + len(wanted)] for i in range(len(words) - len(wanted) + 1))
        if (
            not any(map(str.isdigit, text))
            and len(wanted) > 1
            and sorted(wanted) in map(sorted, runs)
        ):
            return text, "judged"  # `Maria Keller` of `Keller, Maria`
        if _begins_word(text, passage):
            return text, "judged"
        raise DisagreementError(f"{quoted(text)} is not in the quote")
    start, end = place
    if _is_cut(before + passage[:start], text, passage[end:] + after):
        raise DisagreementError(f"{quoted(text)} is a part of a longer number or name in the quote")
    return text, "copied" if passage[start:end] == text else "normalised"


def _begins_word(text: str, passage: str) -> bool:
    """Whether a text without digits begins a longer, maybe inflected word: `Anna` in `Annas Haus`, `서울` in `서울에서`, `Ankara` in `Ankara'dan`."""
    name, folded = text.casefold(), passage.casefold()
    ends = (found.end() for found in re.finditer(rf"(?<!\w){re.escape(name)}", folded))
    is_name = len(name) > 1 and not any(map(str.isdigit, name))
    rests = (folded[end : end + 2].removeprefix("'").removeprefix("’") for end in ends)
    return is_name and any(rest[:1].isalpha() for rest in rests)  # no `Marchal-Hollister`


def _words(text: str) -> list[str]:
    return [word.strip(".:;()") for word in text.casefold().replace(",", " ").split()]


def _is_cut(lead: str, text: str, rest: str) -> bool:
    """Whether a text is only a part of a number or code in groups (`DE89 3704 0044`), or of an e-mail address."""
    before, _, last = text.rpartition(" ")
    if rest[:1] == " " and rest[1:2].isdigit() and before[-1:].isdigit() and _is_group(last):
        return True
    first, _, behind = text.partition(" ")
    if lead[-1:] == " " and lead[-2:-1].isdigit() and _is_group(first) and behind[:1].isdigit():
        return True
    is_longer = _is_of_address(lead[-1:], ".+-") or _is_of_address(rest[:1], "-")
    return "@" in text and (is_longer or (rest[:1] == "." and _is_of_address(rest[1:2], "")))


def _is_group(text: str) -> bool:
    return text.replace("_", "0").isalnum() and any(map(str.isdigit, text))


def _is_of_address(character: str, signs: str) -> bool:
    return character.isalnum() or (character != "" and character in f"_{signs}")


def _summary(field: Field, value: Stated, passage: str, before: str, after: str) -> Reading:
    """Accept a copied text, or a paraphrase if the passage has all of its numbers and dates."""
    text = _text(value).strip()
    if _place(text, passage):
        return _copied(field, text, passage, before, after)
    moment: time | None = None
    if ":" in text:  # `2024` is no time
        with suppress(ValueError):
            moment = datetime.fromisoformat(text).timetz()
        with suppress(ValueError):
            moment = time.fromisoformat(text)
    if moment is None:
        _check_figures(text, passage)
    else:
        _check_days(text, passage)
        _check_time(moment, passage)
    return text, "judged"


def _check_time(moment: time, passage: str) -> None:
    """Refuse a time of day whose parts the passage lacks; it may write them in 12 or 24 hours."""
    figures = {int(each) for each in _FIGURES.findall(passage)}
    hours = {moment.hour, (moment.hour + 11) % 12 + 1}
    parts = [moment.minute, moment.second]
    if not hours & figures or not {part for part in parts if part} <= figures:
        raise DisagreementError(f"the time {moment.isoformat('auto')} is not in the quote")
    offset = moment.isoformat()[len(moment.replace(tzinfo=None).isoformat()) :]
    is_utc = offset == "+00:00" and any(name in passage for name in ("UTC", "GMT", "Z"))
    if offset and not is_utc and offset[:3] not in passage:
        raise DisagreementError(f"the offset {offset} is not in the quote")


def _check_figures(text: str, passage: str) -> None:
    """Refuse a text with a number or a date that its passage does not have."""
    stated = list(_amounts(passage))
    for amount in _amounts(text):
        if not any(map(amount.is_in, stated)):
            raise DisagreementError(f"{quoted(amount.text)} is not in the quote")
    _check_days(text, passage)
    figures = {*_FIGURES.findall(passage)} if _DURATION.fullmatch(text) else set()
    if figures and (missing := {*_FIGURES.findall(text)} - figures):  # it may be in words
        raise DisagreementError(f"{quoted(min(missing))} is not in the quote")


_FIGURES = lazy_pattern(r"[0-9]+")
_DURATION = lazy_pattern(r"P(?:[0-9.]+[YMWD])*(?:T(?:[0-9.]+[HMS])+)?")
"""A duration in ISO 8601, in which numbers have no ordinary units: `P3D`, `PT1H30M`."""


def _check_days(text: str, passage: str) -> None:
    days = {day.period for day in find_dates(passage)} - {None}
    for day in find_dates(text):
        if day.period not in days:
            raise DisagreementError(f"{quoted(text[day.start : day.end])} is not in the quote")


def label_of(field: Field, value: str) -> str | None:
    """The label that equals a text in any case, or None."""
    key = _label_key(value)
    return next((label for label in field.labels if _label_key(label) == key), None)


def _label_key(text: str) -> str:
    return " ".join(text.replace("_", " ").casefold().split()).strip(" .\"'")


def _label(field: Field, value: Stated, passage: str, before: str, after: str) -> Reading:
    """Check that a value is one of the labels; its basis is `copied` if the passage has it."""
    same = [str(value)]
    if isinstance(value, bool):  # for the labels yes|no
        same = [word for word, truth in _TRUTHS.items() if truth is value]
    label = next(filter(None, (label_of(field, each) for each in same)), None)
    if label is None:
        labels = ", ".join(field.labels)
        raise DisagreementError(f"{quoted(str(value))} is not one of the labels {labels}")
    place = _place(label.replace("_", " "), passage)
    if place and not _is_cut(before + passage[: place[0]], label, passage[place[1] :] + after):
        return label, "copied"
    _check_figures(label, passage)
    return label, "judged"


_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


def _truth(field: Field, value: Stated, passage: str, before: str, after: str) -> Reading:
    """Read yes or no; whether the passage supports it, no rule can decide."""
    truth = _TRUTHS.get(_label_key(str(value)))
    if truth is None:
        raise DisagreementError(f"{quoted(str(value))} is neither yes nor no")
    return truth, "judged"


# ---------------------------------------------------------------------------------------------
# Dates


def _date(field: Field, value: Stated, passage: str, before: str, after: str) -> Reading:
    text = _text(value).strip()
    stated = find_dates(text)
    if len(stated) != 1 or (stated[0].start, stated[0].end) != (0, len(text)):
        raise DisagreementError(f"{quoted(text)} is no date with day, month and year")
    if stated[0].period is None:
        raise DisagreementError(f"the day and the month of {quoted(text)} may be swapped")
    day = stated[0].period.first
    unclear = ""
    for match in find_dates(passage):
        shown = passage[match.start : match.end].strip()
        if match.period is None:
            unclear = unclear or f"the day and the month of {quoted(shown)} may be swapped"
        elif match.period.first == day:
            return day.isoformat(), "copied" if shown == day.isoformat() else "normalised"
    dates = [passage[each.start : each.end].strip() for each in find_dates(passage)]
    raise DisagreementError(unclear or _instead("date", dates))


# ---------------------------------------------------------------------------------------------
# Numbers


class _Amount(Struct, frozen=True):
    """A number in a text; a `flaw` says why the text may not state exactly this number."""

    text: str
    start: int
    number: Decimal | None
    scale: int = 0
    unit: str = ""
    flaw: str = ""

    def __str__(self) -> str:
        scale = next((word for word, power in SCALES.items() if power == self.scale), "")
        return " ".join(filter(None, (self.text, scale, _format_unit(self.unit.lstrip("?")))))

    def is_in(self, other: _Amount) -> bool:
        """Whether another text states this number; it must do so without a flaw, unless this one has a flaw."""
        has_numbers = None not in (self.number, other.number)
        is_same = self.number == other.number if has_numbers else self.text == other.text
        units = {unit for unit in (self.unit, other.unit) if unit and not unit.startswith("?")}
        return is_same and len(units) < 2 and (bool(self.flaw) or not other.flaw)


_NUMBER = lazy_pattern(  # 5, .5, 1.250,50, 1 250, 2½, ¾, five
    rf"{APART}\.?\d+(?:[.,'’]\d+|[ ]\d{{3}}(?!\d))*(?:(?<!\d{{4}})(?:{FRACTION}))?|[{VULGAR}]|\b{SMALL_NUMBER}(?![^\W_])",
    re.I,
)
_DECIMAL_COMMA = lazy_pattern(r"\d{1,3}(?:[. ]\d{3})+,\d{1,2}|\d+,\d{1,2}")  # 1.250,50; 2,5
# °C, %, €, 公斤, mg, m2; mg/kg, euros per hour
_UNIT = rf"(?P<unit>°\s?[CcFf]|[%‰{CURRENCIES}]|{UNIT_UNSPACED}|[^\W\d_]+(?:[23](?!\w))?)(?:\s?(?:/|\bper\s)\s?(?P<per>[^\W\d_]+))?"
_AFTER = lazy_pattern(rf"(?P<gap>[ \t\u00a0\u2009\u202f]?-?){_UNIT}")  # 5 mg, 5mg, 54-year-old
_LEAD = lazy_pattern(
    rf"(?:\b(?:minus|negative)\s|(?<![\w)])[-+−])?(?:(?:{MONEY})\s?[-−]?)?\Z", re.I
)
"""The sign and the currency before a number: `minus 5`, `-5`, `$5`, `-$5`, `CHF -5`."""
_MAX_LEAD = 20
"""More characters than they have."""
_SCALE = lazy_pattern(
    rf"\s?(?:\((?:in\s)?)?(?:{'|'.join(SCALES_UNSPACED)}|(?:{'|'.join(sorted({*SCALE_WORDS, *FOREIGN_SCALES}, key=len, reverse=True))}|(?<=\d)[kmb])(?![^\W\d_])\.?)\)?",
    re.I,
)
"""The scale after a number: `3.2 million`, `5 Mio.`, `$5m`."""
_NEXT = lazy_pattern(
    rf"[-−+?%‰²³]{{0,2}}(?:\s?(?:{MONEY}|[^\W\d_{UNSPACED}]+))?(?:[²³]|[23](?!\w))?"
)
"""Sign, power and unit after a number that `quantity` must see to read it: `5-`, `5 %`, `5 m²`, `5 USD`."""
_JOINT = lazy_pattern(r"\s[^\W\d_]{1,3}(?:['’]|\s)")
"""What joins a scale and its unit: `64 millions d'euros`, `5 million of euros`."""
_COMPOUND = (
    lazy_pattern(rf"\b{NUMBER_WORD}(?:[\s-]+|\sand\s)\Z", re.I),
    lazy_pattern(rf"(?:[\s-]+|\sand\s){NUMBER_WORD}\b", re.I),
)
"""Number words beside a number word: `three hundred and five`."""
_LETTER = lazy_pattern(f"[{UNSPACED}]")
_IN_CAPTION = lazy_pattern(r"\((?:in\s)?(?P<words>[^()\d]{1,30})\)[^\w()]{0,5}\Z")
"""The scale, currency or unit of a number that follows: `Revenue (in Mio. EUR): 500`, `Dose (in ml): 60`."""
_CAPTION_WORD = lazy_pattern(rf"{MONEY}|[^\W\d_]+")  # €, USD, thousands
_NAMES_OF_UNITS = {
    **UNITS, **{unit: unit for dimension in DIMENSIONS for unit in dimension}, "pct": "%",
    "celsius": "°c", "fahrenheit": "°f", "kmh": "km/hour", "kph": "km/hour", "mph": "mile/hour",
}  # fmt: skip


def _amounts(text: str, low: int = 0, high: int | None = None) -> Iterator[_Amount]:
    """The numbers of a part of a text in digits and in words, except those in dates other than years."""
    matches = list(_NUMBER.finditer(text))
    high = len(text) if high is None else high
    wanted = [i for i, match in enumerate(matches) if low <= match.start() < high]
    days = find_dates(text) if wanted else []
    for i in wanted:
        match = matches[i]
        start, end = match.span()
        if any(day.start <= start < day.end for day in days):
            if len(match[0]) == 4:
                yield _Amount(match[0], start, Decimal(match[0]))
            continue
        before = text[matches[i - 1].end() if i else 0 : start]
        after = text[end : matches[i + 1].start() if i + 1 < len(matches) else len(text)]
        signs = _LEAD.search(before, max(len(before) - _MAX_LEAD, 0))
        lead = signs[0] if signs else ""
        begin = start - len(lead)
        flaw = ""
        if (
            _is_cut_number(text, begin, end, after)
            or before.strip() in SCALES_UNSPACED  # 2万5千
            or (after.strip() in SCALES_UNSPACED and matches[i + 1 :])
        ):
            flaw = f"{quoted(match[0])} is a part of another figure in the quote"
        yield _amount(match[0], start, before, lead, after, flaw)


def _is_cut_number(text: str, begin: int, end: int, after: str) -> bool:
    """Whether a number, with its sign and currency, is part of a longer number, a range or a code."""
    behind = _AFTER.match(after)
    is_joined = behind is not None and behind["gap"] == "-"  # `54-year-old`
    if is_joined and not _unit(behind):
        return True
    if text[end - 1].isalpha():
        before_it, behind_it = _COMPOUND
        return bool(
            before_it.search(text, max(begin - MAX_BESIDE, 0), begin) or behind_it.match(text, end)
        )
    if is_inside_token(text, begin):
        return True
    if is_joined or _LETTER.match(after):
        return False
    is_sign = after[:1] in ("%", "‰", "°") or (after[:1] and after[0] in CURRENCIES)
    return is_inside_token(text, end + bool(is_sign))


def _amount(shown: str, start: int, before: str, lead: str, after: str, flaw: str) -> _Amount:
    """A number, read with the text up to the numbers `before` and `after` it; `lead`, the end of `before`, is its sign and currency."""
    digits = shown
    if not shown.isascii() or shown[0].isalpha():
        digits = str(SMALL_NUMBERS.get(" ".join(shown.casefold().split()), shown))
    else:
        whole, gap, fraction = shown.rpartition(" ") if "/" in shown else (shown, "", "")
        digits = whole.replace(" ", "") + gap + fraction  # 1 250, 1 1/2
    caption = _IN_CAPTION.search(before[-MAX_BESIDE:])
    named = _CAPTION_WORD.findall(caption["words"]) if caption else []
    powers = [
        SCALE_WORDS.get(word) or FOREIGN_SCALES.get(word) for word in map(str.casefold, named)
    ]
    power = next(filter(None, powers), 0)
    after = after.partition("\n")[0]
    # The number with its sign, currency, scale and unit, which `quantity` reads as one
    line = f"{lead}{digits}"
    is_bracketed = before.removesuffix(lead).rstrip().endswith("(")
    scaled = _SCALE.match(after)
    end = at = scaled.end() if scaled else 0
    if next_word := _NEXT.match(after, end):
        at = next_word.end()
    line += after[:at]
    if is_bracketed and after[end:].lstrip().startswith(")"):
        line = f"({line})"
    try:
        read = quantity(line, decimal="," if _DECIMAL_COMMA.fullmatch(shown) else "")
    except UnclearNumberError as error:
        is_plain = digits[:1].isdigit() and digits[-1:].isdigit() and len(digits) <= 2 * MAX_DIGITS
        is_plain &= digits.replace(".", "", 1).isdecimal()
        number = Decimal(digits) if is_plain else None
        return _Amount(shown, start, number, flaw=flaw or f"{quoted(shown)} is unclear: {error}")
    is_scaled = read.scale > 0 or after.lstrip().startswith(tuple(SCALES_UNSPACED))
    behind = after[end:] if is_scaled else after
    match = _AFTER.match(behind)
    joint = _JOINT.match(behind) if is_scaled else None
    if joint and not _unit(match) and _unit(joined := _AFTER.match(behind, joint.end())):
        match = joined
    unit = _unit(match)
    if read.unit in CURRENCY_UNITS:
        unit = read.unit
    elif match and not unit:
        word = match["unit"].replace(" ", "")
        is_mark = word[0] in SUPERSCRIPTS.values()  # of a footnote: 1,250¹
        if not match["gap"] and not is_mark and not _LETTER.match(word):
            flaw = flaw or f"{quoted(shown + word)} is not a number alone"
        unit = f"?{word}" if word.casefold() not in STOP_WORDS else ""
    if read.unit not in CURRENCY_UNITS:
        units = [name for name in map(unit_named, named) if name in CURRENCY_UNITS]
        unit = next(iter(units), unit)
    # Dose (ml): 60; but "(m)" may be a scale
    if not unit and not power and len(named) == 1 and len(named[0]) > 1:
        unit = _NAMES_OF_UNITS.get(named[0].casefold(), "")
    scale = read.scale or (0 if read.unit in SHARES or is_scaled else power)
    return _Amount(shown, start, read.number.scaleb(scale - read.scale), scale, unit, flaw)


def _unit(match: re.Match[str] | None) -> str:
    """The unit that a match names, with the unit after "per"; "" for other words."""
    word = match["unit"].replace(" ", "") if match else ""
    unit = _NAMES_OF_UNITS.get(word.lower(), "") or unit_named(word)
    if match and unit and (per := match["per"]):
        return f"{unit}/{_NAMES_OF_UNITS.get(per.lower(), per.casefold())}"
    return unit


_CALENDAR = frozenset({"year", "month", "day", "week", "hour", "minute", "second"})
"""Last words of field names that are no units: `start_year` is a year of the calendar, not a duration in years."""
_LAST_UNIT = lazy_pattern(rf"\s{_UNIT}\Z")  # dose mg
_IN_UNIT = lazy_pattern(  # in mg, as %, "weight, kg", in millions of EUR
    rf"(?:\b(?:in|as)|,)\s(?:(?:{'|'.join(SCALES)})s?\s(?:of\s)?)?{_UNIT}", re.I
)
_MAX_CAPTION = 40
"""Maximum characters between a caption (`in millions`) and the line of a number, if the field itself names no scale."""
_MAX_LINES = 4 * _MAX_CAPTION
"""Characters before a quote that have this caption even if some of them are invisible."""


def _format_unit(unit: str) -> str:
    return f"{unit}s" if unit in _CALENDAR else unit


def _scales_in(line: str, *, is_above: bool = False) -> set[int]:
    """The powers of ten that a line names for its numbers; with `is_above`, for the numbers of lines below."""
    found = set()
    words = list(_CAPTION_WORD.finditer(line))
    names = ["", *(word[0].casefold() for word in words), "", ""]

    def is_money(i: int) -> bool:
        return 0 < i <= len(words) and unit_named(words[i - 1][0]) in CURRENCY_UNITS

    for i, word in enumerate(words, start=1):
        name = names[i]
        power = SCALE_WORDS.get(name) or FOREIGN_SCALES.get(name)
        if not power and name in MONEY_SCALES and is_money(i - 1):
            power = MONEY_SCALES[name]  # `£m`
        if not power:
            continue
        lead = line[max(word.start() - 3, 0) : word.start()].rstrip()
        is_caption = lead.endswith("(") or names[i - 1] == "in" or is_money(i - 1)
        is_caption |= is_money(i + 1) or (names[i + 1] == "of" and is_money(i + 2))
        if not is_caption or lead[-1:].isdigit():
            continue
        rest = line[word.end() :] if is_above else ""
        if all(len(each.text) == 4 for each in _amounts(rest)):  # years head columns
            found.add(power)
    return found


_DEGREES = tuple(f"{word} {unit}" for word in ("temp", "ture") for unit in "cf")
"""Ends of field names whose last letter is a unit of temperature: `body_temperature_c`, `temp_f`."""


def words_of(name: str) -> str:
    """The name of a field as words."""
    return _BETWEEN.sub(" ", name)


_BETWEEN = lazy_pattern(r"(?<=[a-z])(?=[A-Z])|[_.\W]+")  # doseMg, dose_mg, dose.mg


class _Measure(NamedTuple):
    """What a field says of its numbers; a `rate` has "per" in its name."""

    unit: str
    scale: int
    is_rate: bool


@lru_cache(maxsize=1024)
def _measure_of(field: Field) -> _Measure:
    words = words_of(field.name)
    scale = scale_of(f"{words} {field.description}") or 0
    return _Measure(_unit_of_field(field), scale, " per " in words.casefold())


def _unit_of_field(field: Field) -> str:
    """The unit that the name or the description of a field states; "" for none."""
    words = words_of(field.name).rstrip().casefold()
    if words.endswith(_DEGREES):
        words = f"{words[:-1]}°{words[-1]}"
    head, per, _ = words.partition(" per ")
    if per and not ((one := _unit(_LAST_UNIT.search(f" {head}"))) and one not in CURRENCY_UNITS):
        words = head  # `price_eur_per_kg`, `times_per_day`; a dose is in mg/kg
    last = words.rpartition(" ")[2]
    if last in MONEY_SCALES and scale_of(field.description):
        words = last = ""  # `revenue_m (in millions of EUR)`
    is_code = last != words and len(last) == 3 and last.isascii() and last.isalpha()
    if code := unit_named(last.upper()) if is_code else "":
        return code
    if last not in _CALENDAR and (unit := _unit(_LAST_UNIT.search(words))):
        return unit
    about = field.description
    about = f"in {about}" if len(about.split()) == 1 else about
    return next(filter(None, map(_unit, _IN_UNIT.finditer(about))), "")


def _factor(unit: str, wanted: str) -> Decimal | None:
    """The factor that converts a number from `unit` to `wanted`; None if the units do not convert."""
    if unit == wanted or not unit or not wanted:
        return Decimal(1)
    for dimension in DIMENSIONS:
        if unit in dimension and wanted in dimension:
            return Decimal(dimension[unit]) / Decimal(dimension[wanted])
    return None


def _number(field: Field, value: Stated, passage: str, before: str, after: str) -> Reading:
    with localcontext(prec=2 * MAX_DIGITS):  # nothing is rounded
        number, shown, basis = _check_number(field, value, passage, before, after)
    if field.type == "decimal":
        return f"{shown:f}", basis
    return (int(number) if number == number.to_integral_value() else float(number)), basis


def _check_number(
    field: Field, value: Stated, passage: str, before: str, after: str
) -> tuple[Decimal, Decimal, Basis]:
    """Check a number; return it, the number with the passage's digits, and the basis."""
    unit, scale, is_rate = _measure_of(field)
    number = _stated_number(value, unit)
    if field.type == "int" and number != number.to_integral_value():
        raise DisagreementError(f"{number:f} is not a whole number")
    flaw = above = ""
    if scale or not unit or unit in CURRENCY_UNITS:
        # Only a field with a scale takes it from a caption further above
        first = 0 if scale else before.rfind("\n", 0, -_MAX_LINES) + 1
        above = plain(before[first:-MAX_BESIDE])
    # a unit, or a caption with the scale, may stand beside the quote
    lead, passage, rest = map(plain, (before[-MAX_BESIDE:], passage, after[:MAX_BESIDE]))
    amounts = list(_amounts(lead + passage + rest, len(lead), len(lead) + len(passage)))
    for amount in amounts:
        if amount.number is None:
            flaw = flaw or amount.flaw
            continue
        factor = _factor(amount.unit, unit)
        if is_rate and not unit and any(amount.unit in dimension for dimension in DIMENSIONS):
            flaw = amount.flaw or f"the quote gives '{amount}', the field is a number of times"
            continue
        wanted = {number.scaleb(scale)}  # the exact number: 5 in millions is 5,000,000
        if not unit and amount.unit == "%":
            wanted.add(number * 100)  # a share: 0.05 for 5 %
        bare = amount.number * (factor or 1)
        powers = _scales_of(amount, unit, scale, above, lead + passage + rest)
        readings = {bare.scaleb(power) for power in powers or {0}}  # several if captions disagree
        is_certain = len(readings) == 1 and readings <= wanted
        # Another number: neither as it is written nor as the captions scale it
        if not is_certain and bare not in wanted and (amount.scale or bare != number):
            continue
        if factor is None:
            flaw = (
                amount.flaw or f"the quote gives '{amount}', the field is in {_format_unit(unit)}"
            )
        elif amount.flaw:
            flaw = amount.flaw
        elif not is_certain:
            said = "a caption names another scale" if powers else "no caption names the scale"
            flaw = f"{said} of {quoted(amount.text)}"
        else:
            is_copied = amount.text == f"{number.normalize():f}" and factor == 1
            is_same = amount.number == number and not amount.scale
            shown = amount.number if is_same else number
            is_copied |= field.type == "decimal" and is_same and amount.text == f"{shown:f}"
            return number, shown, "copied" if is_copied else "normalised"
    if not flaw and unit:
        others = (each for each in amounts if each.number == number and each.unit not in ("", unit))
        if other := next(others, None):
            flaw = f"the quote gives '{other}', the field is in {_format_unit(unit)}"
    raise DisagreementError(flaw or _instead("number", [each.text for each in _amounts(passage)]))


def _scales_of(amount: _Amount, unit: str, scale: int, above: str, text: str) -> set[int]:
    """The powers of ten that captions name for a number without a scale of its own: captions on its line, else on the nearest line above."""
    is_money = not unit or unit in CURRENCY_UNITS
    is_year = not scale and len(amount.text) == 4 and amount.text.isdigit()
    if amount.scale or is_year or not (is_money or scale):
        return set()
    if not (not amount.unit or amount.unit[0] == "?" or amount.unit in CURRENCY_UNITS):
        return set()
    text, start = above + text, len(above) + amount.start
    end = start + len(amount.text)
    low = 0 if scale else max(start - _MAX_CAPTION, 0)
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    found = _scales_in(text[begin : stop if stop >= 0 else None])
    behind = _CAPTION_WORD.match(text[end:].lstrip())
    if power := SCALE_WORDS.get(behind[0].casefold()) if behind else None:
        found.add(power)  # on the next line
    for line in reversed(text[low:begin].splitlines()):
        found = found or _scales_in(line, is_above=True)
    return found


def _stated_number(value: Stated, unit: str) -> Decimal:
    """The number that a reply gives, in the unit of its field."""
    if isinstance(value, bool):
        raise DisagreementError(f"{str(value).lower()} is no number")
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > MAX_DIGITS:
            raise DisagreementError("the number is too large")
        return value
    amounts = list(_amounts(plain(value)))
    if len(amounts) != 1 or amounts[0].number is None or amounts[0].flaw:
        why = amounts[0].flaw if len(amounts) == 1 else "it is not one number"
        raise DisagreementError(f"{quoted(value)} is no number: {why}")
    (amount,) = amounts
    factor = _factor(amount.unit, unit)
    if factor is None or amount.number is None:
        raise DisagreementError(f"{quoted(value)} is not in {unit}")
    return amount.number * factor


_READERS = {
    "str": _copied, "text": _summary, "label": _label, "bool": _truth, "date": _date, "int": _number,
    "number": _number, "decimal": _number,
}  # fmt: skip
