"""Replies that do not end: what is kept of them, and how it is told."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl.documents.document import Document
from pearl.errors import ExecutionError, ModelError, ModelErrorKind
from pearl.interpreter.answer import Answer
from pearl.interpreter.model_calls import kept_text
from pearl.interpreter.requests import PROMPT_MARGIN
from pearl.llm import Request, Usage
from pearl.llm.backends.scripted import Scripted
from pearl.pipeline import Pearl
from pearl.trace import CallFailed, StepFinished, Trace
from tests.models import MemoryReplies

DOCUMENT = Document("Ada sold the boat. The hull leaked. Nils has a dog.")
ONE = '1. why = FIND(CTX, "the sale") : Find why'
COUNTED = '1. all = LIST_ALL(CTX, "animals") : List them\n2. n = COUNT(all) : Count them'
TWO = '1. a = FIND(CTX, "one") : One\n2. b = FIND(CTX, "two") : Two\n3. c = CONCAT(a, b) : Both'


def cut(reply: str, kind: ModelErrorKind = "truncated") -> ModelError:
    return ModelError(f"{kind}!", kind=kind, reply=reply, usage=Usage(10, 5))


def model(*said: str | ModelError, window: int | None = None) -> Scripted:
    """One that says these in turn, the last one again and again."""
    left = list(said)

    def reply(request: Request) -> str:
        one = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(one, ModelError):
            raise one
        return one

    return Scripted(reply, window=window)


def run(plan: str, scripted: Scripted, trace: Trace | None = None, **settings: object) -> Answer:
    pearl = Pearl(scripted, library="seed", **settings)  # type: ignore[arg-type]
    return asyncio.run(pearl.execute(plan, DOCUMENT, trace=trace))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("He left. She st", "He left."),
        ("He left. She stayed.", "He left."),  # of "stayed.5 hours"?
        ("He left.\nShe st", "He left."),
        ("- a dog\n- a c", "- a dog"),
        ("Dr. Lee paid 3.5 million to Smith & Co. in", ""),
        ("“He left.” She", "“He left.”"),
        ("12", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_last_whole_line_or_sentence_is_the_end(text: str, kept: str) -> None:
    assert kept_text(text) == kept


@given(st.text())
def test_what_is_kept_is_the_beginning(text: str) -> None:
    kept = kept_text(text)
    assert text.startswith(kept)
    assert not kept or len(kept) < len(text)


def test_a_reply_that_is_cut_off_is_asked_for_once_more_with_more_room() -> None:
    scripted, trace = model(cut("It leak"), "It leaked."), Trace()
    answer = run(ONE, scripted, trace)
    assert (answer.text, answer.status, answer.why) == ("It leaked.", "answered", "")
    first, second = (request.max_output_tokens or 0 for request in scripted.requests)
    assert second == 2 * first
    (failed,) = (event for event in trace if isinstance(event, CallFailed))
    assert (failed.kind, failed.reply, failed.usage.n_tokens) == ("truncated", "It leak", 15)
    assert answer.usage.n_input_tokens >= 10, "what is cut off is paid for"


def test_of_one_that_is_cut_off_twice_the_beginning_is_kept_and_told() -> None:
    trace = Trace()
    answer = run(
        ONE, model(cut("It leaked. And th"), cut("It leaked. And then it sank. So")), trace
    )
    assert (answer.text, answer.status) == ("It leaked. And then it sank.", "degraded")
    assert answer.why == (
        "step 'why' (FIND): the reply was cut off at its limit; its beginning is kept"
    )
    assert answer.to_dict()["status"] == "degraded"
    assert answer.to_dict()["steps"][0]["truncated"]
    (finished,) = (event for event in trace if isinstance(event, StepFinished))
    assert finished.truncated


@pytest.mark.parametrize(
    ("plan", "said", "most", "status", "text", "why", "n_requests"),
    [
        # a limit that the user sets is not raised, and a loop is not asked for again
        (ONE, cut("It leaked. And"), 50, "degraded", "It leaked.", "cut off at its limit", 1),
        (ONE, cut("It leaked. " * 200, "repetition"), None, "degraded", "It leaked.", "repeated itself", 1),
        (ONE, cut("It leak"), None, "undecided", None, "at its limit; it has no whole sentence", 2),
        (COUNTED, cut('{"entries": [{"entry": "a dog"}, {"entry": "a cat"}, {"entry": "a ho'), None, "degraded", "2", "step 'all'", 2),
        (ONE, cut('{"answer": "It leaked. And'), 50, "degraded", "It leaked.", "cut off at its limit", 1),
    ],
)  # fmt: skip
def test_what_is_kept_is_degraded(
    plan: str, said: ModelError, most: int | None, status: str, text: str | None, why: str, n_requests: int
) -> None:  # fmt: skip
    scripted = model(said)
    answer = run(plan, scripted, max_output_tokens=most)
    assert answer.status == status
    assert text is None or answer.text == text
    assert why in answer.why
    assert len(scripted.requests) == n_requests


def test_more_room_is_room_of_the_window() -> None:
    scripted = model(cut("It leaked. And"), window=500)
    answer = run(ONE, scripted)
    assert (answer.status, answer.text) == ("degraded", "It leaked.")
    count = Pearl(scripted).limits.counter.count
    for request in scripted.requests:
        assert count(request.prompt) + (request.max_output_tokens or 0) <= 500 - PROMPT_MARGIN
    assert len(scripted.requests) == 2


def test_strict_fails_as_a_call_that_failed() -> None:
    with pytest.raises(ExecutionError, match=r"step 'why' .*truncated!"):
        run(ONE, model(cut("It leaked. And")), strict=True)


def test_nothing_cut_off_is_kept_as_a_reply() -> None:
    replies, scripted = MemoryReplies(), model(cut("It leaked. And"))
    for _ in range(2):
        run(ONE, scripted, replies=replies)
    assert len(scripted.requests) == 4


def test_where_a_step_fails_those_that_finished_are_with_the_error() -> None:
    def said(request: Request) -> str:
        if '"two"' in request.prompt or "two" in str(getattr(request.task, "arguments", "")):
            raise ModelError("no", kind="bad_request")
        return "One thing."

    with pytest.raises(ExecutionError) as caught:
        run(TWO, Scripted(said))
    assert [(each.output, each.text) for each in caught.value.finished] == [("a", "One thing.")]
