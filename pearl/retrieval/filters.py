"""Conditions on the fields of passages → which passages may be found.

    year=2005        the same text, number or date; a year is the dates in it
    year!=2005       not so, or without the field
    year>=2005       and <=, >, <: numbers and dates
    year=2005..2009  a range, both ends included; one of them may be left out
    title~wing       has the text in it

Several conditions hold together, but those of one field with `=` are alternatives. Values are
compared as by WHERE (`pearl.documents.comparisons`): a whole column at once, and what cannot be
compared is left out and said. `document` is the name of a passage's document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pearl.documents.comparisons import Verdict, Wanted, all_of, any_of, comparison
from pearl.documents.dates import read_period
from pearl.documents.numbers import find_quantity
from pearl.errors import UsageError, did_you_mean
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DOCUMENT = "document"
"""The field that every passage has: the name of its document."""

MAX_SHOWN = 12
"""Names of fields in a message at most."""

_CONDITION = lazy_pattern(
    r"\s*(?P<field>[^=!<>~]*[^=!<>~\s])\s*(?P<sign>!=|>=|<=|=|>|<|~)(?P<value>.*)", re.S
)
_RANGE = lazy_pattern(r"\s*(?P<first>.*?)\s*\.\.\s*(?P<last>.*?)\s*", re.S)

_OPERATORS = {
    "=": "is", "!=": "is not", ">=": "at least", "<=": "at most", ">": "after", "<": "before",
    "~": "contains",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition."""

    field: str
    tests: tuple[tuple[str, str], ...]
    is_alternative: bool = False


def parse_filter(text: str) -> Filter:
    """Read a condition."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(
            f"'{text}' is not a condition",
            help="field=value, field!=value, field>=2005, field=2005..2009 or field~text",
        )
    field, sign, value = found["field"], found["sign"], found["value"].strip()
    if not value and sign not in ("=", "!="):
        raise UsageError(f"missing value in '{text}'", help=f"{field}{sign}2005")
    if sign == "=" and (ends := _RANGE.fullmatch(value)):
        tests = (("at least", ends["first"]), ("at most", ends["last"]))
        said = tuple((operator, end) for operator, end in tests if end)
        if said and all(_is_ordered(end) for _, end in said):
            return Filter(field, said, is_alternative=True)
    return Filter(field, ((_OPERATORS[sign], value),), is_alternative=sign == "=")


def _is_ordered(text: str) -> bool:
    return find_quantity(text) is not None or read_period(text)[0] is not None


class Filterable(Protocol):
    """What filters read of an index."""

    @property
    def field_names(self) -> Sequence[str]:
        """The names of all fields of passages."""
        ...

    def columns(self, names: tuple[str, ...]) -> tuple[list[tuple[str, ...]], NDArray[np.int64]]:
        """The different values of fields together, and for each passage the place of its own."""
        ...


def select(
    index: Filterable, filters: Iterable[Filter]
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which passages meet all conditions, shape (passages,), and what was left out unread."""
    import numpy as np

    by_field: dict[str, list[Filter]] = {}
    for each in filters:
        by_field.setdefault(_named(each.field, index.field_names), []).append(each)
    names = tuple(by_field)
    values, places = index.columns(names)
    notes: list[str] = []
    verdicts = [
        _verdicts(name, by_field[name], list(dict.fromkeys(value[i] for value in values)), notes)
        for i, name in enumerate(names)
    ]
    found = [all_of([verdicts[i][text] for i, text in enumerate(value)]) for value in values]
    mask = np.array([verdict is True for verdict in found], np.bool_)[places]
    is_open = np.array([verdict is None for verdict in found], np.bool_)[places]
    if n_open := int(is_open.sum()):
        told = " or ".join(f"'{name}'" for name in names)
        left_out = f"{n_open:,} passage{'s' * (n_open > 1)} left out"
        notes.append(f"{left_out}: {told} cannot be compared there")
    return mask, tuple(dict.fromkeys(notes))


def _named(name: str, known: Sequence[str]) -> str:
    """The field that a name means: exact, else in other case."""
    names = list(dict.fromkeys((*known, DOCUMENT)))
    alike = [name] if name in names else [n for n in names if n.casefold() == name.casefold()]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise UsageError(
            f"'{name}' matches several fields: {', '.join(alike)}", help="spell the field exactly"
        )
    shown = names[:MAX_SHOWN] + ["..."] * (len(names) > MAX_SHOWN)
    close = did_you_mean(name, names)
    help = f"did you mean '{close}'? " if close else ""
    raise UsageError(f"no passage has a field '{name}'", help=f"{help}fields: {', '.join(shown)}")


def _verdicts(
    name: str, conditions: Sequence[Filter], values: Sequence[str], notes: list[str]
) -> dict[str, Verdict]:
    """Of each value: whether it meets one of the alternatives, and all other conditions."""

    def meets(each: Filter) -> dict[str, Verdict]:
        tests = [_test(name, operator, text, values, notes) for operator, text in each.tests]
        return {value: all_of(test(value) for test in tests) for value in values}

    alternatives = [meets(each) for each in conditions if each.is_alternative]
    others = [meets(each) for each in conditions if not each.is_alternative]
    return {
        value: all_of(
            [
                *([any_of(one[value] for one in alternatives)] if alternatives else []),
                *(one[value] for one in others),
            ]
        )
        for value in values
    }


def _test(
    name: str, operator: str, text: str, values: Sequence[str], notes: list[str]
) -> Callable[[str], Verdict]:
    try:
        meets, said = comparison(operator, Wanted((text,)), values, name)
    except ValueError as error:
        raise UsageError(
            f"'{name}' cannot be compared that way: {error}",
            help=f"for texts: {name}=... or {name}~...",
        ) from None
    notes += [note for note in said if note]
    return meets
