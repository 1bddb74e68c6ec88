"""Compares the values of a column with one value: each meets the condition, does not, or is undecided.

Values are compared as texts (ignoring case and blanks), as dates or as numbers. The column decides
which: `2023` is a year in a column of dates and a number in a column of numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from pearl.documents.dates import Period, read_dates, read_period
from pearl.documents.lexicon import (
    CURRENCY_UNITS,
    FOREIGN_SCALES,
    KNOWN_UNITS,
    SCALE_WORDS,
    SHARES,
    begins_with_digit,
    singular,
)
from pearl.documents.numbers import (
    RAISED,
    VULGAR,
    Quantity,
    find_quantity,
    is_blank,
    listed,
    quantity,
    read_numbers,
    read_quantity,
)
from pearl.documents.passages import STOP_WORDS
from pearl.errors.patterns import lazy_pattern

OPERATORS = (
    "is", "is not", "in", "not in", "contains", "before", "after", "at least", "at most",
)  # fmt: skip

ORDERED = frozenset({"before", "after", "at least", "at most"})
"""Operators that compare with one date or number."""

Verdict = bool | None  # whether a value meets the condition; None if that is undecided

Test = Callable[[str], Verdict]  # a value → whether it meets a condition

Kind = Literal["date", "number"]

MAX_SAMPLED = 200  # maximum distinct values from which the kind of a column is inferred

_LETTERS = lazy_pattern(rf"[^\W\d_{VULGAR}]+")  # h and km of 5 km/h
_NO_UNITS = frozenset((  # "about 5", "5 (in millions)", "minus 5"
    *SCALE_WORDS, *FOREIGN_SCALES, *STOP_WORDS, "minus", "negative", "approx", "ca", "circa", "est",
))  # fmt: skip
_NO_WORD = lazy_pattern(rf"(?<=\d)(?:[{RAISED}]+|e(?=[-+]?\d))")  # 310², 1.5e+07
_RATE = lazy_pattern(r"/\s*[^\W\d_]|\bper\b", re.I)  # 5 km/h, 3 per day
_DIGITS = lazy_pattern(r"([0-9]+)")  # a group, so that `split` keeps them
_BROKEN_DIGITS = lazy_pattern(r"[0-9][.,'’ ][0-9]")  # 1.10, 1 250
"""Digits that may be those of one number, in a notation that is not clear."""


class Wanted(Struct, frozen=True):
    """The texts that a value is compared with."""

    sure: tuple[str, ...]
    possible: tuple[str, ...] = ()
    may_be_any: bool = False


def key_of(item: str) -> str:
    """The comparison key of an entry: equal entries have equal keys."""
    return spelling_of(item).casefold()


def spelling_of(item: str) -> str:
    """An entry with single blanks and composed letters, in its own case."""
    item = " ".join(item.split())
    return item if item.isascii() else unicodedata.normalize("NFC", item)


_NAMES = frozenset({"na", "nil", "nm", "n/m", "none"})
"""Words for a missing number that may also be names or labels: NA is Namibia, "none" a kind of allergy."""


def is_no_key(value: str) -> bool:
    """Whether a value is missing: blank, a dash, `NULL`, `nan`, `n/a`. A missing value equals no other."""
    return is_blank(value) and key_of(value) not in _NAMES


def are_mostly(kind: Kind, values: Sequence[str | None]) -> bool:
    """Whether more than half of the distinct non-empty values are dates, or numbers."""
    different = [v for v in dict.fromkeys(values) if v and not is_blank(v)][:MAX_SAMPLED]
    read = numbers_in(different).values() if kind == "number" else read_dates(different).periods
    return 2 * sum(each is not None for each in read) > len(different)


def comparison(
    operator: str, wanted: Wanted, values: Sequence[str], name: str
) -> tuple[Test, list[str]]:
    """Return a test for one value of the column, and notes on it. A value that is unreadable or in another unit is undecided."""
    if operator not in OPERATORS:
        raise ValueError(f"unknown operator '{operator}'; operators are {', '.join(OPERATORS)}")
    if operator in ORDERED:
        (text,) = (*wanted.sure, *wanted.possible)
        is_sure = bool(wanted.sure)
        meets, notes = _order(operator, text, values)
        return (lambda value: meets(value) if is_sure else None), notes
    if operator == "contains":
        return _any_of(wanted, lambda value, text: key_of(text) in key_of(value)), []
    different = list(dict.fromkeys(values))
    same, notes = _sameness(wanted, different)
    alike = _any_of(wanted, same)
    if operator in ("is", "in"):
        matched = (value.strip() for value in different if alike(value))
        if pairs := list(map(", ".join, spellings(matched, key_of))):
            notes = [*notes, f"{name}: all spellings are included: {'; '.join(pairs[:3])}"]
        return alike, notes
    return (lambda value: negated(alike(value))), notes


def negated(verdict: Verdict) -> Verdict:
    """The opposite of a verdict."""
    return None if verdict is None else not verdict


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Whether all conditions are met, in three-valued logic: None is undecided."""
    verdicts = tuple(verdicts)
    return False if False in verdicts else None if None in verdicts else True


