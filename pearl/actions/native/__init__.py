"""Actions computed in Python. Every other module of this folder is one, named by its file name.

A module has `ACTION`, an `Action` with `is_native=True` and typed parameters, and
`run(*values) -> Value`, where each value already has the Python form of its parameter's type:

    Text → str    Number → int or float    Bool → bool    List → list[str]

`run` raises `ValueError` (with the reason) for values it cannot work with, `EmptyListError` where it
finds nothing because there is nothing to take it from. A library's action is
native when its name and its shape are those of a module here; its parameters may be named freely.

Entries of lists are the same if they differ in case and blanks only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any, Protocol

from pearl import plugins
from pearl.actions.units import unit_of
from pearl.dsl.signatures import NOTHING, Action, ValueType

__all__ = [
    "CONTRACT",
    "EmptyListError",
    "NativeAction",
    "Value",
    "bind",
    "check_alike",
    "coerce",
    "compute",
    "key_of",
    "known",
    "numbers",
    "show",
    "without_repeats",
]

Value = str | int | float | bool | list[str]


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
    """What was to be taken from a list is not there, for the list has no entries."""


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
"""What makes another number of the digits before it."""
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
"""Longer ones are no quantities, and Python refuses to read really long ones."""


def known() -> dict[str, Action]:
    """Every native action by name."""
    modules = map(_module, plugins.names(__name__))
    return {module.ACTION.name: module.ACTION for module in modules}


@cache
def _module(name: str) -> Any:
    """The module of that file name, looked for once: looking takes milliseconds."""
    return plugins.load(__name__, name)


def bind(action: Action) -> Action:
    """The native action of the same name and shape under this definition, or the action as it is."""
    name = action.name.lower()
    if action.name != name.upper() or not plugins.is_there(__name__, name):
        return action
    native: Action = _module(name).ACTION
    same_shape = (
        len(native.parameters) == len(action.parameters)
        and native.is_variadic == action.is_variadic
        and native.reads_context == action.reads_context
        and action.returns in (ValueType.TEXT, native.returns)
    )
    if not same_shape:
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


def compute(action: Action, values: list[Value]) -> Value:
    """Run a native action.

    Raises:
        ValueError: A value is not, and cannot be read as, what the action takes.
    """
    module = _module(action.name.lower())
    typed = [coerce(value, action.parameter(i).type) for i, value in enumerate(values)]
    result: Value = module.run(*typed)
    return result


def coerce(value: Value, wanted: ValueType) -> Value:
    r"""A value in the form that a type asks for; texts of models are read.

    A text is read as a list by its lines, marks of bullets, numbering and quotation (`> `) taken
    off; without line breaks, by semicolons; `Nothing found.` is no entry. As a number, by the only
    number in it.

    Raises:
        ValueError: It cannot be read so.

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
    text = show(value).strip()
    rows = text.split("\n") if "\n" in text else text.split(";")
    return [item for row in rows if (item := _BULLET.sub("", row).strip()) and item != NOTHING]


def key_of(item: str) -> str:
    """What two entries have in common that count as the same.

    Example:
        >>> key_of("New  York") == key_of("new york")
        True
    """
    return " ".join(item.split()).casefold()


def without_repeats(items: Iterable[str]) -> list[str]:
    """Every entry where it stands first.

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
        ValueError: An entry holds none, or more than one, or they are in different units.

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
    """Make sure that numbers are written out and in one unit, or in none.

    Args:
        places: Of each number the entry, and where in it the number begins and ends.

    Raises:
        ValueError: They are not, so that nobody can add them up or tell the larger one.
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
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    found = list(_NUMBER.finditer(show(value)))
    if len(found) != 1:
        raise ValueError(f"{'more than one' if found else 'no'} number in {_short(value)}")
    match, whole = found[0], found[0].string
    if _SCALE.match(whole, match.end()):
        raise ValueError(f"a number that is not written out in {_short(value)}")
    # ½ and 万 are numeric, but no digits.
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


def _truth(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    word = show(value).strip().lower().rstrip(".!")
    if word in ("yes", "true", "no", "false"):
        return word in ("yes", "true")
    raise ValueError(f"neither yes nor no: {_short(value)}")


def _short(value: Value) -> str:
    text = show(value)
    return repr(text if len(text) <= 60 else f"{text[:59]}…")


def show(value: Value) -> str:
    r"""A value as text: what models read and answers say.

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
    return str(value)
