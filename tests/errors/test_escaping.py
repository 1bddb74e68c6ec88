"""JSON for programs."""

from __future__ import annotations

import json

import pytest

from pearl.errors.escaping import json_bytes
from pearl.trace import StepFailed, Trace


def test_a_model_with_a_lone_surrogate_is_written_as_its_data_is() -> None:
    event = StepFailed(step="a\ud800", error="é")
    assert json_bytes(event) == json_bytes(event.model_dump())
    assert json.loads(json_bytes(event))["step"] == "a\ud800"


def test_an_event_with_a_lone_surrogate_comes_back_from_a_trace() -> None:
    trace = Trace("q\ud800")
    trace.append(StepFailed(step="a", error="x\udfff"))
    (again,) = Trace.from_jsonl(trace.id, trace.to_jsonl())
    assert again == next(iter(trace))


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match="Object of type object"):
        json_bytes({"a": object()})
