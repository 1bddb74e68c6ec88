"""Validates values against JSON Schemas of the few keywords that every decoder supports.

`type enum anyOf $ref $defs properties required additionalProperties items minItems maxItems pattern
maxLength minimum maximum`, with every object closed and all of its properties required.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "null": (type(None),),
}

_SHOWN = 40
"""Maximum characters of a value in an error message."""


def closed_object(properties: Schema) -> dict[str, Any]:
    """The schema of an object that has all of these properties and no others.

    Example:
        >>> require({"b": 1}, closed_object({"a": {"type": "number"}}))
        Traceback (most recent call last):
        ...
        ValueError: the value: there is no 'a'
    """
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def require(value: Any, schema: Schema) -> None:
    """Check that a value conforms to a schema.

    Example:
        >>> require({"n": 3}, {"type": "object", "properties": {"n": {"enum": [1, 2]}}})
        Traceback (most recent call last):
        ...
        ValueError: n: 3 is none of 1, 2
    """
    for flaw in _flaws(value, schema, schema.get("$defs", {}), ()):
        raise ValueError(f"{'.'.join(flaw.path) or 'the value'}: {flaw.wrong}")


class _Flaw(NamedTuple):
    """A mismatch and its path."""

    path: tuple[str, ...]
    wrong: str
    is_other: bool = False


def _flaws(value: Any, schema: Schema, defs: Schema, path: tuple[str, ...]) -> Iterator[_Flaw]:
    if "$ref" in schema:
        yield from _flaws(value, defs[schema["$ref"].removeprefix("#/$defs/")], defs, path)
    elif "anyOf" in schema:
        # Report the alternative that matched furthest.
        found = [next(_flaws(value, one, defs, path), None) for one in schema["anyOf"]]
        if None not in found:
            flaws = [flaw for flaw in found if flaw]
            yield max(flaws, key=lambda flaw: (len(flaw.path), not flaw.is_other))
    elif "enum" in schema:
        if not any(type(value) is type(one) and value == one for one in schema["enum"]):
            known = ", ".join(map(str, schema["enum"]))
            yield _Flaw(path, f"{_shown(value)} is none of {known}", is_other=True)
    elif isinstance(value, bool) or not isinstance(value, _TYPES[schema["type"]]):
        yield _Flaw(path, f"{_shown(value)} is no {schema['type']}", is_other=True)
    elif isinstance(value, dict):
        yield from _of_object(value, schema, defs, path)
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield _Flaw(path, f"{len(value)} entries are too many or too few")
        for i, item in enumerate(value):
            yield from _flaws(item, schema["items"], defs, (*path, str(i)))
    elif isinstance(value, str):
        if len(value) > schema.get("maxLength", len(value)):
            yield _Flaw(path, f"longer than {schema['maxLength']} characters")
        if "pattern" in schema and not re.fullmatch(schema["pattern"].strip("^$"), value):
            yield _Flaw(path, f"{_shown(value)} is not of the form {schema['pattern'][:_SHOWN]}")
    elif value is not None and not schema["minimum"] <= value <= schema["maximum"]:
        yield _Flaw(path, f"{_shown(value)} is out of bounds")


def _of_object(
    value: dict[str, Any], schema: Schema, defs: Schema, path: tuple[str, ...]
) -> Iterator[_Flaw]:
    properties = schema["properties"]
    for name, one in properties.items():
        if name in value:
            yield from _flaws(value[name], one, defs, (*path, name))
        else:
            yield _Flaw(path, f"there is no '{name}'")
    for name in value:
        if name not in properties:
            yield _Flaw(
                path, f"'{name[:_SHOWN]}' is not among {', '.join(properties) or 'nothing'}"
            )


def _shown(value: Any) -> str:
    """A value for an error message; Python refuses to print integers of thousands of digits."""
    if isinstance(value, dict | list):
        return f"an {'object' if isinstance(value, dict) else 'array'}"
    if isinstance(value, int) and abs(value) >= 10**20:
        return "so large a number"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
