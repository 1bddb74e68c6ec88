"""Schemas that nobody should write: a schema, or a message of few lines, in bounded time."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from pearl.data.schema_tree import MAX_ABOUT
from pearl.data.schemas import load_schema
from pearl.documents.record import FieldResult, Record
from pearl.errors import DataError

MOST_S = 20  # Many times what any of these takes
STRING = {"type": "string"}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def doubling(depth: int) -> dict[str, Any]:
    """2 ** depth leaves in a few lines."""
    below = {
        f"D{i}": an_object(a={"$ref": f"#/$defs/D{i + 1}"}, b={"$ref": f"#/$defs/D{i + 1}"})
        for i in range(depth)
    }
    return {**an_object(name={"$ref": "#/$defs/D0"}), "$defs": {**below, f"D{depth}": STRING}}


def in_a_circle(**definitions: Any) -> dict[str, Any]:
    return {**an_object(name={"$ref": "#/$defs/A"}), "$defs": definitions}


REFUSALS: dict[str, Any] = {
    "references in a circle": in_a_circle(A={"$ref": "#/$defs/B"}, B={"$ref": "#/$defs/A"}),
    "allOf in a circle": in_a_circle(A={"allOf": [{"$ref": "#/$defs/A"}]}),
    "anyOf in a circle": in_a_circle(A={"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]}),
    "the whole in the whole": {"$ref": "#"},
    "50,000 leaves": an_object(**{f"field_{i}": STRING for i in range(50_000)}),
    "2 ** 40 leaves": doubling(40),
    "2 ** 14 leaves": doubling(14),
    "100,000 objects in each other": b'{"type":"object","properties":{"a":' * 100_000,
    "a file above": an_object(name={"$ref": "sub/../../secret.json"}),
    "a link to another folder": an_object(name={"$ref": "link.json"}),
    "a reference to a number": an_object(name={"$ref": 5}),
    "a bound that is none": an_object(name={"type": "integer", "minimum": "two"}),
    "properties that are none": {"type": "object", "properties": [1]},
    "a schema that is a text": "name: str",
    "no text": b"\xff\xfe\x00\xd8",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_extracted_is_refused_in_a_few_lines(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"type": "string", "description": "hush"}', "utf-8")
    (folder := tmp_path / "here").mkdir()
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    data = REFUSALS[name]
    (folder / "schema.json").write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())  # fmt: skip
    start = time.process_time()
    with pytest.raises(DataError) as refused:
        load_schema(folder / "schema.json")
    lines = str(refused.value).splitlines()
    assert (len(lines) <= 3, max(map(len, lines)) < 500) == (True, True)
    assert "hush" not in str(refused.value)
    assert time.process_time() - start < MOST_S


def test_no_reference_reaches_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        with pytest.raises(DataError):
            load_schema(an_object(name={"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/a"}))
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_long_description_is_cut_and_that_is_told() -> None:
    schema = load_schema(an_object(name={**STRING, "description": "a person " * 100_000}))
    assert len(schema.fields[0].description) <= MAX_ABOUT + 2
    assert "the first 1,000 characters are used" in schema.notes[0]


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|aa)+$", "^(.*a){25}$", "^([a-z]+)*$X", r"^(a|a?)+(?=b)(a*)*\1$"])  # fmt: skip
@pytest.mark.parametrize("is_of_keys", [False, True])
def test_a_pattern_that_backtracks_ends(pattern: str, is_of_keys: bool) -> None:
    code = FieldResult("found", "a" * 5_000 + "!")
    if is_of_keys:
        schema = load_schema(an_object(codes={"patternProperties": {pattern: STRING}}))
        entry = {"key": code, "value": FieldResult("found", "Oulu")}
        fields = {"codes": FieldResult("found", entries=(entry,))}
    else:
        schema = load_schema(an_object(code={**STRING, "pattern": pattern}))
        fields = {"code": code}
    start = time.process_time()
    reading = schema.read(Record(fields))
    assert is_of_keys or (reading.data, reading.undecided) == ({"code": None}, ("code",))
    assert time.process_time() - start < MOST_S
