"""What WHERE asks of a column: which values meet it, which do not, and which are undecided.

Values are compared as texts without case and blanks, as dates or as numbers. What the comparison
needs follows from the value compared with, and from the column: `2023` is a year beside dates and a
number beside numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pearl.actions.columns import Column, Kind, are_mostly, read_column
from pearl.actions.numbers import find_quantity, quantity
from pearl.actions.values import Scalar, Value, as_text, coerce, key_of
from pearl.documents.dates import Period, read_dates, read_period
from pearl.documents.rows import Row, Rows
from pearl.dsl.signatures import ValueType

__all__ = ["OPERATORS", "Judged", "judge", "wanted_by"]

OPERATORS = (
    "is", "is not", "in", "not in", "contains", "before", "after", "at least", "at most",
)  # fmt: skip

Verdict = bool | None
"""Whether a value meets the condition; None if that is undecided."""

_ORDERED = frozenset({"before", "after", "at least", "at most"})
_YEAR = re.compile(r"\s*\d{4}\s*")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a value is compared with.

    Attributes:
        sure: Texts that surely are among them.
        possible: Texts that may be.
        may_be_any: Whether an unread one may be anything.
    """

    sure: tuple[str, ...]
    possible: tuple[str, ...] = ()
    may_be_any: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict for each row and each doubtful row.

    Attributes:
        notes: What was decided to read the column, and what in it could not be read.
    """

    rows: tuple[tuple[Row, Verdict], ...]
    doubtful: tuple[tuple[Row, Verdict], ...]
    notes: tuple[str, ...]


def wanted_by(x: Value, *, is_list: bool) -> Wanted:
    """The texts that an argument stands for.

    Args:
        x: A text, a number, a list, rows or what was computed from rows.
        is_list: Whether a text may list several, in lines or with semicolons between.
    """
    if isinstance(x, Rows):
        possible = tuple(row.value for row in x.doubtful if row.value is not None)
        is_any = any(row.value is None for row in (*x.rows, *x.doubtful))
        return Wanted(tuple(x.values), possible, is_any)
    if isinstance(x, Scalar):
        if x.rows.undecided:
            return Wanted((), (as_text(x.value),), may_be_any=True)
        x = x.value
    if isinstance(x, list):
        return Wanted(tuple(x))
    if not is_list:
        return Wanted((as_text(x).strip(),))
    found = coerce(x, ValueType.LIST)
    return Wanted(tuple(found) if isinstance(found, list) else ())


def judge(rows: Rows, name: str, operator: str, x: Value) -> Judged:
    """Compare a column of rows with a value.

    An empty value is never before, after, at least or at most anything. What is to be read as a
    date or a number and cannot be is undecided, as are numbers in another unit.

    Raises:
        ValueError: There is no such operator or column, or the value is not of a kind that it takes.
    """
    if operator not in OPERATORS:
        raise ValueError(f"'{operator}' is no operator; operators are {', '.join(OPERATORS)}")
    wanted = wanted_by(x, is_list=operator in ("in", "not in"))
    kind: Kind | None = None
    if operator in _ORDERED:
        if len(wanted.sure) + len(wanted.possible) != 1:
            raise ValueError(f"'{operator}' compares with one value, not with several")
        (text,) = (*wanted.sure, *wanted.possible)
        kind = "date" if read_period(text)[0] else "number"
    column = read_column(rows, name, kind)
    counts = Counter((*column.values, *column.doubtful))
    different = [value for value in counts if value is not None]
    meets, notes = _test(operator, wanted, column, different)
    verdicts: dict[str | None, Verdict] = {value: meets(value) for value in different}
    verdicts[None] = None
    if kind:
        n_open = sum(counts[value] for value in different if verdicts[value] is None)
        n_empty = sum(counts[value] for value in different if not value.strip())
        notes += [f"{n_open:,} in {column.name} cannot be compared"] if n_open else []
        notes += [f"{n_empty:,} have no {column.name}"] if n_empty else []
    return Judged(
        tuple((row, verdicts[v]) for row, v in zip(rows.rows, column.values, strict=True)),
        tuple((row, verdicts[v]) for row, v in zip(rows.doubtful, column.doubtful, strict=True)),
        tuple(dict.fromkeys(note for note in (*column.notes, *notes) if note)),
    )


def _test(
    operator: str, wanted: Wanted, column: Column, values: Sequence[str]
) -> tuple[Callable[[str], Verdict], list[str]]:
    """The test of one value, and what a reader has to know about it."""
    if operator in _ORDERED:
        (text,) = (*wanted.sure, *wanted.possible)
        is_sure = bool(wanted.sure)
        meets, notes = _order(operator, text, values)
        return (lambda value: meets(value) if is_sure else None), notes
    if operator == "contains":
        return _any_of(wanted, lambda value, text: key_of(text) in key_of(value)), []
    same, notes = _sameness(wanted, values)
    alike = _any_of(wanted, same)
    if operator in ("is", "in"):
        matched = [value for value in values if alike(value)]
        return alike, [*notes, *_spellings(matched, column.name)]
    return (lambda value: None if (met := alike(value)) is None else not met), notes


def _any_of(wanted: Wanted, same: Callable[[str, str], Verdict]) -> Callable[[str], Verdict]:
    def meets(value: str) -> Verdict:
        sure = [same(value, text) for text in wanted.sure]
        if True in sure:
            return True
        is_open = None in sure or any(same(value, text) is not False for text in wanted.possible)
        return None if is_open or wanted.may_be_any else False

    return meets


def _sameness(
    wanted: Wanted, values: Sequence[str]
) -> tuple[Callable[[str, str], Verdict], list[str]]:
    """Whether two texts say the same: the same words, or beside dates the same date, and so on."""
    texts = (*wanted.sure, *wanted.possible)
    keys = {text: key_of(text) for text in (*texts, *values)}
    if any(read_period(text)[0] for text in texts) and are_mostly("date", values):
        dates = read_dates(values)
        read = [read_period(text, dates.is_day_first) for text in texts]
        periods = {text: period for text, (period, _) in zip(texts, read, strict=True) if period}
        of_value = dict(zip(values, dates.periods, strict=True))

        def is_same_date(value: str, text: str) -> Verdict:
            if keys[value] == keys[text] or not (keys[value] and text in periods):
                return keys[value] == keys[text]
            return _within(of_value[value], periods[text])

        return is_same_date, [dates.note, *(note for _, note in read)]
    amounts = {text: amount for text in texts if (amount := find_quantity(text))}
    if amounts and are_mostly("number", values):
        of_number = {value: find_quantity(value) for value in values}

        def is_same_number(value: str, text: str) -> Verdict:
            one, other = of_number[value], amounts.get(text)
            if keys[value] == keys[text] or one is None or other is None:
                return keys[value] == keys[text]
            return None if one[1] and other[1] and one[1] != other[1] else one[0] == other[0]

        return is_same_number, []
    return (lambda value, text: keys[value] == keys[text]), []


def _within(one: Period | None, other: Period) -> Verdict:
    """Whether a period lies in another one; None if only a part of it does."""
    if one is None:
        return None
    if other.first <= one.first and one.last <= other.last:
        return True
    return False if one.is_before(other) or other.is_before(one) else None


def _order(
    operator: str, text: str, values: Sequence[str]
) -> tuple[Callable[[str], Verdict], list[str]]:
    """The test of a value's place in time or of its size."""
    if read_period(text)[0] and (not _YEAR.fullmatch(text) or are_mostly("date", values)):
        dates = read_dates(values)
        period, note = read_period(text, dates.is_day_first)
        of_value = dict(zip(values, dates.periods, strict=True))

        def is_placed(value: str) -> Verdict:
            found = of_value[value]
            if found is None or period is None:
                return None if value.strip() else False
            return _placed(operator, (found.first, found.last), (period.first, period.last))

        return is_placed, [dates.note, note]
    try:
        number, unit = quantity(text)
    except ValueError as error:
        raise ValueError(f"'{text}' is neither a date nor a number ({error})") from error
    read = {value: find_quantity(value) for value in values}

    units = Counter(found[1] for found in read.values() if found and found[1])
    if not unit and units:  # a number alone is in the unit of most
        unit = units.most_common(1)[0][0]

    def meets(value: str) -> Verdict:
        found = read[value]
        if found is None:
            return None if value.strip() else False
        is_other = unit and found[1] and unit != found[1]
        return None if is_other else _placed(operator, (found[0], found[0]), (number, number))

    names = dict.fromkeys([unit, *units]) if len({unit, *units} - {""}) > 1 else ()
    return meets, [f"numbers in different units: {', '.join(names)}"] if names else []


def _placed(operator: str, one: tuple[Any, Any], other: tuple[Any, Any]) -> Verdict:
    """Compare what goes from a first to a last with another; None if only a part of it is there."""
    match operator:
        case "before":
            ends = one[1] < other[0], one[0] < other[0]
        case "after":
            ends = one[0] > other[1], one[1] > other[1]
        case "at least":
            ends = one[0] >= other[0], one[1] >= other[0]
        case _:
            ends = one[1] <= other[1], one[0] <= other[1]
    return ends[0] if ends[0] == ends[1] else None


def _spellings(matched: Sequence[str], name: str) -> list[str]:
    different = dict.fromkeys(value.strip() for value in matched)
    by_key: dict[str, list[str]] = {}
    for value in different:
        by_key.setdefault(key_of(value), []).append(value)
    alike = [", ".join(each) for each in by_key.values() if len(each) > 1]
    return [f"{name}: all of {'; '.join(alike[:3])} are meant"] if alike else []
