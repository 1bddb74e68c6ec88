"""JSON for programs, and escaped formulas."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import asdict

from pearl.errors.escaping import inert, json_bytes
from pearl.trace import StepFailed, Trace


def test_model_with_a_lone_surrogate_is_written() -> None:
    event = StepFailed(step="a\ud800", error="é")
    assert json_bytes(event) == json_bytes(asdict(event))
    assert json.loads(json_bytes(event))["step"] == "a\ud800"


def test_event_with_a_lone_surrogate_is_read_back() -> None:
    trace = Trace("q\ud800")
    trace.append(StepFailed(step="a", error="x\udfff"))
    (again,) = Trace.from_jsonl(trace.id, trace.to_jsonl())
    assert again == next(iter(trace))


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("x;=1+1", "x;'=1+1"),
        ('x\n"=1+1', "x\n'\"=1+1"),
        ("x\t @SUM(A1)", "x\t' @SUM(A1)"),
        ("=1;=2", "'=1;'=2"),
        ("'=1", "''=1"),
        ("a|-cmd", "a|'-cmd"),
        ("5; -3;+2.5", "5; -3;+2.5"),
        ("a; b=c, -d", "a; b=c, -d"),
    ],
)
def test_formula_is_escaped_after_any_separator(cell: str, written: str) -> None:
    assert inert(cell) == written


def test_value_that_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError, match="of type object"):
        json_bytes({"a": object()})
