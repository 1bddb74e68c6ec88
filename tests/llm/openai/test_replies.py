"""Whatever a body holds, reading it ends in a completion or in a `ModelError`."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pearl.errors import ModelError
from pearl.llm import Completion
from pearl.llm.openai.endpoint import Endpoint
from pearl.llm.openai.replies import read_completion
from tests.server import completion


def read_or_fail(body: bytes) -> Completion | ModelError:
    try:
        return read_completion(body, Endpoint("http://localhost/v1", "m", ""))
    except ModelError as error:
        return error


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_body_is_a_completion_or_a_model_error(data: st.DataObject) -> None:
    body = json.dumps(completion("a reply")).encode()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(body))] * 2)))
    body = body[:start] + data.draw(st.binary(max_size=8)) + body[end:]
    read = read_or_fail(body)
    if isinstance(read, ModelError):
        assert read.kind in ("malformed", "empty", "truncated", "filtered", "refused")
    else:
        assert read.text.strip()
        assert read.text.encode()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "finish_reason", "usage", "error",
                             "refusal", "model", "prompt_tokens", "prompt_tokens_details", "code"]),
            inner,
        ),
        max_leaves=8,
    )
)  # fmt: skip
def test_every_shape_is_a_completion_or_a_model_error(data: object) -> None:
    assert len(str(read_or_fail(json.dumps(data).encode())).splitlines()) <= 2
