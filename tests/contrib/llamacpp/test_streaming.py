"""Replies that come while they are written are read with the same checks as whole ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pearl.contrib.llamacpp.streaming import StreamingWire
from pearl.errors import ModelErrorKind
from pearl.llm import Usage
from pearl.llm.backends.openai import OpenAIModel
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.progress import MAX_TAIL, CallProgress, listening
from tests.llm.backends.asking import REQUEST, complete, failure
from tests.server import Canned, Server

END = "data: [DONE]\n\n"


@pytest.fixture(autouse=True)
def _runs() -> None:
    """These tests need no llama.cpp, only a server that streams."""


USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
COUNTED: dict[str, Any] = {"choices": [], "usage": USAGE}


def chunk(
    text: str | None = None, finish_reason: str | None = None, **delta: Any
) -> dict[str, Any]:
    return {
        "model": "test-model-2026",
        "choices": [{"delta": {"content": text, **delta}, "finish_reason": finish_reason}],
    }


def stream(*chunks: object, end: str = END, **how: Any) -> Canned:
    body = "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + end
    return Canned(body, content_type="text/event-stream", **how)


def model_of(server: Server, answer: Canned) -> OpenAIModel:
    server.next(answer)
    endpoint = Endpoint(server.url, "test-model", "")
    return OpenAIModel(endpoint, 10.0, 128_000, new_wire=StreamingWire)


def test_a_stream_is_read_as_the_whole_reply(openai_server: Server) -> None:
    seen: list[CallProgress] = []
    prompt = {**chunk(), "prompt_progress": {"total": 9, "processed": 5, "cache": 4}}
    answer = stream(
        prompt, chunk(reasoning_content="Hm."), chunk("Ada"), chunk(" did."), chunk(None, "stop"),
        COUNTED,
    )  # fmt: skip
    with listening(seen.append):
        found = complete(model_of(openai_server, answer), replace(REQUEST, max_output_tokens=99))
    assert (found.text, found.model) == ("Ada did.", "test-model-2026")
    assert found.usage == Usage(9, 3, 4)
    assert seen == [
        CallProgress("reading", 5, 9),
        CallProgress("writing", 1),  # what is hidden is no text
        CallProgress("writing", 2, text="Ada"),
        CallProgress("writing", 3, text="Ada did."),
    ]
    long = stream(chunk("a " * MAX_TAIL), chunk("end"), chunk(None, "stop"), COUNTED)
    with listening(seen.append):
        complete(model_of(openai_server, long))
    assert len(seen[-1].text) == MAX_TAIL
    assert seen[-1].text.endswith(" end")
    body = openai_server.requests[0].body
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 99


WRONG: dict[str, tuple[Canned, ModelErrorKind]] = {
    "no reason why it ends": (stream(chunk("Ada"), COUNTED), "transport"),
    "cut off at the limit": (stream(chunk("Ada"), chunk(None, "length"), COUNTED), "truncated"),
    "filtered": (stream(chunk("Ada"), chunk(None, "content_filter")), "filtered"),
    "blank": (stream(chunk(" \n"), chunk(None, "stop")), "empty"),
    "hidden words alone": (stream(chunk(reasoning_content="Hm."), chunk(None, "stop")), "empty"),
    "an error in its midst": (stream(chunk("Ada"), {"error": {"message": "out of memory"}}), "malformed"),
    "no JSON after the reply": (stream(chunk("Ada"), chunk(None, "stop"), end="data: {\n\n"), "transport"),
    "a text of another type": (stream(chunk(), {"choices": [{"delta": {"content": 5}}]}), "transport"),
    "a loop": (stream(*[chunk("and so on, ")] * 500), "repetition"),
    "a loop of hidden words": (stream(*[chunk(reasoning_content="and so on, ")] * 500), "repetition"),
    "refused": (Canned({"error": {"message": "no"}}, 400), "bad_request"),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "kind"), WRONG.values(), ids=WRONG)
def test_an_incomplete_stream_is_an_error(
    answer: Canned, kind: ModelErrorKind, openai_server: Server
) -> None:
    failure(model_of(openai_server, answer), kind)


def test_the_usage_of_a_repetitive_reply_is_counted_until_it_is_stopped(
    openai_server: Server,
) -> None:
    prompt = {**chunk(), "prompt_progress": {"total": 9, "processed": 9, "cache": 4}}
    answer = stream(prompt, *[chunk("and so on, ")] * 500)
    caught = failure(model_of(openai_server, answer), "repetition")
    assert caught.usage is not None
    assert (caught.usage.n_input_tokens, caught.usage.n_cached_tokens) == (9, 4)
    assert 90 < caught.usage.n_output_tokens < 200
    assert caught.reply.startswith("and so on, and so on")
