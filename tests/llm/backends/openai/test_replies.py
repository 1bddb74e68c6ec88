"""Bodies of replies: chat completions, tool calls, as servers send them.

Each case is a body, and the exact text that it is read as or the kind of its error.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pearl.errors import ModelError, ModelErrorKind
from pearl.llm import Completion, Message, Request, Usage
from pearl.llm.backends.openai.chat import read_completion, within
from pearl.llm.backends.openai.endpoint import Endpoint
from tests.models import answer_task
from tests.server import completion

ENDPOINT = Endpoint("http://localhost/v1", "m", "")
REQUEST = Request((Message("user", "Who?"),), answer_task("Who?", ""), max_output_tokens=50)
Outcome = str | Usage | ModelErrorKind
"""The text of a reply as `=text`, its usage, or the kind of the error."""

Case = tuple[str, Any, Outcome]


def read(body: bytes, endpoint: Endpoint = ENDPOINT) -> Completion | ModelError:
    try:
        return within(read_completion(body, endpoint), REQUEST, endpoint)
    except ModelError as failure:
        return failure


def is_of(found: Completion | ModelError, outcome: Outcome) -> bool:
    if isinstance(found, ModelError):
        return found.kind == outcome
    return outcome in (f"={found.text}", found.usage)


def chat(choice: Mapping[str, Any] = {}, **reply: Any) -> dict[str, Any]:
    """A whole reply of `ok` with other fields in its choice, or in itself."""
    whole = completion("ok")
    return {**whole, "choices": [{**whole["choices"][0], **choice}], **reply}


def message(**fields: Any) -> dict[str, Any]:
    return chat({"message": {"role": "assistant", "content": "ok", **fields}})


def endings() -> Iterator[Case]:
    reasons: dict[Outcome, tuple[Any, ...]] = {
        "=ok": (
            "stop", "STOP", " stop ", "end_turn", "eos", "eos_token", "stop_sequence", "COMPLETE",
            "completed", "endoftext", "FINISH", "finished", "normal", "REASON_STOP", None,
        ),
        "truncated": (
            "length", "LENGTH", "max_tokens", "max-tokens", "max_output_tokens", "token_limit",
            "max_completion_tokens", "model_length", "max_length", "REASON_MAX_LEN",
            "model_context_window_exceeded", "context_length_exceeded", "FINISH_REASON_MAX_TOKENS",
        ),
        "filtered": (
            "content_filter", "content_filtered", "SAFETY", "RECITATION", "BLOCKLIST", "SPII",
            "PROHIBITED_CONTENT", "IMAGE_SAFETY", "guardrail_intervened", "ERROR_TOXIC", "sensitive",
        ),
        "refused": ("refusal",),
        "repetition": ("repetition",),
        "transport": (
            "error", "abort", "insufficient_system_resource", "timeout", "MALFORMED_FUNCTION_CALL",
            "tool_calls", "function_call", "banana", "null", "not_finished", "stop?", "", " ", "stop\0",
        ),
        "malformed": (5, True, ["stop"]),
    }  # fmt: skip
    for outcome, sent in reasons.items():
        for reason in sent:
            yield f"ends {reason!r}", chat({"finish_reason": reason}), outcome
    for native, outcome in (
        ("length", "truncated"), ("SAFETY", "filtered"), ("refusal", "refused"), ("stop", "=ok"), ("banana", "=ok"), (5, "=ok"),
    ):  # fmt: skip
        yield f"ended {native!r} behind a gateway", chat({"native_finish_reason": native}), outcome
    yield "no reason at all", {"choices": [{"message": {"content": "ok"}}]}, "=ok"
    for reason, n, outcome in ((None, 49, "=ok"), (None, 50, "truncated"), ("stop", 50, "=ok")):
        used = {"prompt_tokens": 9, "completion_tokens": n}
        yield f"{n} of 50 tokens and {reason}", chat({"finish_reason": reason}, usage=used), outcome


def reported() -> Iterator[Case]:
    errors: list[tuple[Any, Outcome]] = [
        ({"code": 502, "message": "upstream"}, "transport"),
        ({"code": 429, "message": "slow down"}, "rate_limited"),
        ({"code": 401, "message": "who?"}, "auth"),
        ({"code": "insufficient_quota", "message": "pay"}, "quota"),
        ({"code": "content_filter", "message": "no"}, "filtered"),
        ({"code": 5_000, "message": "?"}, "malformed"),
        ({"code": True, "message": None}, "malformed"),
        ("upstream", "malformed"), (["upstream"], "malformed"), ({}, "=ok"), (None, "=ok"), ("", "=ok"),
    ]  # fmt: skip
    for sent, outcome in errors:
        yield f"error of the choice {sent}", chat({"error": sent}), outcome
        yield f"error of the reply {sent}", chat(error=sent), outcome
    yield "choice is an error", {"choices": [{"error": {"code": 502}}]}, "transport"


INVISIBLE = (
    "\u200b", "\u2800", "\u200c\u200d\u2060", "\u00ad", "\u3164", "\0\1\x1b", "\u3000\u00a0", "\u2028",
    "\u180e", "\ufe0f", "\u034f", "\u061c", "\u202e", "\U000e0020", "\ufff9", "\x7f", "", "\n\n\u200b\n",
)  # fmt: skip


def contents() -> Iterator[Case]:
    for text in INVISIBLE:
        yield f"invisible {text!a}", message(content=text), "empty"
    for text in ("\u200bok", "-", "0", "\U0001f44d", "ok\0", "\ufffd", "false", "\u0301a"):
        yield f"visible {text!a}", message(content=text), f"={text}"
    yield "lone surrogate", message(content="a\ud800"), "=a\ufffd"
    for content in (5, True, {}):
        yield f"content {content}", message(content=content), "malformed"
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    for blocks, outcome in (
        ([{"type": "text", "text": "ok"}], "=ok"),
        ([thinking, {"type": "text", "text": "o"}, {"type": "output_text", "text": "k"}], "=ok"),
        (["o", "k"], "=ok"),
        ([{"type": "image", "text": "no"}, {"type": "text", "text": "ok"}], "=ok"),
        ([thinking], "empty"),
        ([], "empty"),
        ([None, 5, {"type": "text", "text": None}], "empty"),
    ):
        yield f"blocks {blocks}", message(content=blocks), outcome
    yield "only thoughts", message(content=None, reasoning_content="hm"), "empty"
    yield "refusal and text", message(refusal="no"), "refused"
    yield "blank refusal", message(refusal=""), "=ok"
    yield "refusal 5", message(refusal=5), "malformed"
    yield "nonsense beside", message(tool_calls=5, audio=[], role=7), "=ok"
    for sent in (None, [], "ok"):
        yield f"message {sent}", chat({"message": sent}), "malformed"
    for choices in (None, {}, "ok", [None], [{}], [{"delta": {"content": "ok"}}], [{"text": "ok"}]):
        yield f"choices {choices}", chat(choices=choices), "malformed"
    yield "no choices", chat(choices=[]), "empty"
    two = [{"message": {"content": text}, "finish_reason": "stop"} for text in ("one", "two")]
    yield "first choice counts", chat(choices=two), "=one"
    yield "model 5", chat(model=5), "malformed"
    yield "no model", chat(model=None), "=ok"


def test_reasoning_is_read_from_blocks_and_from_fields() -> None:
    blocks = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "ok"},
    ]
    for fields, reasoning in (
        ({"content": blocks}, "hm"),
        ({"content": blocks, "reasoning": "why"}, "why"),
        ({"content": "ok", "reasoning_content": "why"}, "why"),
        ({"content": "ok", "reasoning": 5}, ""),
        ({"content": "ok"}, ""),
    ):
        found = read(json.dumps(message(**fields)).encode())
        assert isinstance(found, Completion)
        assert (found.text, found.reasoning) == ("ok", reasoning)


def usages() -> Iterator[Case]:
    """A reply is paid and kept, whatever its usage is."""
    strange = Usage(n_implausible_calls=1)
    for sent, usage in (
        (None, Usage()), ({}, Usage()), ([], strange), ("many", strange), (True, strange),
        ({"prompt_tokens": 20.0, "completion_tokens": None}, Usage(20)),
    ):  # fmt: skip
        yield f"usage {sent}", chat(usage=sent), usage
    for value in (-1, True, "100", 2**70, 10**9, 12.5, float("nan"), float("inf"), [5], 300_000):
        used = {"prompt_tokens": value, "completion_tokens": 3}
        yield f"prompt_tokens {value!r}", chat(usage=used), Usage(0, 3, 0, 1)
        used = {"prompt_tokens": 20, "completion_tokens": value}
        yield f"completion_tokens {value!r}", chat(usage=used), Usage(20, 0, 0, 1)
    for details, cached, n_odd in (
        ({"cached_tokens": 16}, 16, 0), ({"cached_tokens": None}, 0, 0), (None, 0, 0), ([], 0, 1),
        ({"cached_tokens": 21}, 20, 1), ({"cached_tokens": -1}, 0, 1), ({"cached_tokens": 2**70}, 0, 1),
    ):  # fmt: skip
        used = {"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": details}
        yield f"details {details}", chat(usage=used), Usage(20, 3, cached, n_odd)
    anthropic = {"cache_read_input_tokens": 4, "cache_creation_input_tokens": 10}
    lifetimes = {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6}
    openai = {"cached_tokens": 4, "cache_write_tokens": 10}
    kept = {"ttl_12h_tokens": 7, "ttl_30m_tokens": 3}
    litellm = {"cached_tokens": 4, "cache_creation_tokens": 10, "cache_creation_token_details": lifetimes}  # fmt: skip
    for details, more, usage in (
        (openai, {}, Usage(20, 3, 4, 0, 10)),
        ({**openai, "cache_write_tokens_details": kept}, {}, Usage(20, 3, 4, 0, 10, 7)),
        (None, {**anthropic, "cache_creation": lifetimes}, Usage(20, 3, 4, 0, 10, 6)),
        (litellm, anthropic, Usage(20, 3, 4, 0, 10, 6)),
        ({"cache_write_tokens_details": kept}, {}, Usage(20, 3, 0, 0, 10, 7)),
        ({**openai, "cached_tokens": 15}, {}, Usage(20, 3, 15, 1, 5)),
        ({**openai, "cache_write_tokens_details": [7]}, {}, Usage(20, 3, 4, 1, 10)),
    ):  # fmt: skip
        used = {"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": details, **more}  # fmt: skip
        yield f"writes {details} {more}", chat(usage=used), usage


CASES = [*endings(), *reported(), *contents(), *usages()]


@pytest.mark.parametrize(("name", "body", "outcome"), CASES, ids=[case[0] for case in CASES])
def test_a_chat_completion_is_read_or_refused(name: str, body: Any, outcome: Outcome) -> None:
    found = read(json.dumps(body).encode())
    assert is_of(found, outcome), found


TEXT = '{"choices": [{"message": {"content": "é"}, "finish_reason": "stop"}]}'
BYTES: dict[str, tuple[bytes | str, Outcome]] = {
    "utf-8-sig": (TEXT.encode("utf-8-sig"), "=é"), "utf-16": (TEXT.encode("utf-16"), "=é"),
    "latin-1": (TEXT.encode("latin-1"), "malformed"), "NaN beside": (TEXT[:-1] + ', "x": NaN}', "=é"),
    "escapes": (TEXT.replace("é", r"\ud83d\ude00\u00e9"), "=\U0001f600é"),
    "event stream": (f"data: {TEXT}\n\ndata: [DONE]\n\n", "malformed"), "garbage behind": (TEXT + "x", "malformed"),
    "half": (TEXT[:40], "malformed"), "blank": ("  \n", "malformed"), "page": ("<p>é</p>", "malformed"),
    "nothing": ("", "malformed"), "number": ("12", "malformed"), "null": ("null", "malformed"),
    "list": (f"[{TEXT}]", "malformed"), "no reply": ('{"detail": "no"}', "malformed"),
    "deep": (TEXT[:-1] + ', "x": ' + "[" * 99_999 + "]" * 99_999 + "}", "malformed"),
    "long number": (TEXT[:-1] + ', "x": ' + "9" * 5_000 + "}", "malformed"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "outcome"), BYTES.values(), ids=BYTES)
def test_a_body_that_is_not_json_is_malformed(body: bytes | str, outcome: Outcome) -> None:
    assert is_of(read(body if isinstance(body, bytes) else body.encode()), outcome)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "finish_reason", "usage", "error",
                             "refusal", "model", "prompt_tokens", "prompt_tokens_details", "code",
                             "tool_calls", "type", "text"]),
            inner,
        ),
        max_leaves=8,
    )
)  # fmt: skip
def test_every_shape_is_a_completion_or_a_model_error(data: object) -> None:
    assert len(str(read(json.dumps(data).encode())).splitlines()) <= 3


def test_a_key_that_a_server_repeats_is_in_no_reply() -> None:
    key = "sk-0123456789abcdef"
    endpoint = Endpoint("http://me:a-long-password-1@localhost/v1", "m", key)
    text = f"It is {key}, a-long-password-1"
    found = read(json.dumps({**completion(text), "model": f"m {key}"}).encode(), endpoint)
    assert isinstance(found, Completion)
    assert (found.text, found.model) == ("It is ***, ***", "m ***")
    word = json.dumps(completion("EMPTY")).encode()
    assert read_completion(word, dataclasses.replace(endpoint, key="EMPTY")).text == "EMPTY"


@pytest.mark.parametrize(
    ("n_tokens", "n_cached", "n_words", "is_cut"),
    [(30, 0, 4_900, True), (2_048, 0, 4_900, True), (4_900, 0, 4_900, False), (0, 0, 4_900, False),
     (30, 20, 4_900, False), (30, 0, 50, False)],
)  # fmt: skip
def test_a_server_that_counts_too_few_tokens_may_have_cut_the_prompt(
    n_tokens: int, n_cached: int, n_words: int, is_cut: bool
) -> None:
    asked = replace(REQUEST, messages=(Message("user", "harbour " * n_words),))
    got = within(Completion("ok", "m", Usage(n_tokens, 1, n_cached)), asked, ENDPOINT)
    assert bool(got.cut_prompt) == is_cut
