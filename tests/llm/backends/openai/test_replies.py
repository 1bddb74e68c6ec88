"""Whatever a body holds, reading it ends in a completion or in a `ModelError`."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pearl.errors import ModelError
from pearl.llm import Completion
from pearl.llm.backends.openai import servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.replies import read_completion
from tests.server import called, completion, response, said, tool_call

RESPONSES = servers.load("responses")

READERS = {
    "completion": (read_completion, completion("a reply")),
    "tool call": (servers.load("openai").read_grammar, tool_call("a reply")),
    "response's tool call": (RESPONSES.read_grammar, response(called("a reply"))),
    "response": (RESPONSES.read_json, response(said({"type": "output_text", "text": "a reply"}))),
}


def read_or_fail(body: bytes, reader: str = "completion") -> Completion | ModelError:
    try:
        return READERS[reader][0](body, Endpoint("http://localhost/v1", "m", ""))
    except ModelError as error:
        return error


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "finish_reason", "usage", "error",
                             "refusal", "model", "prompt_tokens", "prompt_tokens_details", "code",
                             "tool_calls", "custom", "input", "output", "type", "text", "status"]),
            inner,
        ),
        max_leaves=8,
    ),
    st.sampled_from(sorted(READERS)),
)  # fmt: skip
def test_every_shape_is_a_completion_or_a_model_error(data: object, reader: str) -> None:
    assert len(str(read_or_fail(json.dumps(data).encode(), reader)).splitlines()) <= 2


def test_a_key_that_a_server_repeats_is_in_no_reply() -> None:
    key = "sk-0123456789abcdef"
    endpoint = Endpoint("http://me:a-long-password-1@localhost/v1", "m", key)
    for reader, template in READERS.values():
        body = json.dumps(template).replace("a reply", f"It is {key}, a-long-password-1")
        body = body.replace("test-model-2026", f"m {key}")
        completion = reader(body.encode(), endpoint)
        assert completion.text == "It is ***, ***"
        assert completion.model == "m ***"


def test_a_key_that_is_a_word_leaves_replies_as_they_are() -> None:
    body = json.dumps(completion("EMPTY")).encode()
    assert read_completion(body, Endpoint("http://localhost/v1", "m", "EMPTY")).text == "EMPTY"
