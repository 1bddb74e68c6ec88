"""Conditions on the fields of passages → the passages that a search may find.

    year=2005        the same text, number or date; a year is the dates in it
    year!=2005       another value, or no such field
    year>=2005       and <=, >, <: numbers and dates
    year=2005..2009  a range, both ends included; one of them may be left out
    title~wing       contains the text

All conditions must hold; several conditions with `=` on one field are alternatives. Values are
compared as by WHERE (`pearl.documents.comparisons`): a whole column at once. A note reports values that
cannot be compared, whose passages are left out. `document` is the name of a passage's document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pearl.documents.comparisons import Verdict, Wanted, all_of, any_of, comparison
from pearl.documents.dates import read_period
from pearl.documents.numbers import find_quantity
from pearl.errors import UsageError, did_you_mean
from pearl.errors.patterns import lazy_pattern
from pearl.errors.privacy import is_private
from pearl.retrieval.index import DOCUMENT, Index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MAX_SHOWN = 12  # Maximum number of field names in a message

_CONDITION = lazy_pattern(
    r"\s*(?P<field>[^=!<>~]*[^=!<>~\s])\s*(?P<sign>!=|>=|<=|=|>|<|~)(?P<value>.*)", re.S
)

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
    if sign == "=" and ".." in value:
        ends = map(str.strip, value.split("..", 1))
        said = tuple(
            (test, end) for test, end in zip(("at least", "at most"), ends, strict=True) if end
        )
        if said and all(find_quantity(end) or read_period(end)[0] for _, end in said):
            return Filter(field, said, is_alternative=True)
    return Filter(field, ((_OPERATORS[sign], value),), is_alternative=sign == "=")


def select(index: Index, filters: Iterable[Filter]) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """The mask of the passages that meet all conditions, shape (passages,), and notes on those left out."""
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
    """The field with a name: exact, else in another case."""
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
    help = f"did you mean '{close}'? " if close and not is_private() else ""
    if not is_private():  # names of fields are text of the documents
        help += f"fields: {', '.join(shown)}"
    raise UsageError(f"no passage has a field '{name}'", help=help or None)


def _verdicts(
    name: str, conditions: Sequence[Filter], values: Sequence[str], notes: list[str]
) -> dict[str, Verdict]:
    """Whether each value meets one of the alternatives, and all other conditions."""

    def test(operator: str, text: str) -> Callable[[str], Verdict]:
        try:
            meets, remarks = comparison(operator, Wanted((text,)), values, name)
        except ValueError as error:
            raise UsageError(
                f"'{name}' cannot be compared that way: {error}",
                help=f"for texts: {name}=... or {name}~...",
            ) from None
        notes.extend(filter(None, remarks))
        return meets

    alternatives, others = (
        [[test(*each) for each in one.tests] for one in conditions if one.is_alternative == kind]
        for kind in (True, False)
    )
    verdicts: dict[str, Verdict] = {}
    for value in values:
        met = [all_of(meets(value) for meets in tests) for tests in others]
        if alternatives:
            met.append(any_of(all_of(meets(value) for meets in tests) for tests in alternatives))
        verdicts[value] = all_of(met)
    return verdicts
