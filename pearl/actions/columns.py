"""Find the column that a name in a plan means, and the rows that meet a condition on it.

A plan is written without the document, so names are matched tolerantly; a name that fits two columns
is an error. Dates are read a whole column at once, because they share one order of day and month.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from pearl.actions.values import Scalar, Value, as_text, coerce
from pearl.documents.comparisons import (
    ORDERED,
    Kind,
    Verdict,
    Wanted,
    are_mostly,
    comparison,
    is_no_key,
)
from pearl.documents.dates import date_part, part_of_dates, read_dates, read_period
from pearl.documents.lexicon import singular
from pearl.documents.numbers import UnclearNumberError, is_blank, listed
from pearl.documents.rows import TEXT_COLUMN, Rows, Stated
from pearl.dsl.signatures import ValueType

MAX_SHOWN = 12  # maximum names of fields in a message


class Column(Struct, frozen=True):
    """A column of rows: the values of all rows and then of the doubtful ones."""

    name: str
    values: Sequence[str | None]
    notes: tuple[str, ...] = ()


def read_column(rows: Rows, name: str, kind: Kind | None = None) -> Column:
    """Find a column by its exact name, else by one in another case, singular or plural; `"Date by month"` gives months."""
    names = rows.names
    part = None if name in names else part_of_dates(name)
    if part is None:
        return _found(rows, names, name, kind)
    column, unit = _found(rows, names, part[0], "date"), part[1]
    different = list(dict.fromkeys(column.values))
    dates = read_dates(different)
    keys: dict[str | None, str | None] = {}
    for value, period in zip(different, dates.periods, strict=True):
        is_empty = value is not None and not value.strip()
        # Empty values share a key; the key of a value that is not a date is undecided.
        keys[value] = date_part(period, unit) if period else "" if is_empty else None
    values = [keys[value] for value in column.values]
    n_unread = values.count(None) - column.values.count(None)
    notes = [*column.notes, *([dates.note] if dates.note else [])]
    if n_unread:
        notes.append(f"values of {column.name} without a {unit}: {n_unread:,} of {len(values):,}")
    return Column(f"{column.name} by {unit}", values, tuple(notes))


class SeveralFieldsError(UnclearNumberError):
    """Several columns of a table have the name."""


_FIRST = " (1)"  # names the first of several columns of a name; the others are numbered from 2


def _found(rows: Rows, names: tuple[str, ...], name: str, kind: Kind | None) -> Column:
    first = name.removesuffix(_FIRST)
    if name not in names and first in names and _namesakes(rows, names, first):
        return _of_field(rows, first)
    if name in names:
        if others := _namesakes(rows, names, name):
            every = [f"{name}{_FIRST}", *others]
            raise SeveralFieldsError(
                f"the table has {len(every)} columns '{name}'; their names here are {listed(every, MAX_SHOWN)}"
            )
        return _of_field(rows, name)
    if name == rows.column:
        return Column(name, [row.value for row in rows.every])
    if not rows.every and name != TEXT_COLUMN:
        return Column(name, [])
    known = list(dict.fromkeys((*names, TEXT_COLUMN)))
    for spelled in (str, str.casefold, bare_name, stem):
        close = [each for each in known if spelled(each) == spelled(name)]
        if len(close) == 1:
            return _of_field(rows, close[0])
        if close:
            raise ValueError(f"'{name}' may mean any of the fields {listed(close, MAX_SHOWN)}")
    why, fitting = "", []
    if words := stem(name):
        why = "with this ending"
        fitting = [each for each in names if f" {stem(each)}".endswith(f" {words}")]
        if len(fitting) > 1:
            raise ValueError(f"'{name}' may mean any of the fields {listed(fitting, MAX_SHOWN)}")
    if kind and not fitting and name != "count":  # a size, but the rows are not groups
        why = f"of {kind}s"
        fitting = [
            each for each in names if are_mostly(kind, [row.fields.get(each, "") for row in rows])
        ]
    if len(fitting) == 1:
        note = f"'{name}' is not a field: using {fitting[0]}, the only field {why}"
        return replace(_of_field(rows, fitting[0]), notes=(note,))
    raise ValueError(f"there is no field '{name}'; the rows have: {listed(known, MAX_SHOWN)}")


def _namesakes(rows: Rows, names: tuple[str, ...], name: str) -> list[str]:
    """The further columns of this name with other values; none for joined rows, where `name (2)` is the second table's."""
    if f"{name} (2)" not in names or any(row.members for row in rows.every):
        return []
    numbered = (f"{name} ({i})" for i in range(2, len(names) + 1))
    return [
        each
        for each in takewhile(names.__contains__, numbered)
        if any(row.fields.get(each) != row.fields.get(name) for row in rows.every)
    ]


