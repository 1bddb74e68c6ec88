"""Traces: files, pickling, events of a search."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest

from pearl import Pearl, Trace, read_trace
from pearl.actions.values import Fetched, FetchedPassage
from pearl.documents.document import from_text
from pearl.errors import DataError, Span
from pearl.errors.escaping import json_bytes
from pearl.llm import ChooseTask, Message, Request
from pearl.llm.progress import CallAttempt
from pearl.trace import (
    MAX_PASSAGES,
    SCHEMA_VERSION,
    Event,
    ModelAttempted,
    RunFinished,
    RunStarted,
    StepFailed,
    retrieved,
)


def test_traces_are_written_and_read_back(tmp_path: Path) -> None:
    trace = Trace("q1")
    document = from_text("Mara stayed because she had lost the ticket.", "ferry.txt")
    asyncio.run(Pearl(window=4_000).ask("Why did Mara stay?", document, trace=trace))
    path = tmp_path / "trace.jsonl"
    path.write_text(trace.to_jsonl(), encoding="utf-8")
    (again,) = read_trace(path)
    assert list(again) == list(trace)
    started = next(event for event in again if isinstance(event, RunStarted))
    assert started.window == 4_000
    assert started.token_count
    finished = list(again)[-1]
    assert isinstance(finished, RunFinished)
    assert finished.status == "answered"
    path.write_text('{"v": 1, "id": "", "event": "nonsense"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"trace\.jsonl:1: not an event"):
        read_trace(path)


def test_incomplete_last_line_is_left_out_with_a_warning(tmp_path: Path) -> None:
    trace = Trace("q1")
    for step in "ab":
        trace.append(StepFailed(step=step, error="it brøke"))
    path, whole = tmp_path / "trace.jsonl", trace.to_jsonl().encode()
    first = whole.index(b"\n") + 1
    for end in range(first + 1, len(whole) - 1):  # in the middle of a character, too
        path.write_bytes(whole[:end])
        with pytest.warns(UserWarning, match=r"trace\.jsonl:2: the last event was cut off"):
            (again,) = read_trace(path)
        assert list(again) == list(trace)[:1]
    path.write_bytes(whole[:-1])  # of the line only its end is missing
    (again,) = read_trace(path)
    assert list(again) == list(trace)
    path.write_bytes(whole[:first] + whole[first + 9 :])  # half a line that is whole
    with pytest.raises(DataError, match=r"trace\.jsonl:2: not an event"):
        read_trace(path)


def test_a_trace_of_another_version_is_refused(tmp_path: Path) -> None:
    trace = Trace("q1")
    trace.append(StepFailed(step="a", error="it broke"))
    path = tmp_path / "trace.jsonl"
    path.write_text(trace.to_jsonl().replace(f'"v":{SCHEMA_VERSION}', '"v":99'), encoding="utf-8")
    with pytest.raises(
        DataError, match=r"trace\.jsonl:1: trace version 99; this pearl reads version 1"
    ):
        read_trace(path)


def test_pickled_trace_keeps_times_without_listener() -> None:
    heard = []
    trace = Trace("q1", heard.append)
    trace.append(StepFailed(step="a", error="it broke"))
    other = pickle.loads(pickle.dumps(trace))
    assert (other.id, list(other)) == ("q1", list(trace))
    other.append(StepFailed(step="b", error="it broke"))
    assert len(heard) == 1


def test_event_of_a_search_has_the_best_passages() -> None:
    hits = tuple(
        FetchedPassage("text", Span(i, i + 4), "a.txt", i + 1, 1.0 / (i + 1)) for i in range(50)
    )
    event = retrieved("found", Fetched(("boat",), "bm25", 50, hits, ("a note",)))
    assert (event.n_hits, len(event.passages)) == (50, MAX_PASSAGES)
    assert [passage.rank for passage in event.passages] == list(range(1, MAX_PASSAGES + 1))
    assert "text" not in json_bytes(event).decode().replace("a.txt", "")
    assert event.notes == ("a note",)


def test_unicode_separators_do_not_end_a_line() -> None:
    trace = Trace("a")
    trace.append(StepFailed(step="s", error="one\u2028two\x85three\x0cfour"))
    assert list(Trace.from_jsonl("a", trace.to_jsonl())) == list(trace)
    assert list(pickle.loads(pickle.dumps(trace))) == list(trace)


@pytest.mark.parametrize(
    ("identity", "server"),
    [("m@http://host/v1?0123", "http://host/v1"), ("m@http://host/v1", "http://host/v1"), ("m@file", "")],
)  # fmt: skip
def test_an_attempt_names_the_address_of_its_server(identity: str, server: str) -> None:
    told: list[Event] = []
    request = Request((Message("user", "why?"),), ChooseTask("why?", ("a", "b")))
    Trace(told.append).progressed(request.task, CallAttempt("m", identity, request, 0, 1.0))
    (attempted,) = told
    assert isinstance(attempted, ModelAttempted)
    assert attempted.server == server
