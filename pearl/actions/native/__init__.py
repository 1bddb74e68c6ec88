"""Actions computed in Python. Every other module of this folder is one, named by its file name.

A module has `ACTION`, an `Action` with `is_native=True` and typed parameters, and
`run(*values) -> Value`, where each value already has the Python form of its parameter's type:

    Text → str    Number → int or float    Bool → bool    List → list[str]

or of what the parameter `reads`: `Rows`, or a number. `run` raises `ValueError` with the reason for
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any, Protocol

from pearl import plugins
from pearl.actions.units import unit_of
from pearl.documents.rows import Row, Rows, without_duplicates
from pearl.dsl.signatures import NOTHING, Action, Parameter, ValueType

__all__ = [
    "CONTRACT",
    "EmptyListError",
    "NativeAction",
    "Scalar",
    "Value",
    "as_rows",
    "behind",
    "bind",
    "check_alike",
    "coerce",
    "compute",
    "key_of",
    "known",
    "numbers",
    "show",
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
    """

    value: str | int | float | bool
    rows: Rows
    is_marked: bool = False


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
_NUMBER = re.compile(
    r"(?<!\w)(?:[-+−][$€£¥]?)?(?:\d{1,3}(?:,\d{3})++(?!\d)(?:\.\d++)?|\d++(?:\.\d++)?|\.\d++)"
    r"(?:[eE][-+]?\d{1,3}\b)?"
)
_SCALE = re.compile(
    r"\s?+(?:(?:[kKM]|MM|[mb]n|cr|hundred|thousand|[bt]?rillion|billion|dozen|lakh|crore|quarter)s?\b"
    r"|(?i:hundert|tausend|mio|mrd|mill(?:ion|iarde?)\w*|milli[oó]n\w*|mil(?:iardi|ioni|hão|hões|e)?|mille|"
    r"bilhão|bilhões|tys|mln|mld|млн|млрд|тыс\w*|миллион\w*|миллиард\w*|duzend|douzaines?|docenas?)\b"
    r"|[만억천백])"
    r"|[ _^]?[²³]|_\d"
)
"""Suffixes that change the value of the digits before them."""
_IN_WORDS = re.compile(
    r"\b(?:half|zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|"
    r"eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|(?:hundred|thousand|million|billion|dozen)s?|"
    r"halb\w?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|deux|trois|quatre|cinq|huit|dix|"
    r"dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez)\b",
    re.I,
)
_MAY_BE_NEGATIVE = re.compile(
    r"(?:[–‒⁻‐‑]|[-−–]\s+[$€£¥]|\b(?:minus|negative|moins|menos|meno)\s)\Z", re.I
)
_OTHER_DIGITS = re.compile(r"(?<![^\W\d_])[²³]|[$€£¥]\s?[\d.,]+\s?m\b")
"""A power of a number, not of a unit; millions of money."""
_IN_BRACKETS = re.compile(r"\s*\(\s*[$€£¥]?\s?[\d.,]+\s?[%$€£¥]?\s*\)\s*")
_MAY_BE_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
"""1250 in most of Europe."""
_BARE = str.maketrans("−", "-", ",$€£¥")
_MAX_DIGITS = 40
"""Maximum digits: longer numbers are not quantities, and Python limits the length it parses."""


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
    return any(parameter.reads == "rows" for parameter in action.parameters)


def _named(action: Action) -> list[str]:
    return [parameter.name for parameter in action.parameters]


def compute(action: Action, values: Sequence[Value]) -> Value:
    """Run a native action.

    Raises:
        ValueError: A value is not of the type that the action takes, and cannot be converted.
    """
    module = _module(action.name.lower())
    parameters = [action.parameter(i) for i in range(len(values))]
    given = behind(values)
    is_list_action = not is_operator(action) and ValueType.LIST in (p.type for p in parameters)
    if is_list_action and any(isinstance(value, Rows) for value in values):
        result = _compute_entries(module, parameters, values)
    else:
        result = module.run(*map(_argument, values, parameters))
    if given is None or isinstance(result, Rows | Scalar | list):
        return result
    is_joined = all(p.type is ValueType.TEXT and not p.reads for p in parameters)
    return Scalar(result, given, is_marked=is_joined)


def _argument(value: Value, parameter: Parameter) -> Any:
    match parameter.reads:
        case "rows":
            return as_rows(value)
        case "number":
            return _number(value)
        case _:
            return coerce(value, parameter.type)


def as_rows(value: Value) -> Rows:
    """A value as rows; the entries of a list or a text have no place in the document."""
    match value:
        case Rows():
            return value
        case Scalar(rows=rows):
            return Rows(tuple(Row(item) for item in _items(value)), notes=rows.notes)
        case _:
            return Rows(tuple(Row(item) for item in _items(value)))


