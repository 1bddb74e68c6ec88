"""Columns of rows: the one that a name in a plan means, and which rows meet a condition on it.

A plan is written without the document, so its names are looked up tolerantly, but never guessed
between two columns. Dates are read a whole column at once: the order of day and month is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pearl.actions.values import Scalar, Value, as_text, coerce
from pearl.documents.comparisons import ORDERED, Kind, Verdict, Wanted, are_mostly, comparison
from pearl.documents.dates import DATE_PARTS, date_part, read_dates, read_period
from pearl.documents.english import singular
from pearl.documents.rows import TEXT_COLUMN, Row, Rows
from pearl.dsl.signatures import ValueType
from pearl.errors.patterns import lazy_pattern

MAX_SHOWN = 12  # maximum names of fields in a message

_PART = lazy_pattern(rf"(?P<name>.+) by (?P<part>{'|'.join(DATE_PARTS)})s?", re.I | re.S)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of rows."""

    name: str
    values: Sequence[str | None]
    doubtful: Sequence[str | None]
    notes: tuple[str, ...] = ()


def read_column(rows: Rows, name: str, kind: Kind | None = None) -> Column:
    """The column that a name means: exact, else in other case or number ("user IDs" for "User").

    `"Date by month"` is the months of a column of dates.
    """
    names = rows.names
    part = None if name in names else _PART.fullmatch(name)
    if part is None:
        return _found(rows, names, name, kind)
    column = _found(rows, names, part["name"], "date")
    every = [*column.values, *column.doubtful]
    different = list(dict.fromkeys(every))
    dates = read_dates(different)
    key_of = {
        value: date_part(period, part["part"].lower()) if period else _empty_or_unread(value)
        for value, period in zip(different, dates.periods, strict=True)
    }
    keys = [key_of[value] for value in every]
    n_unread = sum(
        key is None and value is not None for key, value in zip(keys, every, strict=True)
    )
    notes = [*column.notes, *([dates.note] if dates.note else [])]
    if n_unread:
        notes.append(f"{n_unread:,} of {len(every):,} in {column.name} have no {part['part']}")
    n = len(column.values)
    return Column(f"{column.name} by {part['part'].lower()}", keys[:n], keys[n:], tuple(notes))


def _found(rows: Rows, names: tuple[str, ...], name: str, kind: Kind | None) -> Column:
    if name in names:
        return _of_field(rows, name)
    if name == rows.column:
        return Column(name, [row.value for row in rows], [row.value for row in rows.doubtful])
    known = list(dict.fromkeys((*names, TEXT_COLUMN)))
    if name == TEXT_COLUMN or not (len(rows) or rows.doubtful):
        return _of_text(rows) if name == TEXT_COLUMN else Column(name, [], [])
    for spelled in (str.casefold, _bare, stem):
        close = [each for each in known if spelled(each) == spelled(name)]
        if len(close) == 1:
            return _of_text(rows) if close[0] not in names else _of_field(rows, close[0])
        if close:
            raise ValueError(f"'{name}' may mean any of the fields {_listed(close)}")
    within = [each for each in names if f" {stem(each)}".endswith(f" {stem(name)}")]
    if len(within) == 1 and stem(name):
        note = f"'{name}' is not a field: using {within[0]}, the only field with this ending"
        return replace(_of_field(rows, within[0]), notes=(note,))
    if within and stem(name):
        raise ValueError(f"'{name}' may mean any of the fields {_listed(within)}")
    if kind:
        fitting = [each for each in names if are_mostly(kind, _of_field(rows, each).values)]
        if len(fitting) == 1:
            note = f"'{name}' is not a field: using {fitting[0]}, the only field of {kind}s"
            return replace(_of_field(rows, fitting[0]), notes=(note,))
    raise ValueError(f"there is no field '{name}'; the rows have: {_listed(known)}")


def _of_field(rows: Rows, name: str) -> Column:
    return _each(rows, name, lambda row: row.fields.get(name, ""))


def _of_text(rows: Rows) -> Column:
    return _each(rows, TEXT_COLUMN, lambda row: row.text or row.value)


def _each(rows: Rows, name: str, value: Callable[[Row], str | None]) -> Column:
    return Column(name, [value(row) for row in rows], [value(row) for row in rows.doubtful])


def _empty_or_unread(value: str | None) -> str | None:
    """The date part of a value that is not a date: "" if empty, else None for undecided."""
    return "" if value is not None and not value.strip() else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_SHOWN]) + (", ..." if len(names) > MAX_SHOWN else "")


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())


def stem(name: str) -> str:
    """A name without plural endings and words for identifiers."""
    words = [word for word in re.split(r"[\W_]+", name.casefold()) if word]
    if len(words) > 1 and words[-1] in ("id", "ids", "name", "names", "number", "numbers"):
        words.pop()
    return " ".join(map(singular, words))


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict for each row and each doubtful row."""

    rows: tuple[tuple[Row, Verdict], ...]
    doubtful: tuple[tuple[Row, Verdict], ...]
    notes: tuple[str, ...]


def wanted_by(x: Value, *, is_list: bool) -> Wanted:
    """The texts of an argument."""
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
    """
    wanted = wanted_by(x, is_list=operator in ("in", "not in"))
    kind: Kind | None = None
    if operator in ORDERED:
        if len(wanted.sure) + len(wanted.possible) != 1:
            raise ValueError(f"'{operator}' compares with one value, not with several")
        (text,) = (*wanted.sure, *wanted.possible)
        kind = "date" if read_period(text)[0] else "number"
    column = read_column(rows, name, kind)
    counts = Counter((*column.values, *column.doubtful))
    different = [value for value in counts if value is not None]
    meets, notes = comparison(operator, wanted, different, column.name)
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
