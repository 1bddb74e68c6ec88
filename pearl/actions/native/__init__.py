"""Actions computed in Python. Every other module of this folder is one, named by its file name.

A module has `ACTION`, an `Action` with `is_native=True` and typed parameters, and
`run(*values) -> Value`, where each value already has the Python form of its parameter's type:

    Text → str    Number → int or float    Bool → bool    List → list[str]

or of what the parameter `reads`: `Rows`, a number, or the value as it is. `run` raises `ValueError` with the reason for
invalid values, and `EmptyListError` if the list that it selects from is empty. A library's action
is native if its name and signature match a module here; its parameters may be named freely, but for
those of an operator on rows.

Of rows, a list is their values: entries that come back are the rows they belong to. Rows that are
undecided make no result wrong: what would be different with them is undecided, too.

List entries that differ only in case and blanks are equal.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, reduce
from itertools import islice, product
from operator import and_, or_
from typing import Any, Protocol

from pearl import plugins
from pearl.actions.estimates import sample_note
from pearl.actions.numbers import read_number
from pearl.documents.rows import Row, Rows, without_duplicates
from pearl.dsl.signatures import NOTHING, Action, Parameter, ValueType

__all__ = [
    "CONTRACT",
    "EmptyListError",
    "NativeAction",
    "Scalar",
    "Value",
    "as_rows",
    "as_text",
    "behind",
    "bind",
    "bounded",
    "coerce",
    "compute",
    "key_of",
    "known",
    "whole_number",
    "without_repeats",
]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, a number or a truth value that is computed from rows.

    Attributes:
        value: Computed from the rows that are decided.
        rows: The rows behind it; those that are undecided might change it.
        is_marked: Whether the value is a text that shows what is undecided itself.
        low: Of a number, the least that it is whatever the undecided rows are; None: not known.
        high: The most that it is.
    """

    value: str | int | float | bool
    rows: Rows
    is_marked: bool = False
    low: int | float | None = None
    high: int | float | None = None


Value = str | int | float | bool | list[str] | Rows | Scalar


class NativeAction(Protocol):
    """What a module of this folder looks like to its users."""

    ACTION: Action

    def run(self, *values: Any) -> Value:
        """The value of the action.

        Raises:
            ValueError: These values are nothing that it works with.
        """
        ...


CONTRACT = NativeAction


class EmptyListError(ValueError):
    """The list to select from is empty."""


_BULLET = re.compile(
    r"\A\s*+(?:>\s*+)*+(?:[-*•–](?:\s++|\Z)|(?:\(?\d{1,4}[.)]|\(?[a-zA-Z]\))\s++)?"
)


def known() -> dict[str, Action]:
    """Every native action by name."""
    modules = map(_module, plugins.names(__name__))
    return {module.ACTION.name: module.ACTION for module in modules}


@cache
def _module(name: str) -> Any:
    """The module of a native action; cached, because the lookup takes milliseconds."""
    return plugins.load(__name__, name)


def bind(action: Action) -> Action:
    """The native action of the same name and signature, else the action itself."""
    name = action.name.lower()
    if action.name != name.upper() or not plugins.exists(__name__, name):
        return action
    native: Action = _module(name).ACTION
    same_shape = (
        len(native.parameters) == len(action.parameters)
        and native.is_variadic == action.is_variadic
        and native.reads_context == action.reads_context
        and action.returns in (ValueType.TEXT, native.returns)
    )
    if not same_shape or (is_operator(native) and _named(native) != _named(action)):
        return action
    return Action(
        native.name,
        native.parameters,
        action.definition or native.definition,
        native.is_variadic,
        native.returns,
        is_native=True,
        span=action.span,
    )


def is_operator(action: Action) -> bool:
    """Whether it takes rows with their fields and spans."""
    return any(parameter.reads for parameter in action.parameters)


def _named(action: Action) -> list[str]:
    return [parameter.name for parameter in action.parameters]