def any_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Whether one of several conditions is met, in three-valued logic: None is undecided."""
    verdicts = tuple(verdicts)
    return True if True in verdicts else None if None in verdicts else False


def _any_of(wanted: Wanted, same: Callable[[str, str], Verdict]) -> Test:
    def meets(value: str) -> Verdict:
        sure = any_of(same(value, text) for text in wanted.sure)
        if sure is not False:
            return sure
        is_open = any(same(value, text) is not False for text in wanted.possible)
        return None if is_open or wanted.may_be_any else False

    return meets


_TRUTH = {"true": "yes", "yes": "yes", "false": "no", "no": "no"}


def truth_words(written: Set[str]) -> Mapping[str, str]:
    """Map `true` and `yes`, and `false` and `no`, to one key: workbooks write `TRUE` for yes. {} if the column has both spellings."""
    has_both = written.isdisjoint(("yes", "no")) == written.isdisjoint(("true", "false"))
    return {} if has_both else _TRUTH


def _sameness(
    wanted: Wanted, values: Sequence[str]
) -> tuple[Callable[[str, str], Verdict], list[str]]:
    """Return a function that compares a value with a text: as dates or numbers if the column has these, else as words."""
    texts = (*wanted.sure, *wanted.possible)
    keys = {text: key_of(text) for text in (*texts, *values)}
    truth = truth_words({keys[value] for value in values})
    keys = {text: truth.get(key, key) for text, key in keys.items()}
    if any(read_period(text)[0] for text in texts) and are_mostly("date", values):
        of_value, periods, notes = _periods(values, texts)

        def is_same_date(value: str, text: str) -> Verdict:
            period = periods[text]
            if keys[value] == keys[text] or not keys[value] or period is None:
                return keys[value] == keys[text]
            one = of_value[value]
            return None if one is None else placed("is", one, period)

        return is_same_date, notes
    amounts = {text: amount for text in texts if (amount := number_in(text))}
    if amounts and are_mostly("number", values):
        of_number = numbers_in(values)

        def is_same_number(value: str, text: str) -> Verdict:
            one, other = of_number[value], amounts.get(text)
            if keys[value] == keys[text] or one is None or other is None:
                return keys[value] == keys[text]
            if not one.unit or not other.unit or one.unit == other.unit:
                return one.value == other.value
            # Other words are those of a name: two names may contain the same year.
            return None if KNOWN_UNITS.issuperset((one.unit, other.unit)) else False

        return is_same_number, []
    return (lambda value, text: keys[value] == keys[text]), []


class Number(NamedTuple):
    """A number in a cell, and its unit; for a rate or an unknown unit, the words and signs beside it."""

    value: Decimal
    unit: str


def number_in(text: str) -> Number | None:
    """The number that a plan, a query or a single cell gives."""
    read = find_quantity(text) or read_quantity(text)
    return None if read is None else _beside(text, read)


def numbers_in(values: Sequence[str]) -> dict[str, Number | None]:
    """The number of each value of a column; other values resolve ambiguous ones. A date in words is not a number."""
    values = list(dict.fromkeys(values))
    read = dict(zip(values, read_numbers(values), strict=True))
    worded = [value for value, number in read.items() if number and _LETTERS.search(value)]
    for value, period in zip(worded, read_dates(worded).periods, strict=True):
        if period:
            read[value] = None
    return {value: _beside(value, number) if number else None for value, number in read.items()}


def _beside(value: str, quantity: Quantity) -> Number | None:
    """The number with the unit that its cell gives; None for a bound such as `65 and up`."""
    if value.isdecimal():
        return Number(quantity.number, "")
    if not _BOUNDS.isdisjoint(_LETTERS.findall(_DIGITS.split(value.casefold())[-1])):
        return None
    unit = quantity.unit
    if not unit or _RATE.search(value):
        words = {*_LETTERS.findall(_NO_WORD.sub("", value.casefold()))} - _NO_UNITS
        signs = {sign for sign in value if unicodedata.category(sign) == "Sc"}
        unit = " ".join(sorted({*map(singular, words), *signs, *filter(None, [unit])}))
    return Number(quantity.number, unit)


_BOUNDS = frozenset(("or", "and", "to", "plus", "up", "max", "more", "less"))
"""Words behind a number that make it a bound: `65 and up`."""


def in_one_unit(
    read: Mapping[str, Number | None], cells: Iterable[str], unit: str = ""
) -> tuple[dict[str, Decimal | None], str]:
    """The numbers of a column in a unit, by default the most frequent one; None for numbers in others.

    Numbers without a unit are in that of the others if these are more frequent, or if the first number has a currency:
    accounts write it only in the first row and the total. Among percentages, they may be shares (0.3) or percentages (30).
    """
    units = Counter(number.unit for cell in cells if (number := read.get(cell)))
    if not unit:
        unit, first = max(units, key=units.__getitem__, default=""), next(iter(units), "")
        if not unit and first in CURRENCY_UNITS and not units.keys() - {"", first}:
            unit = first
    alike = {"", unit} if SHARES.keys().isdisjoint((unit, *units)) else {unit}
    return {v: n.value if n and n.unit in alike else None for v, n in read.items()}, unit


BLANK = "", ""  # The sort key of an empty value


def sort_keys(values: Sequence[str | None], name: str) -> tuple[dict[str | None, Any], list[str]]:
    """Return the sort key of each value, and notes. Keys are numbers or dates if most values are, else texts; None if a value cannot be compared."""
    blank = {value for value in values if value is not None and is_no_key(value)}
    different = [v for v in dict.fromkeys(values) if v is not None and v not in blank]
    keys: dict[str | None, Any] = {v: BLANK if v in blank else None for v in values}
    dates, numbers = read_dates(different), numbers_in(different)
    amounts, _ = in_one_unit(numbers, filter(None, values))
    begin_with_digit = set(filter(begins_with_digit, different))
    n_dates = len(different) - dates.periods.count(None)
    # Numbers in other units count: a column of them is not sorted as texts. Names with a number do not.
    n_numbers = sum(
        number is not None
        and (number.unit in KNOWN_UNITS or value in begin_with_digit or amounts[value] is not None)
        for value, number in numbers.items()
    )
    notes: list[str] = []
    n_read = max(n_dates, n_numbers)
    are_texts = 2 * len(begin_with_digit) <= len(different)
    if 2 * n_read <= len(different) and (are_texts or not n_read):
        if has_one_order(different):
            keys.update({value: (key_of(value), value) for value in different})
            if not are_texts:
                why = "because most values are not clear numbers or dates"
                notes.append(f"{name}: sorted as texts, {why}")
    else:
        if n_dates > n_numbers:  # years alone are both
            pairs = zip(different, dates.periods, strict=True)
            keys.update({value: period for value, period in pairs if period})
            notes += filter(None, [dates.note])
        else:
            keys.update(amounts)
        # In a column of numbers or dates, `none` and `NA` mean a missing value.
        keys.update({value: BLANK for value in different if is_blank(value)})
    unclear = [value for value in different if keys[value] is None]
    if unclear:
        kind = "dates" if n_dates > n_numbers else "numbers"
        shown = listed([value[:40] for value in unclear], 3)
        n = f"{len(unclear):,} value{'s' * (len(unclear) > 1)}"
        notes.append(f"{name}: {n} cannot be compared as {kind}: {shown}")
    return keys, notes


def has_one_order(values: Sequence[str]) -> bool:
    """Whether texts with numbers sort alike by letters and by numbers: `v1.9` and `v1.10` do not, nor `9:15` and `10:30`."""
    values = [value for value in values if not is_no_key(value)]
    words = {tuple(_LETTERS.findall(value.casefold())) for value in values}
    if len(words) > 1 and 2 * sum(map(begins_with_digit, values)) <= len(values):
        return True
    if any(map(_BROKEN_DIGITS.search, values)):
        return False

    def by_number(value: str) -> list[str | int]:
        parts: list[str | int] = [*_DIGITS.split(key_of(value))]
        parts[1::2] = map(int, map(str, parts[1::2]))
        return parts

    return sorted(values, key=key_of) == sorted(values, key=by_number)


def plain_numbers(values: Sequence[str]) -> dict[str, Decimal]:
    """Return the numbers of the values that are only a number, without a unit or a word."""
    read = numbers_in(values)
    return {value: number.value for value, number in read.items() if number and not number.unit}


_Periods = dict[str, Period | None]


def _periods(values: Sequence[str], texts: Sequence[str]) -> tuple[_Periods, _Periods, list[str]]:
    """Read the periods of a column, and of texts with the column's order of day and month; also return notes."""
    dates = read_dates(values)
    read = {text: read_period(text, dates.is_day_first) for text in texts}
    periods = {text: period for text, (period, _) in read.items()}
    of_value = dict(zip(values, dates.periods, strict=True))
    return of_value, periods, [dates.note, *(note for _, note in read.values())]


