"""Events of traces of any version, and of any bytes."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pearl.llm import Usage
from pearl.trace import RunFinished, StepStarted, event_line
from pearl.view.sources import read_events

FINISHED = RunFinished(status="answered", answer="Ada", usage=Usage(), duration_s=1)


def _line(**changes: object) -> bytes:
    return json.dumps({**json.loads(event_line("a", FINISHED)), **changes}).encode() + b"\n"


def test_events_are_those_that_were_written() -> None:
    lines = [event_line(id, FINISHED).encode() for id in ("b", "a", "b")]
    events, problems = read_events(lines)
    assert {id: len(each) for id, each in events.items()} == {"b": 2, "a": 1}
    assert list(events) == ["b", "a"]
    assert events["a"] == (FINISHED,)
    assert problems == []


def test_another_version_is_told_and_shown() -> None:
    events, problems = read_events([_line(v=0, colour="red")])
    assert events["a"] == (FINISHED,)
    assert problems == [
        "The trace is of version 0, this program's is 1: it shows what it knows of it.",
        "Fields of the trace that are not known are left out: colour.",
    ]


def test_an_event_of_a_wrong_type_is_left_out_and_the_others_stay() -> None:
    started = event_line("a", StepStarted(step="x", action="FIND")).encode()
    events, problems = read_events([_line(duration_s="long"), b"\xff\n", b"[1]\n", started])
    assert [event.event for event in events["a"]] == ["step_started"]
    assert problems == [
        "Events that cannot be read are left out: 3 (run_finished, no JSON, no event)."
    ]


def test_a_last_line_that_was_cut_off_is_told() -> None:
    events, problems = read_events([_line(), _line()[:30]])
    assert events["a"] == (FINISHED,)
    assert problems == ["The last event was cut off: the run was killed, or is still going on."]


@given(st.lists(st.one_of(st.binary(max_size=40), st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["v", "id", "event", "step", "t_s"]), inner, max_size=5),
    max_leaves=8,
).map(lambda data: json.dumps(data).encode() + b"\n")), max_size=5))  # fmt: skip
def test_any_lines_are_read_or_told(lines: list[bytes]) -> None:
    events, problems = read_events(lines)
    n = sum(map(len, events.values()))
    assert n or problems or not any(line.strip() for line in lines)
