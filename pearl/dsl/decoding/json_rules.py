"""Parts of a grammar that generates JSON, in the shared dialect of `constraint`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def literal_rule(text: str) -> str:
    """A text as it is."""
    return json.dumps(text, ensure_ascii=False)


def either_rule(texts: Iterable[str]) -> str:
    r"""One of several JSON strings.

    Example:
        >>> print(either_rule(["a", "b"]))
        "\"a\"" | "\"b\""
    """
    return " | ".join(literal_rule(json.dumps(text, ensure_ascii=False)) for text in texts)


def object_rule(**rules: str) -> str:
    """An object with these fields in this order, each with the rule of its value."""
    parts: list[str] = []
    for i, (name, rule) in enumerate(rules.items()):
        parts += [literal_rule(f'{"{" if i == 0 else ", "}"{name}": '), rule]
    return " ".join([*parts, literal_rule("}")])


def list_rule(rule: str, least: int = 0) -> str:
    """An array of what a rule generates, of one entry at least or possibly empty."""
    inner = f"{rule} ({literal_rule(', ')} {rule})*"
    return f"{literal_rule('[')} {inner if least else f'[{inner}]'} {literal_rule(']')}"


def ordered_json(value: Any, order: Sequence[str]) -> str:
    """JSON with the fields of every object in their order, as a grammar has it.

    Example:
        >>> ordered_json({"b": [], "a": None}, "ab")
        '{"a": null, "b": []}'
    """
    if isinstance(value, Mapping):
        fields = sorted(value.items(), key=lambda pair: order.index(pair[0]))
        said = (f"{json.dumps(key)}: {ordered_json(one, order)}" for key, one in fields)
        return f"{{{', '.join(said)}}}"
    if isinstance(value, list):
        return f"[{', '.join(ordered_json(one, order) for one in value)}]"
    return json.dumps(value, ensure_ascii=False)
