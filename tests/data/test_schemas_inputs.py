"""Schemas from Python types, from several files, with types in themselves, and with bad intent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import pytest
from pydantic import BaseModel, Field, TypeAdapter, model_validator
from typing_extensions import TypedDict

from pearl.data.schemas import load_schema
from pearl.documents.record import Record
from pearl.dsl.fields import print_fields
from pearl.errors import DataError, UsageError
from tests.data.models import NOT_STATED, TEXT, UNDECIDED, of, several, stated

# --- types of Python


class Part(BaseModel):
    """A part of a machine."""

    name: str = Field(title="Name", description="as printed", examples=["bolt", "nut"])
    n: int = Field(default=1, ge=1, json_schema_extra={"hint": "count the pieces"})
    price: Annotated[Decimal, Field(ge=0)] | None = None


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


@dataclass
class Point:
    x: float
    y: float = 0.0
    tags: list[str] = field(default_factory=lambda: ["new"])


class Line(BaseModel):
    start: Point
    kind: Literal["line"] = "line"

    @model_validator(mode="after")
    def has_length(self) -> Line:
        if self.start.x < 0:
            raise ValueError("it starts outside")
        return self


PART = (
    "name: str (as printed; for example bolt, nut), "
    'n: int {"minimum": 1}? (count the pieces; the default 1 is no value of the document), '
    'price: decimal {"minimum": 0.0}?'
)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Part, PART),
        (Movie, "title: str, year: int?"),
        (Point, "x: number, y: number? (the default 0.0 is no value of the document), tags: [str]?"),
        (Line, "start.x: number, start.y: number? (the default 0.0 is no value of the document), start.tags: [str]?"),
        (list[Movie], "entries: [{title: str, year: int?}]"),
        (dict[str, int], "entries: [{key: str, value: int}]"),
        (Movie | Point, "title: str?, year: int?, x: number?, y: number? (the default 0.0 is no value of the document), tags: [str]?"),
        (int | None, "value: int?"),
        (TypeAdapter(list[int]), "entries: [int]"),
    ],
)  # fmt: skip
def test_a_type_of_python_becomes_fields(kind: Any, fields: str) -> None:
    assert print_fields(load_schema(kind).fields) == fields


@pytest.mark.parametrize("kind", [object(), 3, Path.exists, json.JSONDecoder])
def test_what_is_no_type_of_data_is_refused(kind: Any) -> None:
    with pytest.raises(UsageError):
        load_schema(kind)


@pytest.mark.parametrize(
    ("kind", "fields", "value", "reasons"),
    [
        (list[Movie], {"entries": several({"title": stated("A"), "year": NOT_STATED})}, [{"title": "A"}], []),
        (list[Movie], {"entries": NOT_STATED}, [], []),
        (list[Movie], {"entries": UNDECIDED}, None, ["list: undecided: two values"]),
        (dict[str, int], {"entries": several({"key": stated("a"), "value": stated(1)})}, {"a": 1}, []),
        (int | None, {"value": NOT_STATED}, None, []),
        (Point, {"x": stated(1), "y": NOT_STATED, "tags": NOT_STATED}, Point(1, tags=[]), ["y: default, not stated"]),
        # A default must not stand for what is undecided.
        (Point, {"x": stated(1), "y": UNDECIDED, "tags": NOT_STATED}, None, ["y: undecided: two values"]),
        (Line, {"start.x": stated(-1), "start.y": stated(2), "start.tags": several({"value": stated("a")})}, None,
         ["Line: Value error, it starts outside"]),
        (Part, {"name": stated("bolt"), "n": stated(0), "price": stated("0.10")}, None,
         ["n: Input should be greater than or equal to 1"]),
        (Part, {"name": stated("bolt"), "n": stated(2), "price": stated("0.10")},
         Part(name="bolt", n=2, price=Decimal("0.10")), []),
    ],
)  # fmt: skip
def test_a_record_becomes_a_value_of_a_type(
    kind: Any, fields: Any, value: Any, reasons: Any
) -> None:
    reading = load_schema(kind).read(Record(fields))
    assert (reading.value, list(reading.reasons)) == (value, reasons)
    if isinstance(value, Part):
        assert str(reading.value.price) == "0.10"


# --- composing


@pytest.mark.parametrize(
    ("schema", "fields", "data", "undecided"),
    [
        (of(a={"type": ["number", "string"]}), {"a": stated("12.5")}, {"a": 12.5}, ()),
        (of(a={"type": ["number", "string"]}), {"a": stated("007")}, {"a": "007"}, ()),
        (of(a={"type": ["integer", "boolean"]}), {"a": stated("yes")}, {"a": True}, ()),
        (of(a={"type": ["integer", "boolean"]}), {"a": stated("maybe")}, {"a": None}, ("a",)),
        (of(a=TEXT | {"format": "date-time"}), {"a": stated("2024-05-06 14:30")}, {"a": "2024-05-06T14:30:00"}, ()),
        (of(a=TEXT | {"format": "time"}), {"a": stated("half past two")}, {"a": None}, ("a",)),
        (of(a={"type": "integer", "maximum": 120}), {"a": stated(140)}, {"a": None}, ("a",)),
        (of(a={"type": "integer", "multipleOf": 5}), {"a": stated(15)}, {"a": 15}, ()),
        (of(a=TEXT | {"pattern": "^(?!x)a+$"}), {"a": stated("xa")}, {"a": None}, ("a",)),
        (of(a={"enum": ["x", "X"]}), {"a": stated("X")}, {"a": "X"}, ()),
        (of(a={"enum": ["x", "X"]}), {"a": stated("y")}, {"a": None}, ("a",)),
        (of(a={"const": 1}, b=TEXT), {"b": stated("c")}, {"a": 1, "b": "c"}, ()),
        (of(a={"prefixItems": [TEXT, {"type": "integer"}]}), {"a.1": stated("b"), "a.2": UNDECIDED}, {"a": ["b", None]}, ("a[1]",)),
        (of(a={"additionalProperties": of(b=TEXT)}),
         {"a": several({"key": stated("k"), "b": UNDECIDED}, {"key": stated("l"), "b": stated("c")})},
         {"a": {"k": {"b": None}, "l": {"b": "c"}}}, ("a.k.b",)),
        (of(a={"additionalProperties": TEXT}),
         {"a": several({"key": stated("k"), "value": stated("b")}, {"key": stated("k"), "value": stated("c")})},
         {"a": {"k": None}}, ("a.k",)),
        (of(a={"additionalProperties": {"anyOf": [TEXT, of(b=TEXT)]}}),
         {"a": several({"key": stated("k"), "text": stated("t"), "b": NOT_STATED})}, {"a": {"k": "t"}}, ()),
        (of(a=of(b=TEXT) | {"additionalProperties": {"type": "integer"}}),
         {"a.b": stated("c"), "a.others": several({"key": stated("k"), "value": stated(1)})}, {"a": {"b": "c", "k": 1}}, ()),
        (of(a={"type": "array", "items": {"type": "array", "items": TEXT}}),
         {"a": several({"value": several({"value": stated("b")}, {"value": UNDECIDED})})}, {"a": [["b", None]]}, ("a[0][1]",)),
        (of(**{"a.b": TEXT}), {"a_b": UNDECIDED}, {"a.b": None}, ("a.b",)),
        (of(a={"anyOf": [of(x=TEXT), of(y=TEXT)]}), {"a.x": NOT_STATED, "a.y": stated("b")}, {"a": {"y": "b"}}, ()),
        (of(a={"anyOf": [of(x=TEXT), of(y=TEXT)]}), {"a.x": stated("a"), "a.y": stated("b")}, {"a": None}, ("a",)),
        (of(a={"anyOf": [{"type": "integer"}, of(y=TEXT)]}), {"a.value": stated(3), "a.y": NOT_STATED}, {"a": 3}, ()),
    ],
)  # fmt: skip
def test_a_record_becomes_data_of_a_schema(
    schema: Any, fields: Any, data: Any, undecided: Any
) -> None:
    loaded = load_schema(schema)
    reading = loaded.read(Record(fields))
    assert (reading.data, reading.undecided) == (data, undecided), reading.reasons
    assert loaded.read(Record(fields)) == load_schema(loaded.text).read(Record(fields))
    assert (reading.value == data) is (not undecided)


def test_a_whole_that_breaks_a_keyword_has_no_value_and_says_which() -> None:
    schema = load_schema(of(a=TEXT, b=TEXT) | {"not": {"properties": {"a": {"const": "x"}}}})
    reading = schema.read(Record({"a": stated("x"), "b": stated("y")}))
    assert reading.value is None
    assert 'breaks "not"' in reading.reasons[0]
    entries = {"type": "array", "items": TEXT, "minItems": 2}
    reading = load_schema(of(a=entries)).read(Record({"a": several({"value": stated("x")})}))
    assert (reading.value, reading.data, reading.undecided) == (None, {"a": ["x"]}, ("a",))
    assert 'breaks "minItems": 2' in reading.reasons[0]


# --- references


FILES = {
    "schema.json": of(a={"$ref": "parts/a.json"}, b={"$ref": "parts/a.json#/$defs/B"}, c={"$ref": "#here"})
    | {"$id": "https://example.org/schema.json", "$defs": {"C": TEXT | {"$anchor": "here"}}},
    "parts/a.json": of(x={"$ref": "#/$defs/B"}, y={"$ref": "../other.json"}) | {"$defs": {"B": {"type": "integer"}}},
    "other.json": {"enum": ["p", "q"]},
    "above.json": of(a={"$ref": "../secret.json"}), "root.json": of(a={"$ref": "/etc/passwd"}),
    "address.json": of(a={"$ref": "https://example.org/a.json"}), "file.json": of(a={"$ref": "file:///etc/passwd"}),
    "missing.json": of(a={"$ref": "none.json"}), "link.json": of(a={"$ref": "link"}),
    "number.json": of(a={"$ref": "five.json"}), "five.json": 5,  # type: ignore[dict-item]
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret.json").write_text('{"type": "string"}', encoding="utf-8")
    for name, schema in FILES.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(schema), encoding="utf-8")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "secret.json")
    return tmp_path / "in"


def test_references_lead_to_files_below_the_folder(folder: Path) -> None:
    schema = load_schema(folder / "schema.json")
    assert print_fields(schema.fields) == "a.x: int, a.y: p|q, b: int, c: str"
    (folder / "parts" / "a.json").unlink()
    assert load_schema(schema.text).fields == schema.fields


@pytest.mark.parametrize("name", ["above", "root", "address", "file", "missing", "link", "number"])
def test_references_lead_nowhere_else(folder: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"properties\.a\.\$ref"):
        load_schema(folder / f"{name}.json")


# --- types in themselves


class Tree(BaseModel):
    name: str
    left: Tree | None = None
    others: list[Tree] = []


TREE = load_schema(Tree)


def test_a_type_in_itself_is_read_to_a_stated_depth() -> None:
    assert TREE.notes == ("Tree: types that contain themselves are read 3 deep",)
    names = [name for name in print_fields(TREE.fields).split(": ") if "left" in name]
    assert max(name.count("left") for name in names) == 2
    inner = {"name": stated("b"), "left.name": NOT_STATED, "others": NOT_STATED}
    fields = {"name": stated("a"), "left.name": NOT_STATED, "others": several(inner)}
    reading = TREE.read(Record(fields))
    assert reading.value == Tree(name="a", others=[Tree(name="b")])


def test_alternatives_are_many_or_too_many() -> None:
    ways = [{"const": f"c{i}", "title": f"Country {i}"} for i in range(300)]
    [countries] = load_schema(of(a={"oneOf": ways})).fields
    assert len(countries.labels) == 300
    doubled = {f"D{i}": {"allOf": [{"$ref": f"#/$defs/D{i + 1}"}] * 2} for i in range(40)} | {
        "D40": TEXT
    }
    with pytest.raises(DataError, match="split them"):
        load_schema(of(a={"$ref": "#/$defs/D0"}) | {"$defs": doubled})
    deep: Any = TEXT
    for _ in range(400):
        deep = {"allOf": [deep]}
    with pytest.raises(DataError, match="nested too deep"):
        load_schema(of(a=deep))


def test_types_that_multiply_are_read_less_deep_or_refused() -> None:
    def multiplied(n: int) -> Any:
        refs = {f"p{i}": {"anyOf": [{"$ref": f"#/$defs/T{i}"}, {"type": "null"}]} for i in range(n)}
        return {"$ref": "#/$defs/T0", "$defs": {f"T{i}": of(x=TEXT, **refs) for i in range(n)}}

    assert "read 1 deep" in str(load_schema(multiplied(5)).notes)
    with pytest.raises(DataError, match="more than 5,000 fields"):
        load_schema(multiplied(8))


# --- what is not used, and what is too much


WRAPPED = of(a=TEXT)


@pytest.mark.parametrize(
    "given",
    [
        {"schema": WRAPPED},
        {"json_schema": WRAPPED},
        {"name": "x", "strict": True, "schema": WRAPPED},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": WRAPPED}},
        {"name": "x", "description": "y", "input_schema": WRAPPED},
        {"schema": {"$ref": "#/$defs/A"}, "$defs": {"A": WRAPPED}},
    ],
)
def test_a_schema_in_a_wrapping_is_found(given: Any) -> None:
    schema = load_schema(given)
    assert print_fields(schema.fields) == "a: str"
    assert load_schema(json.dumps(given)).fields == schema.fields
