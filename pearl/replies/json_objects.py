"""The JSON objects in a model's reply, with words or fences around them."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from pearl.errors.patterns import lazy_pattern

_START = lazy_pattern(r'\{(?=\s*["}])')
_TOKEN = lazy_pattern(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.S)
"""A mark, or a text, which may break off."""


def json_objects(text: str) -> list[dict[str, Any]]:
    """All outer objects of a text, in order; ValueError for a broken one or one with a repeated key."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
    objects: list[dict[str, Any]] = []
    end = 0
    while start := _START.search(text, end):
        value, end = decoder.raw_decode(text, start.start())
        objects.append(value)
    return objects


def whole_part(text: str) -> str:
    """Of an object that breaks off, the members that are whole, and of a list that is not, its whole entries; "" if there are none."""
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
    """The value of a JSON text; ValueError for a broken one or an object with a repeated key."""
    return json.loads(text, object_pairs_hook=_without_repeated_keys)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{key[:60]}' occurs twice in one object")
    return fields
