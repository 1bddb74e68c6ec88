"""What WHERE asks of a column: which values meet it, which do not, and which are undecided.

Values are compared as texts without case and blanks, as dates or as numbers. What the comparison
needs is told from the value compared with, and from the column: `2023` is a year beside dates and a
number beside numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from pearl.actions.columns import Column, Kind, are_mostly, read_column
from pearl.actions.native import Scalar, Value, as_text, coerce, key_of
from pearl.actions.numbers import quantity
from pearl.documents.dates import read_dates, read_period
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
        if len(wanted.sure) + len(wanted.possible) != 1 or wanted.may_be_any:
            raise ValueError(f"'{operator}' compares with one value, not with several")
        (text,) = (*wanted.sure, *wanted.possible)
        kind = "number" if read_period(text) is None else "date"
    column = read_column(rows, name, kind)
    values = dict.fromkeys((*column.values, *column.doubtful))
    values.pop(None, None)
    different = [value for value in values if value is not None]
    meets, notes = _test(operator, wanted, column, different)
    verdicts: dict[str | None, Verdict] = {value: meets(value) for value in different}
    verdicts[None] = None
    if kind:
        n_open = _n(column, lambda value: value is not None and verdicts[value] is None)
        n_empty = _n(column, lambda value: value is not None and not value.strip())
        notes += [f"{n_open:,} in {column.name} cannot be compared"] if n_open else []
        notes += [f"{n_empty:,} have no {column.name}"] if n_empty else []
    return Judged(
        tuple((row, verdicts[v]) for row, v in zip(rows.rows, column.values, strict=True)),
        tuple((row, verdicts[v]) for row, v in zip(rows.doubtful, column.doubtful, strict=True)),
        tuple(dict.fromkeys((*column.notes, *notes))),
    )


def _n(column: Column, is_counted: Callable[[str | None], bool]) -> int:
    return sum(map(is_counted, (*column.values, *column.doubtful)))


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
    periods = {text: period for text in texts if (period := read_period(text))}
    if periods and are_mostly("date", values):
        dates, notes = _dates(values)

        def is_same_date(value: str, text: str) -> Verdict:
            if keys[value] == keys[text] or not (keys[value] and text in periods):
                return keys[value] == keys[text]
            return _between(dates[value], *periods[text])

        return is_same_date, notes
    amounts = {text: amount for text in texts if (amount := _quantity(text))}
    if amounts and are_mostly("number", values):
        read = {value: _quantity(value) for value in values}

        def is_same_number(value: str, text: str) -> Verdict:
            one, other = read[value], amounts.get(text)
            if keys[value] == keys[text] or one is None or other is None:
                return keys[value] == keys[text]
            return None if one[1] and other[1] and one[1] != other[1] else one[0] == other[0]

        return is_same_number, []
    return (lambda value, text: keys[value] == keys[text]), []


def _between(day: date | None, first: date, last: date) -> Verdict:
    return None if day is None else first <= day <= last


def _quantity(text: str) -> tuple[int | float, str] | None:
    try:
        return quantity(text)
    except ValueError:
        return None


def _order(
    operator: str, text: str, values: Sequence[str]
) -> tuple[Callable[[str], Verdict], list[str]]:
    """The test of a value's place in time or of its size."""
    period = read_period(text)
    if period is not None and (not _YEAR.fullmatch(text) or are_mostly("date", values)):
        dates, notes = _dates(values)
        return (lambda v: _placed(operator, dates[v], *period, is_empty=not v.strip())), notes
    try:
        number, unit = quantity(text)
    except ValueError as error:
        raise ValueError(f"'{text}' is neither a date nor a number ({error})") from error
    read = {value: _quantity(value) for value in values}

    def meets(value: str) -> Verdict:
        found = read[value]
        if found is None:
            return None if value.strip() else False
        is_other = unit and found[1] and unit != found[1]
        return None if is_other else _placed(operator, found[0], number, number)

    units = dict.fromkeys([unit, *(found[1] for found in read.values() if found)])
    units.pop("", None)
    differ = [f"numbers in different units: {', '.join(units)}"] if len(units) > 1 else []
    return meets, differ


def _placed(
    operator: str, value: object, first: object, last: object, *, is_empty: bool = False
) -> Verdict:
    """Compare with what goes from a first to a last date, or with one number."""
    if value is None:
        return False if is_empty else None
    match operator:
        case "before":
            return bool(value < first)  # type: ignore[operator]
        case "after":
            return bool(value > last)  # type: ignore[operator]
        case "at least":
            return bool(value >= first)  # type: ignore[operator]
        case _:
            return bool(value <= last)  # type: ignore[operator]


def _dates(values: Sequence[str]) -> tuple[dict[str, date | None], list[str]]:
    read = read_dates(values)
    return dict(zip(values, read.dates, strict=True)), [read.note] if read.note else []


def _spellings(matched: Sequence[str], name: str) -> list[str]:
    different = dict.fromkeys(value.strip() for value in matched)
    by_key: dict[str, list[str]] = {}
    for value in different:
        by_key.setdefault(key_of(value), []).append(value)
    alike = [", ".join(each) for each in by_key.values() if len(each) > 1]
    return [f"{name}: all of {'; '.join(alike[:3])} are meant"] if alike else []
