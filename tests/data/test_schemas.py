"""Schemas of users: what becomes of them, what is refused, and instances from records."""

from __future__ import annotations

import json
import sys
from datetime import date
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, field_validator

from pearl.data.schemas import load_schema
from pearl.documents.record import FieldResult, Record
from pearl.dsl.fields import parse_fields, print_fields
from pearl.errors import DataError, UsageError
from tests.data.models import NOT_STATED, TEXT, UNDECIDED, of, several, stated


class Grade(IntEnum):
    LOW = 1
    HIGH = 2


class Dose(BaseModel):
    mg: float | None = None


class Drug(BaseModel):
    """A drug that is taken."""

    name: str = Field(max_length=10)
    dose: Dose


class Address(BaseModel):
    city: str


class Visit(BaseModel):
    model_config = ConfigDict(strict=True)
    patient: str = Field(description="the full\nname", alias="the patient")
    age: int | None = Field(ge=0)
    born: date
    fee: Decimal | None = None
    smoker: Literal["yes", "no"] | None = None
    grade: Grade
    home: Address | None = None
    work: Address
    drugs: list[Drug] = []
    notes: list[str] | None = None
    tags: set[str]
    summary: str = Field(json_schema_extra={"format": "text"})

    @field_validator("patient")
    @classmethod
    def has_letters(cls, name: str) -> str:
        return {"Ada": "Ada", "Bo": "Bo"}[name]


class Node(BaseModel):
    inner: Node | None = None


VISIT = (
    "'the patient': str (the full name), age: int {\"minimum\": 0}?, born: date, fee: decimal?, smoker: yes|no?, "
    "grade: 1|2, home.city: str?, work.city: str, "
    'drugs: [{name: str {"maxLength": 10}, dose.mg: number?}]? (A drug that is taken.), '
    "notes: [str]?, tags: [str], summary: text"
)


def test_a_model_becomes_fields() -> None:
    schema = load_schema(Visit)
    assert print_fields(schema.fields) == VISIT
    assert schema.model is Visit
    assert load_schema(f"{__name__}:Visit") == schema


def a_list(of_what: Any, **keywords: Any) -> dict[str, Any]:
    return {"type": "array", "items": of_what, **keywords}


def any_of(*ways: Any, **keywords: Any) -> dict[str, Any]:
    return {"anyOf": list(ways), **keywords}


INT, NUMBER, NULL = ({"type": name} for name in ("integer", "number", "null"))
CAT = of(kind={"const": "cat"}, name=TEXT, lives=INT)
DOG = of(kind={"const": "dog"}, name=TEXT, tricks=a_list(TEXT))


