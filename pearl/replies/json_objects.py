"""The JSON objects in a model's reply, with words or fences around them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from pearl.errors.patterns import lazy_pattern

_START = lazy_pattern(r'\{(?=\s*["}])')


def json_objects(text: str) -> list[dict[str, Any]]:
    """All outer objects of a text, in order; ValueError for a broken one or one with a repeated key."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
    objects: list[dict[str, Any]] = []
    end = 0
    while start := _START.search(text, end):
        value, end = decoder.raw_decode(text, start.start())
        objects.append(value)
    return objects


def unique_json(text: str) -> Any:
    """The value of a JSON text; ValueError for a broken one or an object with a repeated key."""
    return json.loads(text, object_pairs_hook=_without_repeated_keys)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{key[:60]}' occurs twice in one object")
    return fields