def behind(values: Iterable[Value]) -> Rows | None:
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
    rows: dict[str, Row] = {}
    for row in (row for each in collections for row in (*each, *each.doubtful)):
        if row.value is not None:
            rows.setdefault(key_of(row.value), row)
    cases = [
        (value.values, [*value.values, *(r.value for r in value.doubtful if r.value is not None)])
        if isinstance(value, Rows) and value.doubtful
        else (value,)
        for value in values
    ]
    n_cases = math.prod(map(len, cases))
    results = [certain]
    if 1 < n_cases <= _MAX_CASES:
        results = [module.run(*map(_argument, case, parameters)) for case in product(*cases)]
    elif n_cases > 1:
        results = [certain, []]
    every = [{key_of(item) for item in result} for result in results]
    always, ever = set.intersection(*every), set.union(*every)
    left = list(certain)
    found = [rows.get(key_of(item), Row(item)) for item in left if key_of(item) in always]
    unsure = [rows[key] for key in sorted(ever - always) if key in rows]
    valueless = [row for each in collections for row in each if row.value is None]
    first = collections[0]
    return replace(
        first,
        rows=tuple(found),
        doubtful=without_duplicates((*unsure, *valueless)),
        notes=tuple(dict.fromkeys(note for each in collections for note in each.notes)),
    )


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
            return show(value)


def _items(value: Value) -> list[str]:
    if isinstance(value, list):
        return value
    if isinstance(value, Rows):
        return value.values
    if isinstance(value, Scalar):
        value = value.value
    text = show(value).strip()
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


def numbers(items: Iterable[str]) -> list[int | float]:
    """The number in each entry.

    Raises:
        ValueError: An entry has no number or several, or the units differ.

    Example:
        >>> numbers(["12 mg", "about 3.5"])
        [12, 3.5]
    """
    entries = list(items)
    read = [_number(item) for item in entries]
    found = ((item, match.span()) for item in entries for match in _NUMBER.finditer(item))
    check_alike((item, *span) for item, span in found)
    return read


def check_alike(places: Iterable[tuple[str, int, int]]) -> None:
    """Check that numbers are written out and have the same unit, or none.

    Args:
        places: For each number, the entry and the number's start and end offsets.

    Raises:
        ValueError: They are not, so they cannot be added or compared.
    """
    units: dict[str, str] = {}
    for item, start, end in places:
        if _SCALE.match(item, end):
            raise ValueError(f"a number that is not written out in {_short(item)}")
        if unit := unit_of(item, start, end):
            units.setdefault(unit, item)
    if len(units) > 1:
        one, other, *_ = map(_short, units.values())
        raise ValueError(f"numbers in different units: {one} and {other}")


def _number(value: Value) -> int | float:
    if isinstance(value, Scalar):
        value = value.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    found = list(_NUMBER.finditer(show(value)))
    if len(found) != 1:
        raise ValueError(f"{'more than one' if found else 'no'} number in {_short(value)}")
    match, whole = found[0], found[0].string
    if _SCALE.match(whole, match.end()):
        raise ValueError(f"a number that is not written out in {_short(value)}")
    # ½ and 万 are numeric, but not digits.
    is_mixed = any(c.isnumeric() and not c.isdecimal() and c not in "²³" for c in whole)
    if is_mixed or _IN_WORDS.search(whole) or _OTHER_DIGITS.search(whole):
        raise ValueError(f"more than one number in {_short(value)}, one of them not in digits")
    if _MAY_BE_NEGATIVE.search(whole, 0, match.start()) or _IN_BRACKETS.fullmatch(whole):
        raise ValueError(f"a number that may be below 0 in {_short(value)}")
    text = match[0].translate(_BARE)
    if _MAY_BE_GROUPED.fullmatch(text):
        raise ValueError(f"a point that may group thousands or begin decimals in {_short(value)}")
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"the number is too long in {_short(value)}")
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number is too large in {_short(value)}")
    return number if set(text) & set(".eE") else int(text)


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
    word = show(value).strip().lower().rstrip(".!")
    if word in ("yes", "true", "no", "false"):
        return word in ("yes", "true")
    raise ValueError(f"neither yes nor no: {_short(value)}")


def _short(value: Value) -> str:
    text = show(value)
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def show(value: Value, max_rows: int | None = None) -> str:
    r"""A value as text, for prompts and answers.

    Args:
        value: The value.
        max_rows: Rows shown at most.

    Example:
        >>> show(["a", "b"]), show([]), show(0.1 + 0.2), show(12345678901.25)
        ('- a\n- b', 'Nothing found.', '0.3', '12345678901.25')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format(Decimal(f"{value:.15g}"), "f")  # 0.3 for 0.1 + 0.2, and no exponent
    if isinstance(value, list):
        return "\n".join(f"- {item}" for item in value) or NOTHING
    if isinstance(value, Rows):
        lines = [f"- {line}" for line in value.lines(max_rows)] or [NOTHING]
        return "\n".join([*lines, *_marks(value)])
    if isinstance(value, Scalar):
        return " ".join([show(value.value), *([] if value.is_marked else _marks(value.rows))])
    return str(value)


def _marks(rows: Rows) -> list[str]:
    """What has to be said of a result because of the rows it is computed from."""
    n = len(rows.undecided)
    return [*([f"({n:,} undecided)"] if n else []), *(f"({note})" for note in rows.notes)]
