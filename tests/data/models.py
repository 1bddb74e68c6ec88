"""A model with every type, schemas made from a seed, and what a record says about data of a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from random import Random
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from pearl.data.schema_tree import Choice, Constant, List, Map, Node, Object, Scalar, members_of
from pearl.data.schemas import Schema
from pearl.documents.record import FieldResult, Record
from pearl.dsl.fields import Field as AnyField


class Colour(Enum):
    RED = "red"
    BLUE = "dark blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int | None = None


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class Everything(BaseModel):
    """A field of every type that engineers write."""

    when: datetime
    at: time
    took: timedelta
    id: UUID
    colour: Colour
    level: Level
    said: Literal["yes", "no", 3]
    years: Annotated[int, Field(ge=0, le=120, description="in years", alias="years of it")]
    share: Annotated[float, Field(gt=0, multiple_of=0.5)]
    code: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3}$")]
    price: Annotated[Decimal, Field(ge=0, max_digits=6)]
    number: int | str
    flag: bool | float | None
    by_name: dict[str, list[int]]
    sides: dict[Literal["first", "second"], float]
    pair: tuple[str, int]
    words: set[str]
    names: str | list[str]
    grid: list[list[int]]
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]
    own: Cat | None


FIRST: dict[str, Any] = {
    "when": "2024-05-06T14:30:00+02:00", "at": "14:30:00", "took": "P3D", "id": "12345678-1234-4234-8234-123456789012",
    "colour": "dark blue", "level": 10, "said": 3, "years of it": 7, "share": 1.5, "code": "AB-123", "price": "9.10",
    "number": 12, "flag": True, "by_name": {"a b": [1, 2]}, "sides": {"first": 2.5}, "pair": ["x", 5], "words": ["a", "b"],
    "names": ["a", "b c"], "grid": [[1, 2], [3]], "pets": [{"kind": "cat", "lives": 9}, {"kind": "dog", "tricks": ["sit"]}],
    "own": {"kind": "cat", "lives": 3},
}  # fmt: skip
SECOND = FIRST | {
    "when": "2024-05-06T14:30:00Z", "said": "no", "number": "twelve", "flag": 2.5, "by_name": {}, "words": [], "names": "one",
    "grid": [], "pets": [], "own": None,
}  # fmt: skip


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


TEXT = {"type": "string"}
NOT_STATED = FieldResult("not_stated")
UNDECIDED = FieldResult("undecided", why="two values")


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def stated(value: Any) -> FieldResult:
    return FieldResult("found", value)


def several(*entries: Mapping[str, FieldResult]) -> FieldResult:
    return FieldResult("found", entries=entries)


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
