"""Trace files and their events, results files, documents of results."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.errors import DataError
from pearl.llm import Usage
from pearl.trace import RunFinished, RunStarted, StepStarted, event_line
from pearl.view.answer_page import result_page
from pearl.view.sources import ResultRecord, ResultsFile, TraceFile, read_events, with_document

FINISHED = RunFinished(status="answered", answer="Ada", usage=Usage(), duration_s=1)


def _line(**changes: object) -> bytes:
    return json.dumps({**json.loads(event_line("a", FINISHED)), **changes}).encode() + b"\n"


def test_another_version_is_told_and_shown() -> None:
    events, problems = read_events([_line(v=0, colour="red")])
    assert events["a"] == (FINISHED,)
    assert problems == [
        "The trace is of version 0, this program's is 1; the page shows what it understands."
    ]


def test_an_event_of_a_wrong_type_is_left_out_and_the_others_stay() -> None:
    started = event_line("a", StepStarted(step="x", action="FIND")).encode()
    events, problems = read_events([_line(duration_s="long"), b"\xff\n", b"[1]\n", started])
    assert [event.event for event in events["a"]] == ["step_started"]
    assert problems == ["Unreadable events are left out: 3."]


def test_a_last_line_that_was_cut_off_is_told() -> None:
    events, problems = read_events([_line(), _line()[:30]])
    assert events["a"] == (FINISHED,)
    assert problems == ["The last event is incomplete: the run was killed, or is still running."]


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


TEXT = "Ada sold the boat because it leaked."


def _trace(path: Path) -> Path:
    answer = asyncio.run(Pearl().ask("Why did Ada sell the boat?", Document(TEXT)))
    answer.trace.id = "a"
    path.write_text(answer.trace.to_jsonl())
    return path


def test_a_trace_that_was_cut_off_anywhere_has_a_page_that_says_so(tmp_path: Path) -> None:
    whole = _trace(tmp_path / "whole.jsonl").read_bytes()
    cut = tmp_path / "cut.jsonl"
    for share in (0.3, 0.6, 0.95):
        cut.write_bytes(whole[: int(len(whole) * share)])
        source = TraceFile(cut)
        record = source.record(0)
        assert record.row["status"] == "unfinished"
        assert "is incomplete" in " ".join(record.problems)
        assert "The last event is incomplete" in result_page(record)


def test_a_trace_says_what_the_answer_rests_on_and_an_older_one_that_it_is_not_known(
    tmp_path: Path,
) -> None:
    path = _trace(tmp_path / "trace.jsonl")
    page = result_page(TraceFile(path).record(0))
    assert f"{TEXT} <span" in page.replace("\n", " ")
    assert "characters 0-36" in page
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row.pop("evidence", None)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = result_page(TraceFile(path).record(0))
    assert "The evidence is not known" in page
    assert "The answer quotes nothing" not in page
    plan = '1. lines = SPLIT(CTX, "line") : Split\n2. n = COUNT(lines) : Count'
    counted = asyncio.run(Pearl().execute(plan, Document("one\ntwo\nthree")))
    path.write_text(counted.trace.to_jsonl())
    page = result_page(TraceFile(path).record(0))
    assert "3 rows behind the answer are not listed" in page
    assert "The answer quotes nothing" not in page


def test_results_are_joined_with_traces_that_were_cut_off(tmp_path: Path) -> None:
    traces = _trace(tmp_path / "t.jsonl")
    traces.write_bytes(traces.read_bytes()[:-20])
    results = tmp_path / "r.jsonl"
    results.write_text('{"id": "a", "status": "answered"}\n{"id": "b", "status": "failed"}\n')
    source = ResultsFile(results, traces)
    (first, _), (second, _) = source.rows()
    assert source.record(first).events
    assert "is incomplete" in " ".join(source.record(first).problems)
    assert source.record(second).problems == ("The result has no trace.",)


def test_lines_that_are_no_rows_are_told_however_often_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": "a"}\n[1]\n\n{"id": "b"}\n')
    source = ResultsFile(path)
    for _ in range(2):
        assert [row["id"] for _, row in source.rows()] == ["a", "b"]
        assert source.problems == ["Line 2 is not a row of results and is left out."]


@pytest.mark.parametrize("key", [3, 10**6, 10**18])
def test_a_row_that_is_not_there_is_told(tmp_path: Path, key: int) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "status": "answered"}\n')
    with pytest.raises(DataError, match="the row is gone"):
        ResultsFile(tmp_path / "rows.jsonl").record(key)


STORY = "Nils sold the boat."


def record(name: object, text: str | None = None) -> ResultRecord:
    started = () if text is None else (RunStarted(
        question="Why?", plan="", method="plan", document=str(name), model="m", window=None,
        document_sha256=Document(text).digest, n_characters=len(text), n_document_tokens=None,
        token_count="estimate",
    ),)  # fmt: skip
    return ResultRecord("a", {"document": name}, started)


@pytest.mark.parametrize("name", ["story.txt", "deep/story.txt", "/elsewhere/of/them/story.txt"])
def test_it_is_found_by_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "deep").mkdir()
    for path in ("story.txt", "deep/story.txt"):
        (tmp_path / path).write_text(STORY)
    found = with_document(record(name, STORY), [tmp_path]).document
    assert found is not None
    assert (found.text, found.name) == (STORY, name)


def test_the_files_of_a_folder_are_found_and_have_their_marks(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    for name, text in (("a.txt", "Ada bought the boat."), ("b.txt", STORY)):
        (tmp_path / "reports" / name).write_text(text)
    quote = {"text": STORY, "start": 0, "end": len(STORY), "source": "b.txt"}
    row = {"document": "reports/", "status": "answered", "answer": "Nils", "evidence": [quote]}
    found = with_document(ResultRecord("a", row), [tmp_path])
    assert found.document is not None
    assert [name for name, _ in found.document.parts] == ["a.txt", "b.txt"]
    assert f'<mark id="d1" class="lit">{STORY}' in result_page(found)


def test_nothing_outside_of_the_folders_is_read(tmp_path: Path) -> None:
    inside = tmp_path / "results"
    inside.mkdir()
    (tmp_path / "secret.txt").write_text(STORY)
    (inside / "link.txt").symlink_to(tmp_path / "secret.txt")
    for name in ("../secret.txt", str(tmp_path / "secret.txt"), "link.txt", ".", "", 3, None, "\0"):
        assert with_document(record(name), [inside]).document is None, name


def test_the_one_that_was_read_is_preferred_and_another_is_better_than_none(tmp_path: Path) -> None:
    now, then = tmp_path / "now", tmp_path / "then"
    for folder, text in ((now, "changed"), (then, STORY)):
        folder.mkdir()
        (folder / "story.txt").write_text(text)
    both = with_document(record("story.txt", STORY), [now, then]).document
    one = with_document(record("story.txt", STORY), [now]).document
    assert both is not None
    assert both.text == STORY
    assert one is not None
    assert one.text == "changed"


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text("  ")
    found = with_document(record("story.txt"), [tmp_path])
    assert found.document is None
    assert "The document cannot be read" in found.problems[0]