def compute(action: Action, values: Sequence[Value]) -> Value:
    """Run a native action.

    Raises:
        ValueError: A value is not of the type that the action takes, and cannot be converted.
    """
    module = _module(action.name.lower())
    parameters = [action.parameter(i) for i in range(len(values))]
    arguments = list(map(_argument, values, parameters))
    if any(parameter.reads == "rows" for parameter in parameters):
        others = [v for v, p in zip(values, parameters, strict=True) if p.reads != "rows"]
        return _doubted(module.run(*arguments), others)
    given = behind(values)
    is_list_action = ValueType.LIST in (p.type for p in parameters)
    if is_list_action and any(isinstance(value, Rows) for value in values):
        result = _compute_entries(module, parameters, values)
    else:
        result = module.run(*arguments)
    if given is None or isinstance(result, Rows | Scalar | list):
        return result
    if is_list_action and isinstance(values[0], Rows) and hasattr(module, "bounds"):
        return bounded(result, given, *module.bounds(given))
    is_joined = all(p.type is ValueType.TEXT and not p.reads for p in parameters)
    return Scalar(result, given, is_marked=is_joined)


def _argument(value: Value, parameter: Parameter) -> Any:
    match parameter.reads:
        case "rows":
            return as_rows(value)
        case "number":
            return _number(value)
        case "value":
            return value
        case _:
            return coerce(value, parameter.type)


def _doubted(result: Any, others: Iterable[Value]) -> Any:
    """The result of an operator on rows whose other arguments are undecided: so is all of it."""
    scalars = [value.rows for value in others if isinstance(value, Scalar) and value.rows.undecided]
    if not scalars:
        return result
    if isinstance(result, Rows):
        note = "undecided, because what it is compared with is"
        return result.where((), result.rows).noting(note)
    unsure = without_duplicates(row for rows in scalars for row in rows.undecided)
    return replace(result, rows=result.rows.where(result.rows, unsure), low=None, high=None)


def as_rows(value: Value) -> Rows:
    """A value as rows; the entries of a list or a text have no place in the document."""
    match value:
        case Rows():
            return value
        case Scalar(rows=rows):
            return Rows(tuple(Row(item, text=item) for item in _items(value)), notes=rows.notes)
        case _:
            return Rows(tuple(Row(item, text=item) for item in _items(value)))


def behind(values: Iterable[object]) -> Rows | None:
    """The rows from which values are computed, each once; None if they are from no rows."""
    given = [v.rows if isinstance(v, Scalar) else v for v in values if isinstance(v, Rows | Scalar)]
    if not given:
        return None
    first, *others = given
    if not others:
        return first
    return replace(
        first,
        rows=without_duplicates(row for each in given for row in each),
        doubtful=without_duplicates(row for each in given for row in each.undecided),
        notes=tuple(dict.fromkeys(note for each in given for note in each.notes)),
    )


def bounded(value: int, rows: Rows, low: int, high: int) -> Scalar:
    """A number of rows, with an interval for all if the rows are a part of a sample."""
    if rows.sample and value <= rows.sample[0] and not any(row.members for row in rows):
        rows = rows.noting(sample_note(rows.sample, low, min(high, rows.sample[0])))
    return Scalar(value, rows, low=low, high=high)


_MAX_CASES = 16
"""Combinations of certain and possible entries that are computed."""


def _compute_entries(module: Any, parameters: Sequence[Parameter], values: Sequence[Value]) -> Any:
    """Run an action on lists over the values of rows; entries that come back are rows again.

    Entries that it only returns with, or only without, the undecided rows are undecided.
    """
    collections = [value for value in values if isinstance(value, Rows)]
    certain = module.run(*map(_argument, values, parameters))
    if not isinstance(certain, list):
        return certain
    every = [row for each in collections for row in (*each, *each.doubtful)]
    known = [row for row in every if row.value is not None]
    unread = without_duplicates(row for row in every if row.value is None)
    # An unread value may be any of those that are there; another one changes no result.
    anything = [row.value for row in known]
    cases = [
        (value.values, [*value.values, *_maybe(value, anything)])
        if isinstance(value, Rows) and value.undecided
        else (value,)
        for value in values
    ]
    results = [certain]
    if 1 < math.prod(map(len, cases)) <= _MAX_CASES:
        results = [module.run(*map(_argument, case, parameters)) for case in product(*cases)]
    elif any(len(case) > 1 for case in cases):
        results = [[], anything]
    counts = [Counter(result) for result in results]
    least, most = reduce(and_, counts), reduce(or_, counts)
    places: dict[str | None, deque[Row]] = {}
    for row in known:
        places.setdefault(row.value, deque()).append(row)
    found: list[Row] = []
    unsure: list[Row] = []
    for item in certain:
        is_sure, least[item] = least[item] > 0, least[item] - 1
        most[item] -= 1
        rows = places.get(item)
        (found if is_sure else unsure).append(rows.popleft() if rows else Row(item, text=item))
    for item, n in most.items():
        unsure += islice(places.get(item, ()), max(0, n))
    return replace(
        collections[0],
        rows=tuple(found),
        doubtful=(*unsure, *unread),
        notes=tuple(dict.fromkeys(note for each in collections for note in each.notes)),
        sample=None,
    )


