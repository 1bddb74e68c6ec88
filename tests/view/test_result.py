"""What is read of a record: everything that fits, and what does not is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.errors import Span
from pearl.llm import Usage
from pearl.trace import OptionChosen, StepFailed, StepStarted
from pearl.view.answer_page import result_page
from pearl.view.result import read_result
from pearl.view.sources import ResultRecord, record_of_answer

STORY = Document("Nils sold the boat because the hull was rotten. Ada bought it.", "story.txt")

FIELDS = (
    "id", "status", "question", "answer", "error", "method", "model", "document", "plan",
    "evidence", "unverified_quotes", "notes", "steps", "coverage", "usage", "duration_s",
    "match", "text", "start", "end", "source", "omitted", "cells", "column", "row", "state", "value",
    "output", "action", "calls", "input_tokens", "output_tokens", "cached_tokens", "message", "type", "help",
    "markdown", "parts", "entries", "label", "fields",
)  # fmt: skip

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["row", "elided", "answered", "1. a = IDENTIFY(CTX, \"x\")", "a"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=12))
def test_any_row_has_a_page(row: dict[str, Any]) -> None:
    page = result_page(ResultRecord("a", row, document=STORY))
    assert page.endswith("</html>\n") or "</html>" in page
    assert page.count("<script") == 1


@pytest.mark.parametrize(
    ("choice", "said"),
    [(None, "none"), (0, "A"), (25, "Z"), (26, "27"), (-1, "0"), (10**9, "1000000001")],
)
def test_any_option_has_a_page(choice: int | None, said: str) -> None:
    chosen = OptionChosen(by="document", reply="B", choice=choice, usage=Usage(), duration_s=1.0)
    page = result_page(ResultRecord("x", {"status": "answered"}, (chosen,)))
    assert f"Option {said} chosen by the document: B" in page


def test_a_row_says_the_same_as_its_answer() -> None:
    answer = asyncio.run(Pearl().ask("Why did Nils sell the boat?", STORY))
    record = record_of_answer(answer, STORY)
    kept = ResultRecord("", json.loads(json.dumps(record.row)), record.events)
    result = read_result(kept, max_rows=10)
    assert (result.row.answer, result.status, result.plan) == (
        answer.text,
        answer.status,
        answer.plan,
    )
    assert [place.data.span for place in result.places] == [each.span for each in answer.evidence]
    assert [place.where for place in result.places] == [each.where for each in answer.evidence]
    assert [step.value for step in result.steps] == [step.text for step in answer.steps]
    assert [len(step.calls) for step in result.steps] == [step.n_calls for step in answer.steps]
    assert [step.data.calls for step in result.steps] == [step.n_calls for step in answer.steps]
    assert read_result(ResultRecord("", {"steps": [{}]}), max_rows=1).steps[0].data.calls == 0
    assert result.steps[0].calls[0].prompt.startswith("[system]")
    assert STORY.text not in result.steps[0].calls[0].prompt
    assert result.problems == ()


def test_what_a_quote_leaves_out_is_marked_and_rows_beyond_the_most_are_counted() -> None:
    passage = {
        "match": "elided", "text": "He did not sell", "start": 10, "end": 25, "source": "a.txt",
        "steps": ["x"], "omitted": [{"text": "not ", "start": 17, "end": 21}],
    }  # fmt: skip
    rows = [
        {"match": "row", "text": f"r{i}", "start": i, "end": i + 2, "source": "a.txt", "steps": ["n"],
         "state": "undecided" if i else "found"}
        for i in range(3)
    ]  # fmt: skip
    row = {"status": "answered", "evidence": [passage, *rows]}
    result = read_result(ResultRecord("a", row), max_rows=2)
    assert result.places[0].marked == "He did [left out: not ]sell"
    assert result.places[0].note == "elided"
    assert [place.note for place in result.places[1:]] == ["", "undecided"]
    assert [place.is_row for place in result.places] == [False, True, True]
    assert result.rows_left == 1
    assert result.places[1].data.span == Span(0, 2)


def test_steps_that_the_trace_alone_knows_are_shown_with_what_became_of_them() -> None:
    events = (
        StepStarted(step="a", action="IDENTIFY"),
        StepFailed(step="a", error="no server"),
        StepStarted(step="b", action="FIND"),
    )
    result = read_result(ResultRecord("x", {"status": "failed"}, events), max_rows=1)
    assert [(s.data.output, s.state, s.error) for s in result.steps] == [
        ("a", "failed", "no server"),
        ("b", "not finished", ""),
    ]


@pytest.mark.parametrize(
    ("status", "why"),
    [("undecided", True), ("degraded", True), ("refused", True), ("answered", False)],
)
def test_a_result_that_is_no_answer_says_why_by_its_first_step_with_a_reason(
    status: str, why: bool
) -> None:
    step = {"output": "a", "action": "FIND", "why": "the reply breaks off"}
    result = read_result(ResultRecord("x", {"status": status, "steps": [step]}), max_rows=1)
    assert result.why == ("step 'a' (FIND): the reply breaks off" if why else "")


def test_evidence_that_cannot_be_read_leaves_the_numbers_and_an_empty_cell_is_undecided() -> None:
    rows = [7, {"text": "He sold it", "page": 3, "source": "a.pdf"}, {"match": "row", "text": "x", "fields": {"kind": None}}]  # fmt: skip
    result = read_result(ResultRecord("a", {"status": "answered", "evidence": rows}), max_rows=2)
    assert [(p.number, p.where, p.note) for p in result.places] == [
        (2, "a.pdf, page 3", ""), (3, "", "undecided"),
    ]  # fmt: skip