def _order(operator: str, text: str, values: Sequence[str]) -> tuple[Test, list[str]]:
    """Return the test that compares a value as a date or a number."""
    read: Mapping[str, Range | None]
    if read_period(text)[0] and (not text.strip().isdecimal() or are_mostly("date", values)):
        read, periods, notes = _periods(values, [text])
        wanted: Range | None = periods[text]
    elif number := number_in(text):
        found = numbers_in(values)
        amounts, unit = in_one_unit(found, values, number.unit)
        read = {v: None if amount is None else (amount, amount) for v, amount in amounts.items()}
        wanted = number.value, number.value
        units = Counter(one.unit for one in found.values() if one and one.unit)
        names = dict.fromkeys([unit, *units]) if len({unit, *units} - {""}) > 1 else ()
        shown = listed([name[:40] for name in names], 5)
        notes = [f"numbers in different units: {shown}"] if names else []
    else:
        why = "it cannot be read with certainty"
        try:
            quantity(text)
        except ValueError as error:
            why = str(error)
        raise ValueError(f"'{text}' is neither a date nor a number ({why})")

    def meets(value: str) -> Verdict:
        one = read[value]
        if one is None or wanted is None:
            return False if is_blank(value) else None
        return placed(operator, one, wanted)

    return meets, notes


Range = tuple[Any, Any]


def placed(operator: str, one: Range, other: Range) -> Verdict:
    """Compare two ranges; undecided if only part of the first range meets the condition."""
    match operator:
        case "is":
            ends = (
                other[0] <= one[0] and one[1] <= other[1],
                one[1] >= other[0] and one[0] <= other[1],
            )
        case "before":
            ends = one[1] < other[0], one[0] < other[0]
        case "after":
            ends = one[0] > other[1], one[1] > other[1]
        case "at least":
            ends = one[0] >= other[0], one[1] >= other[0]
        case _:
            ends = one[1] <= other[1], one[0] <= other[1]
    return ends[0] if ends[0] == ends[1] else None


def spellings(values: Iterable[str], key: Callable[[str], str]) -> list[list[str]]:
    """The different values with the same key, where there are several."""
    by_key: dict[str, dict[str, None]] = {}
    for value in values:
        by_key.setdefault(key(value), {})[value] = None
    return [list(each) for each in by_key.values() if len(each) > 1]
