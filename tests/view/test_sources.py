"""Results of files that were cut off, are older, or are damaged."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pearl import Pearl
from pearl.documents.document import Document
from pearl.errors import DataError
from pearl.view.answer_page import result_page
from pearl.view.sources import ResultsFile, TraceFile, open_results

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
        assert "was cut off" in " ".join(record.problems)
        assert "The last event was cut off" in result_page(record)


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
    assert "What the answer rests on is not known" in page
    assert "Nothing of the document is quoted" not in page
    plan = '1. lines = SPLIT(CTX, "line") : Split\n2. n = COUNT(lines) : Count'
    counted = asyncio.run(Pearl().execute(plan, Document("one\ntwo\nthree")))
    path.write_text(counted.trace.to_jsonl())
    page = result_page(TraceFile(path).record(0))
    assert "3 rows behind the answer are not listed" in page
    assert "Nothing of the document is quoted" not in page


def test_a_trace_of_another_version_has_a_page_that_says_so(tmp_path: Path) -> None:
    path = _trace(tmp_path / "older.jsonl")
    rows = [{**json.loads(line), "v": 0, "mood": "<b>"} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = open_results(path)
    assert isinstance(source, TraceFile)
    page = result_page(source.record(0))
    assert "is of version 0" in page
    assert "mood" in page
    assert "Why did Ada sell the boat?" in page


def test_results_are_joined_with_traces_that_were_cut_off(tmp_path: Path) -> None:
    traces = _trace(tmp_path / "t.jsonl")
    traces.write_bytes(traces.read_bytes()[:-20])
    results = tmp_path / "r.jsonl"
    results.write_text('{"id": "a", "status": "answered"}\n{"id": "b", "status": "failed"}\n')
    source = ResultsFile(results, traces)
    (first, _), (second, _) = source.rows()
    assert source.record(first).events
    assert "was cut off" in " ".join(source.record(first).problems)
    assert source.record(second).problems == ("There is no trace of it.",)


@pytest.mark.parametrize("key", [3, 10**6, 10**18])
def test_a_row_that_is_not_there_is_told(tmp_path: Path, key: int) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "status": "answered"}\n')
    with pytest.raises(DataError, match="no longer there"):
        ResultsFile(tmp_path / "rows.jsonl").record(key)