def _maybe(rows: Rows, anything: Sequence[str | None]) -> list[str | None]:
    """The values that undecided rows may bring."""
    if any(row.value is None for row in (*rows.rows, *rows.doubtful)):
        return list(anything)
    return [row.value for row in rows.doubtful]


def coerce(value: Value, wanted: ValueType) -> Value:
    r"""Convert a value to a type, parsing text.

    A list is parsed from the lines of a text without bullets, numbering and quote marks (`> `), or
    from a single line with semicolons; `Nothing found.` is an empty list. A number is the only
    number in the text.

    Raises:
        ValueError: It cannot be converted.

    Example:
        >>> coerce("1) salt\n2) iron", ValueType.LIST)
        ['salt', 'iron']
        >>> coerce("1,250 mg a day", ValueType.NUMBER)
        1250
    """
    match wanted:
        case ValueType.LIST:
            return _items(value)
        case ValueType.NUMBER:
            return _number(value)
        case ValueType.BOOL:
            return _truth(value)
        case _:
            return as_text(value)


def _items(value: Value) -> list[str]:
    if isinstance(value, list):
        return value
    if isinstance(value, Rows):
        return value.values
    if isinstance(value, Scalar):
        value = value.value
    text = as_text(value).strip()
    rows = text.split("\n") if "\n" in text else text.split(";")
    return [item for row in rows if (item := _BULLET.sub("", row).strip()) and item != NOTHING]


def key_of(item: str) -> str:
    """The comparison key of an entry: equal entries have equal keys.

    Example:
        >>> key_of("New  York") == key_of("new york")
        True
    """
    return " ".join(item.split()).casefold()


def without_repeats(items: Iterable[str]) -> list[str]:
    """Remove duplicates, keeping the first occurrence.

    Example:
        >>> without_repeats(["Oslo", "Bergen", "oslo"])
        ['Oslo', 'Bergen']
    """
    first: dict[str, str] = {}
    for item in items:
        first.setdefault(key_of(item), item)
    return list(first.values())


def _number(value: Value) -> int | float:
    if isinstance(value, Scalar):
        value = value.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return read_number(as_text(value))


def whole_number(value: Value) -> int:
    """A number that counts something.

    Raises:
        ValueError: It is not a whole number from 1.
    """
    number = _number(value)
    if number != int(number) or number < 1:
        raise ValueError(f"not a whole number from 1: {_short(value)}")
    return int(number)


def _truth(value: Value) -> bool:
    if isinstance(value, Scalar):
        value = value.value
    if isinstance(value, bool):
        return value
    word = as_text(value).strip().lower().rstrip(".!")
    if word in ("yes", "true", "no", "false"):
        return word in ("yes", "true")
    raise ValueError(f"neither yes nor no: {_short(value)}")


def _short(value: Value) -> str:
    text = as_text(value)
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def as_text(value: Value, max_rows: int | None = None) -> str:
    r"""A value as text, for prompts and answers.

    Args:
        value: The value.
        max_rows: Rows shown at most.

    Example:
        >>> as_text(["a", "b"]), as_text([]), as_text(0.1 + 0.2), as_text(12345678901.25)
        ('- a\n- b', 'Nothing found.', '0.3', '12345678901.25')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format(Decimal(f"{value:.15g}"), "f")  # 0.3 for 0.1 + 0.2, and no exponent
    if isinstance(value, list):
        return "\n".join(f"- {item}" for item in value) or NOTHING
    if isinstance(value, Rows):
        bullet = "" if value.columns else "- "
        lines = [f"{bullet}{line}" for line in value.lines(max_rows)] if len(value) else [NOTHING]
        return "\n".join([*lines, *_marks(value)])
    if isinstance(value, Scalar):
        return " ".join([as_text(value.value), *([] if value.is_marked else _marks(value.rows))])
    return str(value)


def _marks(rows: Rows) -> list[str]:
    """What has to be said of a result because of the rows it is computed from."""
    n = len(rows.undecided)
    return [*([f"({n:,} undecided)"] if n else []), *(f"({note})" for note in rows.notes)]
