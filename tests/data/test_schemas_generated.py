"""Models and schemas of many shapes: all are accepted, and what is composed is valid by other validators."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import Any

import jsonschema
import pytest

from pearl.data.schemas import load_schema
from pearl.documents.record import FieldResult, Record
from pearl.dsl.fields import parse_fields, print_fields
from pearl.errors import DataError
from tests.data.models import FIRST, SECOND, TEXT, Everything, a_schema, any_result, of, record_of
from tests.examples import times


@pytest.mark.parametrize("data", [FIRST, SECOND], ids=["first", "second"])
def test_a_model_with_every_type_is_read_and_composed(data: dict[str, Any]) -> None:
    schema, rng = load_schema(Everything), Random(1)
    assert parse_fields(print_fields(schema.fields)) == schema.fields
    reading = schema.read(record_of(schema, data))
    assert reading.value == Everything.model_validate_json(json.dumps(data)), reading.reasons
    assert not reading.undecided
    plain = json.loads(reading.value.model_dump_json(by_alias=True))
    jsonschema.validate(plain, Everything.model_json_schema(mode="serialization"))
    # Any part may be lost: the others stay, and what is composed is valid.
    for _ in range(times(100)):
        torn = Record({k: torn_result(r, rng) for k, r in record_of(schema, data).fields.items()})
        reading = schema.read(torn)
        assert isinstance(reading.value, Everything) or reading.reasons
        as_data = load_schema(schema.text).read(torn)
        if as_data.value is not None:
            jsonschema.validate(as_data.value, json.loads(schema.text))


def torn_result(result: FieldResult, rng: Random) -> FieldResult:
    if result.entries:
        entries = ({k: torn_result(r, rng) for k, r in entry.items()} for entry in result.entries)
        return FieldResult("found", entries=tuple(entries))
    if result.state == "found" and rng.random() < 0.1:
        return FieldResult("undecided", why="two values")
    return result


@pytest.mark.parametrize("seed", range(5))
def test_what_is_composed_of_anything_is_valid(seed: int) -> None:
    rng, n_values = Random(seed), 0
    for _ in range(times(40)):
        parts = {name: a_schema(rng, 3) for name in "AB"}
        given = {"properties": {name: a_schema(rng, 4) for name in "abc"}, "$defs": parts}
        try:
            schema = load_schema(given)
        except DataError as error:
            if not str(error).endswith(("nothing to extract", "a cycle without an end")):
                raise
            continue
        assert parse_fields(print_fields(schema.fields)) == schema.fields
        for _ in range(3):
            record = Record({f.name: any_result(rng, f) for f in schema.fields})
            reading = schema.read(record)
            assert reading == load_schema(schema.text).read(record)
            if reading.value is None:
                assert reading.reasons
                continue
            n_values += 1
            with suppress(RecursionError):  # of the validator: a reference may lead to itself
                jsonschema.validate(reading.value, given)
    assert n_values


def maybe(what: Any) -> Any:
    return {"anyOf": [what, {"type": "null"}]}


def a_list(what: Any) -> Any:
    return {"type": "array", "items": what}


KINDS: list[tuple[Any, Any]] = [
    (TEXT, "a text"), ({"type": "number"}, 2.5), ({"type": "integer", "minimum": 0}, 7), ({"type": "boolean"}, True),
    (TEXT | {"format": "date"}, "2024-05-06"), ({"enum": ["low", "high", None]}, "low"),
]  # fmt: skip
FLAT = {f"field_{i}": KINDS[i % len(KINDS)] for i in range(369)}
PARTY = of(name=TEXT, kind={"const": "party"})
SCHEMAS = {
    "369 flat fields": (
        of(**{name: maybe(kind) | {"description": f"number {name}"} for name, (kind, _) in FLAT.items()}),
        {name: value for name, (_, value) in FLAT.items()},
    ),
    "lists in lists": (
        of(tables=a_list(of(title=maybe(TEXT), rows=a_list(a_list(maybe({"type": ["number", "string"]})))))),
        {"tables": [{"title": None, "rows": [[1, "a"], ["b"], [2.5, 3]]}, {"title": "t", "rows": [["c"]]}]},
    ),
    "number or text": (
        of(price={"type": ["number", "string", "null"]}, sizes=a_list({"oneOf": [{"type": "integer"}, TEXT]})),
        {"price": "on request", "sizes": [3, "large"]},
    ),
    "texts or objects": (
        of(authors={"anyOf": [a_list(TEXT), a_list({"$ref": "#/$defs/P"}), {"type": "null"}]}) | {"$defs": {"P": PARTY}},
        {"authors": [{"name": "Ada", "kind": "party"}, {"name": "Bo", "kind": "party"}]},
    ),
    "wrapped": (
        {"name": "deal", "strict": True, "schema": of(parties=a_list(PARTY), day=maybe(TEXT | {"format": "date"}))},
        {"parties": [{"name": "Ada", "kind": "party"}], "day": "2024-05-06"},
    ),
    "a list as the whole": (a_list(of(name=TEXT)), [{"name": "Ada"}, {"name": "Bo"}]),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_of_a_kind_is_read_and_composed(name: str) -> None:
    given, data = SCHEMAS[name]
    schema, rng = load_schema(given), Random(name)
    assert parse_fields(print_fields(schema.fields)) == schema.fields
    whole = given.get("schema", given)
    jsonschema.validate(data, whole)
    reading = schema.read(record_of(schema, data))
    assert (reading.value, reading.data, reading.undecided) == (data, data, ()), reading.reasons
    n_whole = 0
    for _ in range(times(10)):
        torn = {k: torn_result(r, rng) for k, r in record_of(schema, data).fields.items()}
        reading = schema.read(Record(torn))
        if reading.value is not None:
            n_whole += 1
            jsonschema.validate(reading.value, whole)
        assert bool(reading.undecided) == any("undecided" in why for why in reading.reasons)
    assert n_whole