@pytest.mark.parametrize(
    ("properties", "fields"),
    [
        # single values
        ({"a": TEXT | {"format": "date", "title": "A"}}, "a: date"),
        ({"a": TEXT | {"format": "email", "title": "the address"}}, 'a: str {"format": "email"} (the address)'),
        ({"a": TEXT | {"format": "of our house"}}, "a: str"),
        ({"a": TEXT | {"format": "duration"}},
         'a: text {"format": "duration"} (a duration in ISO 8601, as P3D or PT1H30M)'),
        ({"a": {"type": ["integer", "null"], "minimum": 3}}, 'a: int {"minimum": 3}?'),
        ({"a": {"minimum": 3, "multipleOf": 2}}, 'a: number {"minimum": 3, "multipleOf": 2}'),
        ({"a": {"minimum": 3, "exclusiveMinimum": True}}, 'a: number {"exclusiveMinimum": 3}'),
        ({"a": {"pattern": "^a+$", "maxLength": 3}}, 'a: str {"pattern": "^a+$", "maxLength": 3}'),
        ({"a": {"type": "number", "nullable": True}}, "a: number?"),
        ({"a": {"oneOf": [{"type": "null"}, {"type": "boolean"}]}}, "a: bool?"),
        ({"a": any_of(NUMBER, TEXT)}, "a: str"),
        ({"a": {"type": ["number", "string", "null"]}}, "a: str?"),
        ({"a": any_of(NUMBER, INT)}, "a: number"),
        ({"a": any_of(NUMBER, TEXT | {"pattern": "^[0-9]+[.]?[0-9]*$"})}, "a: decimal"),
        ({"a": any_of(NUMBER, TEXT | {"pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}, NULL)}, "a: decimal?"),
        ({"a": TEXT | {"format": "decimal"}}, "a: decimal"),
        ({"a": {}, "b": True}, "a: str, b: str"),
        # enumerations and constants
        ({"a": {"enum": [1, 2.5, True, "x", None]}}, "a: 1|'2.5'|true|x?"),
        ({"a": {"enum": ["x", "X", ""]}}, "a: str"),
        ({"a": {"enum": ["x", {"y": 1}]}}, "a: x|'{\"y\": 1}'"),
        ({"a": {"anyOf": [{"enum": ["x", 1]}, {"type": "string", "minLength": 3}]}}, "a: str"),
        ({"a": {"const": "only"}, "b": TEXT}, "b: str"),
        ({"a": any_of({"const": "x", "title": "the first"}, {"const": "y"})}, "a: x|y (x: the first)"),
        ({"a": any_of({"const": "only"}, NULL)}, "a: 'only'?"),
        # lists, tuples and maps
        ({"a": a_list(TEXT | {"description": "b"})}, "a: [str] (b)"),
        ({"a": {"type": "array"}}, "a: [str]"),
        ({"a": a_list(INT, minItems=2, maxItems=3)}, "a: [int] (at least 2; at most 3)"),
        ({"a": a_list(a_list(INT))}, "a: [[int]]"),
        ({"a": a_list(a_list(of(b=TEXT)))}, "a: [[{b: str}]]"),
        ({"a": a_list(a_list(INT | {"description": "n"}))}, "a: [[int]] (n)"),
        ({"a": a_list(of(b=a_list(TEXT)))}, "a: [{b: [str]}]"),
        ({"a": a_list(of(b=a_list(a_list(of(c=TEXT)))))}, "a: [{b: [[{c: str}]]}]"),
        ({"a": {"type": "array", "prefixItems": [TEXT, INT]}}, "a.1: str, a.2: int"),
        ({"a": {"type": "array", "items": [TEXT]}}, "a.1: str"),
        ({"a": a_list({"prefixItems": [NUMBER, NUMBER]})}, "a: [{1: number, 2: number}]"),
        ({"a": {"type": "object"}}, "a: [{key: str, value: str}]"),
        ({"a": {"additionalProperties": INT}}, "a: [{key: str, value: int}]"),
        ({"a": {"additionalProperties": a_list(INT)}}, "a: [{key: str, value: [int]}]"),
        ({"a": {"additionalProperties": of(key=TEXT, value=INT)}}, "a: [{key_2: str, key: str, value: int}]"),
        ({"a": {"patternProperties": {"^[A-Z]$": INT}}}, 'a: [{key: str {"pattern": "^[A-Z]$"}, value: int}]'),
        ({"a": {"additionalProperties": INT, "propertyNames": {"enum": ["x", "y"]}}}, "a: [{key: x|y, value: int}]"),
        ({"a": of(b=TEXT) | {"additionalProperties": INT}}, "a.b: str, a.others: [{key: str, value: int}]?"),
        # objects
        ({"first name": TEXT, "名前": TEXT, "it's": TEXT}, "'first name': str, 名前: str, 'it''s': str"),
        ({"a.b": TEXT, "a_b": TEXT, " ": TEXT}, "a_b: str, a_b_2: str, field: str"),
        ({"document": TEXT, "value": TEXT, "quote": TEXT, "status": TEXT},
         "document: str, value: str, quote: str, status: str"),
        ({"العمر": INT, "x" * 500: TEXT}, f"العمر: int, {'x' * 500}: str"),
        ({"a": of(b=of(c=TEXT)) | {"description": "d"}}, "a.b.c: str (d)"),
        ({"a": any_of(of(b=TEXT), NULL)}, "a.b: str?"),
        ({"a": a_list(of(b=of(c=TEXT), d={"const": 1}))}, "a: [{b.c: str}]"),
        ({"a": {"allOf": [of(b=TEXT), of(c=INT), {"properties": {"b": {"minLength": 1}}}]}},
         'a.b: str {"minLength": 1}, a.c: int'),
        ({"a": of(b=TEXT) | {"if": {"required": ["b"]}, "then": {"properties": {"c": INT}}}}, "a.b: str, a.c: int?"),
        ({"a": of(b=TEXT, c=INT) | any_of({"required": ["b"]}, {"required": ["c"]})}, "a.b: str, a.c: int"),
        # alternatives
        ({"a": any_of(CAT, DOG)},
         "a.kind: cat|dog, a.name: str, a.lives: int? (if kind is cat), a.tricks: [str]? (if kind is dog)"),
        ({"a": any_of(of(x=INT), of(x=TEXT, y=TEXT))}, "a.x: int?, a.x_2: str?, a.y: str?"),
        ({"a": a_list(any_of(CAT, DOG))},
         "a: [{kind: cat|dog, name: str, lives: int? (if kind is cat), tricks: [str]? (if kind is dog)}]"),
        ({"a": a_list(any_of(TEXT, of(name=TEXT)))}, "a: [{text: str?, name: str?}]"),
        ({"a": any_of(a_list(TEXT), a_list(of(name=TEXT)))}, "a: [{text: str?, name: str?}]"),
        ({"a": any_of(INT, of(low=INT, value=INT))}, "a.value: int, a.low: int?"),
        ({"a": any_of(TEXT, a_list(TEXT))}, "a: [str]"),
        ({"a": any_of(of(b=TEXT), a_list(TEXT), NULL)}, "a.b: str?, a.list: [str]?"),
    ],
)  # fmt: skip
def test_a_json_schema_becomes_fields(properties: Any, fields: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(of(**properties)), encoding="utf-8")
    schema = load_schema(str(path))
    assert print_fields(schema.fields) == print_fields(parse_fields(fields))
    assert load_schema(schema.fields).fields == schema.fields
    assert load_schema(schema.text).fields == schema.fields
    assert (
        load_schema({"$ref": "#/$defs/A", "$defs": {"A": of(**properties)}}).fields == schema.fields
    )


DEEP: dict[str, Any] = TEXT
for _ in range(20):
    DEEP = of(a=DEEP)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (of(a={"type": "file"}), "properties.a.type"),
        (of(a=TEXT | {"required": True}), "properties.a.required"),
        (of(a=3), "properties.a"),
        (of(a={"type": "array", "items": 3}), "properties.a.items"),
        (of(a={"anyOf": []}), "properties.a.anyOf"),
        (of(a={"pattern": "("}), "properties.a.pattern"),
        (of(a={"$ref": "#/$defs/B"}), "properties.a.$ref"),
        (of(a={"$ref": "#here"}), "properties.a.$ref"),
        (of(a={"$ref": "https://example.org/b.json"}), "properties.a.$ref"),
        (of(a={"$ref": "b.json"}), "properties.a.$ref"),
        (of(a={"$ref": "#/title"}) | {"title": "x"}, "properties.a.$ref"),
        (of(a={"$ref": "#"}), "schema: a type needs itself"),
        (of(a={"$ref": "#/$defs/B"}) | {"$defs": {"B": {"$ref": "#/$defs/B"}}}, "schema: a type needs itself"),
        (DEEP, "properties.a.properties.a.properties.a.properties.a.properties.a"),
        (of(**{f"a{i}": TEXT for i in range(5_001)}), "properties.a5000"),
        (of(**{f"a{i}": of(**{f"b{j}": TEXT for j in range(150)}) for i in range(40)}), "more than 5,000 fields"),
        (of(), "schema"),
        (of(a={"const": 1}), "schema: there is nothing to extract"),
        (of(a=NULL), "schema: there is nothing to extract"),
        ({"name": "Ada", "age": 36}, "schema"),
        ({"type": "object"}, "schema"),
        ({"first": of(a=TEXT), "second": of(b=TEXT)}, "schema: not a JSON Schema"),
    ],
)  # fmt: skip
def test_what_is_no_schema_is_refused_with_its_path(schema: Any, path: str) -> None:
    with pytest.raises(DataError) as caught:
        load_schema(schema)
    assert path in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.parametrize("content", [b"[1, 2]", b'{"a": }', b"\xff\xfe\xff", b"[" * 100_000, None])
def test_a_file_that_is_no_schema_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "my.json"
    if content is not None:
        path.write_bytes(content)
    for name in (path, str(path)):
        with pytest.raises(DataError, match=r"my\.json: "):
            load_schema(name)


@pytest.mark.parametrize(
    "name", ["schema.jsn", "a folder/schema.json", "folder/my-schema.jsonschema"]
)
def test_a_file_that_is_missing_is_no_field(name: str) -> None:
    with pytest.raises(DataError, match="no such file"):
        load_schema(name)


@pytest.mark.parametrize(
    "name", ["no_such_module:Model", f"{__name__}:Nothing", "json:JSONDecoder", "broken:Model"]
)
def test_a_model_that_cannot_be_imported_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("broken.py").write_text("raise SystemExit(3)", encoding="utf-8")
    with pytest.raises(UsageError, match=name):
        load_schema(name)


def test_a_module_is_imported_from_the_working_folder_only_if_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    module = "import pydantic\nclass Outer:\n  class Model(pydantic.BaseModel):\n    a: int\n"
    Path("of_a_user.py").write_text(module, encoding="utf-8")
    load_schema("of_a_user:int, a")
    load_schema("of_a_user:int")
    assert "of_a_user" not in sys.modules
    assert load_schema("of_a_user:Outer.Model").fields == parse_fields("a: int")


RESULTS = {
    "the patient": stated("Ada"), "age": NOT_STATED, "born": stated("1990-02-01"), "fee": stated(12.1),
    "smoker": stated("no"), "grade": stated("2"), "home.city": NOT_STATED, "work.city": stated("Bonn"),
    "drugs": several({"name": stated("A"), "dose.mg": stated(5)}, {"name": stated("B"), "dose.mg": NOT_STATED}),
    "notes": several({"value": stated("tired")}), "tags": NOT_STATED, "summary": stated("well"),
}  # fmt: skip


def test_a_record_becomes_an_instance() -> None:
    reading = load_schema(Visit).read(Record(RESULTS))
    assert not reading.reasons
    assert reading.value == Visit.model_validate({
        "the patient": "Ada", "age": None, "born": date(1990, 2, 1), "fee": Decimal("12.1"), "smoker": "no",
        "grade": Grade.HIGH, "home": None, "work": {"city": "Bonn"}, "notes": ["tired"], "tags": set(), "summary": "well",
        "drugs": [{"name": "A", "dose": {"mg": 5}}, {"name": "B", "dose": {"mg": None}}],
    })  # fmt: skip
    bare = RESULTS | {"drugs": NOT_STATED, "notes": NOT_STATED}
    visit = load_schema(Visit).read(Record(bare)).value
    assert (visit.drugs, visit.notes) == ([], None)
    properties = Visit.model_json_schema() | {"x-by": "pydantic"}
    properties["properties"]["fee"] = {"type": "number"}
    data = load_schema(properties).read(Record(bare)).value
    assert Visit.model_validate_json(json.dumps(data)) == visit


A, B = ({"name": name, "dose": {"mg": mg}} for name, mg in (("A", 5), ("B", None)))
BAD_NAME = {"name": NOT_STATED, "dose.mg": stated(1)}
LONG_NAME = {"name": stated("A" * 11), "dose.mg": stated(1)}
GOOD = {"name": stated("A"), "dose.mg": stated(5)}


@pytest.mark.parametrize(
    ("changed", "reasons", "wanted"),
    [  # what is required and missing leaves no instance, what is not leaves the others
        ({"born": NOT_STATED}, ["born: not stated"], None),
        ({"born": UNDECIDED}, ["born: undecided: two values"], None),
        ({"work.city": NOT_STATED}, ["work.city: not stated"], None),
        ({"the patient": stated("Cy")}, ["Visit: KeyError: 'Cy'"], None),
        ({"drugs": UNDECIDED}, ["drugs: undecided: two values"], None),
        ({"age": UNDECIDED}, ["age: undecided: two values"], {"age": None}),
        ({"age": stated(-1)}, ["age: Input should"], {"age": None}),
        ({"smoker": stated("perhaps")}, ["smoker: Input should"], {"smoker": None}),
        ({"home.city": UNDECIDED}, ["home.city: undecided: two values"], {"home": None}),
        ({"notes": UNDECIDED}, ["notes: undecided: two values"], {"notes": None}),
        ({"notes": several({"value": UNDECIDED}, {"value": stated("x")})}, ["notes[0]: undecided"], {"notes": ["x"]}),
        ({"drugs": several(BAD_NAME, GOOD)}, ["drugs[0].name: not stated"], {"drugs": [A]}),
        ({"drugs": several(GOOD, LONG_NAME)}, ["drugs[1].name: String should"], {"drugs": [A]}),
        ({"drugs": several(BAD_NAME, LONG_NAME, GOOD, LONG_NAME)},
         ["drugs[0].name: not stated", "drugs[1].name: String should", "drugs[3].name: String should"], {"drugs": [A]}),
        ({"drugs": replace(several(GOOD), state="undecided", why="one is missing")}, ["drugs: undecided: one is missing"], {"drugs": [A]}),
        ({"age": UNDECIDED, "born": NOT_STATED}, ["age: undecided", "born: not stated"], None),
    ],
)  # fmt: skip
def test_what_has_no_value_takes_nothing_else_with_it(
    changed: dict[str, FieldResult], reasons: list[str], wanted: dict[str, Any] | None
) -> None:
    reading = load_schema(Visit).read(Record(RESULTS | changed))
    instance, given = reading.value, reading.reasons
    assert all(one.startswith(other) for one, other in zip(given, reasons, strict=True)), given
    if wanted is None:
        assert instance is None
    else:
        whole = load_schema(Visit).read(Record(RESULTS)).value
        assert instance == Visit.model_validate(whole.model_dump(by_alias=True) | wanted)


@pytest.mark.parametrize(
    ("keywords", "entries", "reasons"),
    [
        ({"uniqueItems": True, "minItems": 1}, (UNDECIDED, UNDECIDED), ["t[0]: undecided: two values", "t[1]: undecided: two values"]),
        ({"minItems": 1}, (UNDECIDED,), ["t[0]: undecided: two values"]),
        ({"minItems": 2}, (stated(5), UNDECIDED), ["t[1]: undecided: two values"]),
        ({"maxItems": 1}, (stated(5), stated(7), UNDECIDED),
         ["t[2]: undecided: two values", 't: the value [5, 7, null] breaks "maxItems": 1']),
        ({"minItems": 3}, (stated(5), stated(7)), ['t: the value [5, 7] breaks "minItems": 3']),
    ],
)  # fmt: skip
def test_entries_that_are_undecided_break_no_rule_of_their_list(
    keywords: dict[str, Any], entries: tuple[FieldResult, ...], reasons: list[str]
) -> None:
    schema = load_schema({"properties": {"t": a_list(INT, **keywords)}, "required": ["t"]})
    reading = schema.read(Record({"t": several(*({"value": each} for each in entries))}))
    assert (reading.value, list(reading.reasons)) == (None, reasons)
