"""The JSON objects in a model's reply, with words or fences around them."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from pearl.errors.patterns import lazy_pattern

OBJECT = lazy_pattern(r'\{(?=\s*["}])')  # The beginning of an object: `{"name"`, `{}`
_TOKEN = lazy_pattern(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.S)
"""A JSON string (which may be cut off), or a bracket, brace or comma."""


def json_objects(text: str) -> list[dict[str, Any]]:
    """All outermost objects in a text, in order; ValueError if one is broken or repeats a key."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
    objects: list[dict[str, Any]] = []
    end = 0
    while start := OBJECT.search(text, end):
        value, end = decoder.raw_decode(text, start.start())
        objects.append(value)
    return objects


def whole_part(text: str) -> str:
    """The complete members of an object that is cut off, and the complete entries of a list at its end; "" if there are none."""
    open_marks: list[str] = []
    whole = ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in ("{", "["):
            open_marks.append("}" if mark == "{" else "]")
            continue
        if mark in ("}", "]"):
            open_marks.pop()
        elif mark != ",":
            continue
        if open_marks in (["}"], ["}", "]"]):
            end = token.end() - (mark == ",")
            whole = text[:end] + "".join(reversed(open_marks))
        elif not open_marks:
            return text[: token.end()]
    return whole


def unique_json(text: str) -> Any:
    """The value of a JSON text; ValueError if it is broken or an object repeats a key."""
    return json.loads(text, object_pairs_hook=_without_repeated_keys)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{key[:60]}' occurs twice in one object")
    return fields
