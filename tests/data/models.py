"""Models as engineers write them, made from a seed; and what a record says about data of a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from random import Random
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, create_model

from pearl.data.schema_tree import Choice, Constant, List, Map, Node, Object, Scalar, members_of
from pearl.data.schemas import Schema
from pearl.documents.record import FieldResult, Record
from pearl.dsl.fields import Field as AnyField

Value = Callable[[Random], Any]
"""Makes JSON data of a type."""


class Colour(Enum):
    RED = "red"
    BLUE = "dark blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


def _words(rng: Random) -> str:
    return " ".join(
        rng.choice(["river", "stone", "light", "tree"]) for _ in range(rng.randint(1, 3))
    )


SCALARS: list[tuple[Any, Value]] = [
    (str, _words),
    (int, lambda rng: rng.randint(-1_000, 10**12)),
    (float, lambda rng: rng.randint(-100, 100) / 4),
    (bool, lambda rng: rng.random() < 0.5),
    (Decimal, lambda rng: f"{rng.randint(0, 99)}.{rng.randint(0, 99):02}"),
    (date, lambda rng: f"20{rng.randint(10, 29)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}"),
    (datetime, lambda rng: f"2024-05-0{rng.randint(1, 9)}T14:30:00" + rng.choice(["", "Z", "+02:00"])),
    (time, lambda rng: f"1{rng.randint(0, 9)}:30:00"),
    (timedelta, lambda rng: f"P{rng.randint(1, 9)}D"),
    (UUID, lambda rng: str(UUID(int=rng.getrandbits(128), version=4))),
    (Literal["yes", "no", 3], lambda rng: rng.choice(["yes", "no", 3])),
    (Colour, lambda rng: rng.choice(["red", "dark blue"])),
    (Level, lambda rng: rng.choice([1, 10])),
    (Annotated[int, Field(ge=0, le=120, description="in years")], lambda rng: rng.randint(0, 120)),
    (Annotated[float, Field(gt=0, multiple_of=0.5)], lambda rng: rng.randint(1, 50) / 2),
    (Annotated[str, Field(min_length=2, max_length=30)], _words),
    (Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3}$")], lambda rng: f"AB-{rng.randint(100, 999)}"),
    (Annotated[Decimal, Field(ge=0, max_digits=6)], lambda rng: f"{rng.randint(0, 99)}.10"),
    (int | str, lambda rng: rng.choice([rng.randint(0, 99), _words(rng)])),
    (bool | float | None, lambda rng: rng.choice([True, 2.5, None])),
]  # fmt: skip


def any_type(rng: Random, depth: int) -> tuple[Any, Value]:
    """A type with what makes its data."""
    kind = rng.randrange(4, 16) if depth > 0 and rng.random() < 0.5 else 0
    if kind < 5:
        return rng.choice(SCALARS)
    if kind < 7:
        one, make = any_type(rng, 0)
        return one | None, lambda rng: rng.choice([None, make(rng)])
    inner, make = any_type(rng, depth - 1)
    if kind < 9:
        return list[inner], lambda rng: [make(rng) for _ in range(rng.randint(0, 3))]  # type: ignore[valid-type]
    if kind == 9:
        return dict[str, inner], lambda rng: {_words(rng) + str(i): make(rng) for i in range(rng.randint(0, 2))}  # type: ignore[valid-type]  # fmt: skip
    if kind == 10:
        other, make_other = rng.choice(SCALARS)
        return tuple[inner, other], lambda rng: [make(rng), make_other(rng)]  # type: ignore[valid-type]
    if kind == 11:
        return dict[Literal["first", "second"], inner], lambda rng: {"first": make(rng)}  # type: ignore[valid-type]
    if kind == 12:
        return set[str], lambda rng: sorted({_words(rng) for _ in range(3)})
    if kind == 13:
        return str | list[str], lambda rng: rng.choice([_words(rng), ["a", _words(rng)]])
    if kind == 14:
        ways = [a_model(rng, depth - 1, kind=f"kind {i}") for i in range(2)]
        told = Annotated[ways[0][0] | ways[1][0], Field(discriminator="kind")]
        return told, lambda rng: rng.choice(ways)[1](rng)
    model, make_model = a_model(rng, depth - 1)
    return model | None, lambda rng: rng.choice([None, _stated(make_model(rng))])


def _stated(data: dict[str, Any]) -> dict[str, Any] | None:
    """None for an object of which nothing is stated: a document cannot tell it from one that is absent."""
    return data if any(v not in (None, [], {}) for v in data.values()) else None


def a_model(rng: Random, depth: int = 3, kind: str = "") -> tuple[type[BaseModel], Value]:
    """A model with what makes its data."""
    fields: dict[str, Any] = {}
    makers: dict[str, Value] = {}
    if kind:
        fields["kind"] = (Literal[kind], ...)
        makers["kind"] = lambda _: kind
    for i in range(rng.randint(2, 5)):
        name = f"{rng.choice(['name', 'total', 'size', 'note', 'value'])}_{i}"
        annotation, make = any_type(rng, depth)
        alias = f"{name} of it" if rng.random() < 0.1 else name
        fields[name] = (
            annotation,
            Field(alias=alias, description=rng.choice([None, "words (of it)"])),
        )
        makers[alias] = make
    model = create_model(f"Model{rng.randrange(10**6)}", **fields)
    return model, lambda rng: {key: make(rng) for key, make in makers.items()}


# --- schemas without a meaning

_SINGLE: list[Any] = [
    {"type": "string"}, {"type": "integer"}, {"type": "number", "minimum": 0}, {"type": ["string", "null"]}, True, {},
    {"enum": ["a", "b", 1, None]}, {"const": 3}, {"type": "string", "format": "date"}, {"type": "boolean"},
    {"type": "string", "format": "email"}, {"type": "string", "pattern": "^a"}, {"format": "date-time"},
]  # fmt: skip


def a_schema(rng: Random, depth: int) -> Any:
    """A JSON Schema with any keywords in any place."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(_SINGLE)

    def inner() -> Any:
        return a_schema(rng, depth - 1)

    makers: list[Callable[[], Any]] = [
        lambda: {"properties": {name: inner() for name in "abc"}, "required": [rng.choice("abc")]},
        lambda: {"properties": {name: inner() for name in "cde"}, "additionalProperties": rng.choice(_SINGLE)},
        lambda: {"type": "array", "items": inner(), "minItems": rng.randint(0, 1), "uniqueItems": rng.random() < 0.2},
        lambda: {"anyOf": [inner() for _ in range(rng.randint(1, 3))]},
        lambda: {"oneOf": [inner(), {"type": "null"}]},
        lambda: {"additionalProperties": inner()},
        lambda: {"patternProperties": {"^x": inner()}},
        lambda: {"prefixItems": [inner(), inner()]},
        lambda: {"allOf": [inner(), inner()]},
        lambda: {"$ref": rng.choice(["#/$defs/A", "#/$defs/B"])},
    ]  # fmt: skip
    return rng.choice(makers)()


