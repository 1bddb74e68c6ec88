"""What stands in the replies of other kinds: the Responses API, custom tools, and lines of batches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pearl.errors import ModelError
from pearl.llm import Completion, Message, Request, Usage
from pearl.llm.backends.openai import OpenAIModel, servers
from pearl.llm.backends.openai.batches import Batches
from pearl.llm.backends.openai.endpoint import Endpoint
from tests.llm.backends.openai.wire_cases import (
    BROKEN,
    CASES,
    EMPTY,
    WRONG,
    Case,
    Fails,
    Outcome,
    Says,
    fails,
)
from tests.models import answer_task
from tests.server import called, completion, error, response, said, tool_call

ENDPOINT = Endpoint("http://localhost/v1", "m", "")
OK = {"type": "output_text", "text": "ok"}


def matches(found: Completion | ModelError, outcome: Outcome) -> bool:
    if isinstance(outcome, Fails):
        return isinstance(found, ModelError) and found.kind in outcome.kinds
    is_it = isinstance(found, Completion) and found.text == outcome.text
    return is_it and outcome.usage in (None, found.usage)


def read(kind: str, form: Any, body: Mapping[str, Any]) -> Completion | ModelError:
    try:
        return servers.load(kind).read(json.dumps(body).encode(), ENDPOINT, form)
    except ModelError as failure:
        return failure


def incomplete(reason: Any) -> dict[str, Any]:
    return response(said(OK), status="incomplete", incomplete_details={"reason": reason})


RESPONSES: dict[str, tuple[dict[str, Any], Outcome]] = {
    "completed": (response(said(OK)), Says(usage=Usage(100, 7, 64))),
    "no status": (response(said(OK), status=None), Says()),
    "two parts": (response(said({**OK, "text": "o"}, {**OK, "text": "k"})), Says()),
    "max_output_tokens": (incomplete("max_output_tokens"), fails("truncated")),
    "MAX_TOKENS": (incomplete("MAX_TOKENS"), fails("truncated")),
    "content_filter": (incomplete("content_filter"), fails("filtered")),
    "SAFETY": (incomplete("SAFETY"), fails("filtered")),
    "incomplete, and why is unknown": (incomplete("banana"), BROKEN),
    "incomplete, and why is not said": (incomplete(None), fails("truncated")),
    "incomplete, by a stop": (incomplete("stop"), fails("truncated")),
    "failed": (response(said(OK), status="failed"), BROKEN),
    "cancelled": (response(said(OK), status="cancelled"), BROKEN),
    "queued": (response(said(OK), status="queued"), BROKEN),
    "in_progress": (response(said(OK), status="in_progress"), BROKEN),
    "blank status": (response(said(OK), status=""), BROKEN),
    "status 5": (response(said(OK), status=5), WRONG),
    "part incomplete": (response({**said(OK), "status": "incomplete"}), BROKEN),
    "part in_progress": (response({**said(OK), "status": "in_progress"}), BROKEN),
    "error": (response(error={"code": 502, "message": "x"}), BROKEN),
    "error and text": (response(said(OK), error={"code": "server_error"}), WRONG),
    "refusal": (response(said({"type": "refusal", "refusal": "no"})), fails("refused")),
    "invisible": (response(said({**OK, "text": "\u200b\ufeff"})), EMPTY),
    "nothing": (response(), EMPTY),
    "output null": (response(output=None), WRONG),
    "text 5": (response(said({**OK, "text": 5})), WRONG),
    "usage below 0": (
        response(said(OK), usage={"input_tokens": -1, "output_tokens": 7}),
        Says(usage=Usage(0, 7, 0, 1)),
    ),
    "usage is a text": (response(said(OK), usage="many"), Says(usage=Usage(0, 0, 0, 1))),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response(name: str) -> None:
    body, outcome = RESPONSES[name]
    found = read("responses", "json-schema", body)
    assert matches(found, outcome), found


def ended(reason: Any, text: str = "ok") -> dict[str, Any]:
    reply = tool_call(text)
    reply["choices"][0]["finish_reason"] = reason
    return reply


TOOLS: dict[str, tuple[str, dict[str, Any], Outcome]] = {
    "stop": ("openai", ended("stop"), Says()),
    "tool_calls": ("openai", ended("tool_calls"), Says()),
    "function_call": ("openai", ended("function_call"), Says()),
    "tool_use": ("openai", ended("tool_use"), Says()),
    "no reason": ("openai", ended(None), Says()),
    "length": ("openai", ended("length"), fails("truncated")),
    "model_length": ("openai", ended("model_length"), fails("truncated")),
    "SAFETY": ("openai", ended("SAFETY"), fails("filtered")),
    "error": ("openai", ended("error"), BROKEN),
    "blank reason": ("openai", ended(""), BROKEN),
    "unknown reason": ("openai", ended("banana"), BROKEN),
    "invisible": ("openai", ended("tool_calls", "\u2800"), EMPTY),
    "words": ("openai", completion("Hello!"), fails("unconstrained")),
    "cut words": ("openai", completion("Hel", finish_reason="length"), fails("truncated")),
    "no list": ("openai", completion(None, tool_calls=5), WRONG),
    "response": ("responses", response(called("ok")), Says()),
    "part incomplete": ("responses", response({**called("ok"), "status": "incomplete"}), BROKEN),
    "words in a response": ("responses", response(said(OK)), fails("unconstrained")),
    "blank response": ("responses", response(called(" ")), EMPTY),
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_call_of_a_tool(name: str) -> None:
    kind, body, outcome = TOOLS[name]
    found = read(kind, "lark", body)
    assert matches(found, outcome), found


def batches() -> Batches:
    """Only for reading."""
    return OpenAIModel(ENDPOINT, 1.0, None).batches()


KEY = bytes(32)
REQUEST = Request((Message("user", "Who?"),), answer_task("Who?", ""), max_output_tokens=50)


def line(row: Mapping[str, Any]) -> Completion | ModelError:
    data = json.dumps({"custom_id": KEY.hex(), **row}).encode()
    (found,) = dict(batches()._read(data, {KEY: REQUEST})).values()
    return found


def answered(body: Any, status: Any = 200) -> dict[str, Any]:
    return {"error": None, "response": {"status_code": status, "body": body}}


LINES: dict[str, tuple[dict[str, Any], Outcome]] = {
    "ok": (answered(completion("ok")), Says()),
    "400": (answered(error("no"), 400), fails("bad_request")),
    "429": (answered(error("no"), 429), fails("rate_limited")),
    "500": (answered(error("no"), 500), BROKEN),
    "200 and no reply": (answered(None), WRONG),
    "status null": (answered(completion("ok"), None), WRONG),
    "status true": (answered(completion("ok"), True), WRONG),
    "status '200'": (answered(completion("ok"), "200"), Says()),
    "no response": ({"error": None, "response": None}, WRONG),
    "error beside": (
        {**answered(completion("ok")), "error": {"code": 503, "message": "x"}},
        BROKEN,
    ),
    "expired": (
        {"error": {"code": "batch_expired"}, "response": None},
        fails("deadline"),
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_of_a_batch(name: str) -> None:
    row, outcome = LINES[name]
    found = line(row)
    assert matches(found, outcome), found


IN_LINES = [
    case
    for case in CASES
    if case.id.startswith(("ends", "choice", "content", "invisible", "visible", "details"))
]


@pytest.mark.parametrize("case", IN_LINES, ids=lambda case: case.id)
def test_a_line_is_read_as_a_direct_reply_is(case: Case) -> None:
    (sent,) = case.sent
    found = line(answered(sent.body))
    assert matches(found, case.outcome), found


@pytest.mark.parametrize(
    ("reason", "n_tokens", "outcome"),
    [(None, 49, Says()), (None, 50, fails("truncated")), ("stop", 50, Says())],
)
def test_a_reply_of_which_nobody_says_why_it_ends_may_not_be_as_long_as_it_may(
    reason: str | None, n_tokens: int, outcome: Outcome
) -> None:
    body = completion("ok", finish_reason=reason)
    body["usage"] = {"prompt_tokens": 9, "completion_tokens": n_tokens}
    found = line(answered(body))
    assert matches(found, outcome), found