def _of_field(rows: Rows, name: str) -> Column:
    """A field, or the text of the rows if they have no field of that name."""
    if name == TEXT_COLUMN and name not in rows.names:
        return Column(name, [row.text or row.value for row in rows.every])
    return Column(name, [row.fields.get(name, "") for row in rows.every])


def bare_name(name: str) -> str:
    """A name in lower case without blanks and marks."""
    return re.sub(r"[\W_]+", "", name.casefold())


def stem(name: str) -> str:
    """A name in lower case, without plural endings and a last word such as `id` or `number`."""
    words = [word for word in re.split(r"[\W_]+", name.casefold()) if word]
    if len(words) > 1 and words[-1] in ("id", "ids", "name", "names", "number", "numbers"):
        words.pop()
    return " ".join(map(singular, words))


def wanted_by(x: Value, *, is_list: bool) -> Wanted:
    """The texts of an argument with which values are compared: the certain and the possible ones."""
    if isinstance(x, Rows):
        possible = tuple(row.value for row in x.doubtful if row.value is not None)
        return Wanted(tuple(x.values), possible, any(row.value is None for row in x.every))
    if isinstance(x, Scalar):
        if x.rows.undecided:
            return Wanted((), (as_text(x.value),), may_be_any=True)
        x = x.value
    if isinstance(x, list):
        return Wanted(tuple(x))
    if not is_list:
        return Wanted((as_text(x).strip(),))
    items = coerce(x, ValueType.LIST)
    return Wanted(tuple(items) if isinstance(items, list) else ())


def judge(
    rows: Rows, name: str, operator: str, x: Value
) -> tuple[list[Verdict], tuple[str, ...], Stated | None]:
    """Compare a column with a value: a verdict per row (None if undecided), notes, and counts of rows."""
    wanted = wanted_by(x, is_list=operator in ("in", "not in"))
    kind: Kind | None = None
    if operator in ORDERED:
        if len(wanted.sure) + len(wanted.possible) != 1:
            raise ValueError(f"'{operator}' compares with one value, not with several")
        (text,) = (*wanted.sure, *wanted.possible)
        kind = "date" if read_period(text)[0] else "number"
    column = read_column(rows, name, kind)
    counts = Counter(column.values)
    different = [value for value in counts if value is not None]
    cells = [value for value in column.values if value is not None]
    meets, notes = comparison(operator, wanted, cells, column.name)
    verdicts: dict[str | None, Verdict] = {None: None, **{each: meets(each) for each in different}}
    if kind:
        n_open = sum(counts[value] for value in different if verdicts[value] is None)
        n_empty = sum(counts[value] for value in different if is_blank(value))
        notes += [f"values of {column.name} that cannot be compared: {n_open:,}"] if n_open else []
        notes += [f"rows without {column.name}: {n_empty:,}"] if n_empty else []
    sure = [(value, verdicts[value]) for value in column.values[: len(rows)] if value is not None]
    is_plain = rows.is_answered and column.name == rows.column
    without = [is_met for value, is_met in sure
               if (is_blank(value) if kind else not value.strip() or (not is_plain and is_no_key(value)))]  # fmt: skip
    if operator in ("is not", "not in") and (n_kept := without.count(True)):
        notes.append(f"rows without a value of {column.name} among them: {n_kept:,}")
    stated: Stated | None = None
    # A model's reply says nothing about rows that it did not select, so they cannot be counted.
    is_of_all = rows.stated is None or bool(rows.stated.field) or column.name == rows.column
    if kind or (operator in ("is", "in") and is_of_all and True not in without):
        n_met = sum(is_met is True for _, is_met in sure)
        stated = Stated(n_met, len(sure) - len(without), len(without), name)
        if n_met == len(rows) and rows.stated and rows.stated[::3] == stated[::3]:
            stated = rows.stated  # these rows were selected by the same condition
    return (
        [verdicts[value] for value in column.values],
        tuple(filter(None, (*column.notes, *notes))),
        stated,
    )