def any_result(rng: Random, about: AnyField) -> FieldResult:
    """What may become of a field."""
    state = rng.choice(["found"] * 6 + ["not_stated", "undecided"])
    if state == "not_stated" or (state == "undecided" and not about.is_list):
        return FieldResult(state, why="two values" if state == "undecided" else "")
    if about.is_list:
        n = rng.randint(1, 3)
        entries = ({each.name: any_result(rng, each) for each in about.inner} for _ in range(n))
        return FieldResult(state, entries=tuple(entries))
    texts = ["a", "ab", "x", "12", "2.5", "a@b.de", "2024-05-06T10:00:00Z"]
    values: dict[str, list[Any]] = {
        "int": [-1, 3], "number": [2.5, -1], "bool": [True], "date": ["2024-05-06"], "decimal": ["0.10"],
        "label": list(about.labels),
    }  # fmt: skip
    return FieldResult("found", rng.choice(values.get(about.type, texts)))


# --- data -> record


def record_of(schema: Schema, data: Any) -> Record:
    """What a reader finds who reads everything right."""
    return Record(_results(schema._root, data, schema._whole))


NOT_STATED = FieldResult("not_stated")


def _results(node: Node, data: Any, name: str) -> dict[str, FieldResult]:
    match node:
        case Constant():
            return {}
        case Scalar():
            return {
                name: NOT_STATED if data is None else FieldResult("found", _of_field(node, data))
            }
        case List():
            if data is None:
                return {name: NOT_STATED}
            values = data if isinstance(data, list) else [data]
            is_flat = isinstance(node.item, Object | Choice)
            entries = tuple(_results(node.item, v, "" if is_flat else "value") for v in values)
        case Map():
            if data is None:
                return {name: NOT_STATED}
            entries = tuple(
                _results(node.key.node, k, node.key.name) | _results(node.value.node, v, node.value.name)
                for k, v in data.items()
            )  # fmt: skip
        case Object() | Choice():
            return _of_object(node, data, f"{name}." if name else "")
        case _:
            raise TypeError(node)
    return {name: FieldResult("found", entries=entries) if entries else NOT_STATED}


def _of_object(node: Object | Choice, data: Any, start: str) -> dict[str, FieldResult]:
    results: dict[str, FieldResult] = {}
    if isinstance(node, Choice):
        for member in members_of(node):
            results |= _results(member.node, None, start + member.name)
        if data is None:
            return results
        variant = next(v for v in node.variants if _is_of(v, data))
        if node.tag is not None and isinstance(data, dict):
            results |= _results(node.tag.node, data[str(node.tag.key)], start + node.tag.name)
        node = variant
    if node.shape == "bare":
        return results | _results(node.members[0].node, data, start + node.members[0].name)
    for member in node.members:
        inner = None
        if data is not None:
            is_there = isinstance(data, list) or member.key in data
            inner = data[member.key] if is_there else None
        results |= _results(member.node, inner, start + member.name)
    return results


def _is_of(variant: Object, data: Any) -> bool:
    if variant.shape == "bare":
        return not isinstance(data, dict)
    if not isinstance(data, Mapping):
        return False
    keys = {m.key for m in variant.members}
    fixed = [m for m in variant.members if isinstance(m.node, Constant)]
    return data.keys() <= keys and all(data.get(str(m.key)) == m.node.value for m in fixed)  # type: ignore[attr-defined]


def _of_field(node: Scalar, value: Any) -> Any:
    for label, each in node.values.items():
        if each == value and type(each) is type(value):
            return label
    if node.type in ("str", "text") and not isinstance(value, str):
        return json.dumps(value)
    return value
