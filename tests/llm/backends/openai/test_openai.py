"""The client for OpenAI-compatible servers, against a real server that does its worst."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from msgspec.structs import replace

from pearl.errors import ModelError, ModelErrorKind, UsageError
from pearl.llm import Completion, Message, Model, Usage
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.flaws import usable
from tests.conftest import PROXIES
from tests.llm.backends.asking import REQUEST, complete, failure
from tests.server import Canned, Server, completion, error

KEY = "sk-very-secret-0123456789"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def model_of(server: Server | str, name: str = "test-model") -> Model:
    url = server if isinstance(server, str) else server.url
    return create_model(f"openai:{name}", ModelSettings(url, 5.0))


@pytest.mark.parametrize(
    "page", ["<!DOCTYPE html>\n", "<html\r\n lang=en>", "<HTML\tlang=en>", " <html"]
)
def test_the_page_of_a_gateway_is_no_reply(page: str, openai_server: Server) -> None:
    openai_server.next(Canned(completion(page)))
    with pytest.raises(ModelError, match="a web page") as caught:
        usable(complete(model_of(openai_server)), REQUEST)
    assert caught.value.kind == "transport"


def test_lone_surrogates_are_not_sent(openai_server: Server) -> None:
    request = replace(REQUEST, messages=(Message("user", "a\ud800b"),))
    assert complete(model_of(openai_server), request).text == "ok"
    assert openai_server.requests[0].prompt == "a\ufffdb"


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("401", "auth", "check the key in OPENAI_API_KEY"),
        ("quota", "quota", "add credit"),
        ("429", "rate_limited", "`concurrency`"),
        ("500", "transport", "internal"),
        ("503", "transport", "overloaded"),
        ("502", "transport", "answered 502\n"),  # a web page is not quoted
        ("error", "malformed", "an error instead of a reply: upstream failed"),
        ("page", "malformed", "usually ends in /v1"),
        ("404", "bad_request", "answered 404: Not Found"),
        ("422", "bad_request", "field required"),
        ("413", "bad_request", "`window`"),
        ("refusal", "refused", "I can't help with that"),
        ("cut", "truncated", "`max_output_tokens`"),
        ("wrong choices", "malformed", "'choices.0.message'"),
        (Canned(error("test-model: max_tokens is too large"), 400), "bad_request", "is too large"),
        (Canned(error("prompt is too long: 9000 tokens"), 400), "bad_request", "`window`"),
    ],
)
def test_a_message_says_what_to_do(
    fault: str | Canned, kind: ModelErrorKind, words: str, openai_server: Server
) -> None:
    openai_server.next(fault)
    assert words in str(failure(model_of(openai_server), kind))


def test_the_key_is_in_no_message_trace_or_repr(openai_server: Server) -> None:
    model = model_of(openai_server)
    assert KEY not in repr(model) + repr(vars(model))
    for body in (
        Canned(error(f"Incorrect API key provided: {KEY}"), 401),
        Canned(error(f"who is {KEY}?"), 403),
        Canned(error(f"who is {KEY}?"), 500),
        Canned(f"what is {KEY}"),
        Canned(error(f"what is {KEY}")),
        Canned(completion(None, refusal=f"not with {KEY}")),
        Canned({"message": f"sk-other-key and {KEY}"}, 400),
    ):
        openai_server.next(body)
        with pytest.raises(ModelError) as caught:
            complete(model)
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert KEY not in shown
        assert "sk-other-key" not in shown


@pytest.mark.parametrize(
    ("name", "models", "answer", "words"),
    [
        (
            "tset-model",
            ["test-model"],
            Canned(error("The model `tset-model` does not exist", code="model_not_found"), 404),
            "has no model 'tset-model' (404)\n  help: did you mean 'openai:test-model'? http",
        ),
        (
            "gpt",
            ["llama3.1:8b", "qwen3", "a", "b", "c", "d"],
            Canned({"error": "model 'gpt' not found, try pulling it first"}, 400),
            "it has llama3.1:8b, qwen3, a, b, c, ...;",
        ),
        ("m", None, Canned({"detail": "Not Found"}, 404), "usually ends in /v1"),
    ],
)
def test_an_unknown_model_is_named_with_those_of_the_server(
    name: str, models: list[str] | None, answer: Canned, words: str, openai_server: Server
) -> None:
    openai_server.models = models
    openai_server.next(answer)
    assert words in str(failure(model_of(openai_server, name), "bad_request"))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "System role not supported"),
        (422, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (500, "Jinja Exception: System role not supported"),
    ],
)
def test_a_rejected_system_role_is_put_into_the_message_of_the_user(
    status: int, said: str, openai_server: Server
) -> None:
    model = model_of(openai_server)
    openai_server.next(Canned(error(said), status))
    complete(model)
    complete(model)
    sent = [seen.body["messages"] for seen in openai_server.requests]
    assert [turn["role"] for turn in sent[0]] == ["system", "user"]
    assert sent[1] == sent[2] == [{"role": "user", "content": "Be brief.\n\nWho?"}]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9/v1", "no server at http://127.0.0.1:9/v1\n  help: start it"),
        ("http://nowhere.invalid/v1", "no such host: http://nowhere.invalid/v1"),
        ("https://{host}/v1", "no trusted connection"),
    ],
)
def test_an_unreachable_server_is_an_error_with_advice(
    url: str, words: str, openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    host = openai_server.url.split("/")[2]
    caught = failure(model_of(url.format(host=host)), "transport")
    assert words in str(caught)
    assert caught.is_sent == ("trusted" in words), "TLS may fail after the request"


def test_a_proxy_of_an_unknown_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "socks9://127.0.0.1:9")
    assert "HTTPS_PROXY" in str(failure(model_of("http://nowhere.invalid/v1"), "bad_request"))


@pytest.mark.parametrize("key", ["", "two words", "line\nbreak", "schlüssel"])
def test_openai_itself_needs_a_key_that_can_be_sent(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
        create_model("openai:gpt-4o")
    assert caught.value.kind == "auth"
    assert not key or key not in str(caught.value)


def test_other_servers_need_no_key(openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    assert complete(model_of(openai_server)).text == "ok"
    monkeypatch.delenv("OPENAI_API_KEY")
    assert complete(model_of(openai_server)).text == "ok"
    sent = [seen.headers["authorization"] for seen in openai_server.requests]
    assert sent == [f"Bearer {KEY}", "Bearer none"]
    openai_server.next("401")
    assert "set OPENAI_API_KEY" in str(failure(model_of(openai_server), "auth"))


def test_the_address_may_come_from_the_environment(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url + "/")
    assert complete(create_model("openai:test-model")).text == "ok"
    assert openai_server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "http://", "http://[broken/v1", "ftp://host/v1", "http://h:99999/v1",
     "http://two words/v1", "http://host/v1\n", "http://me:pass word@host/v1?api-key=hidden"],
)  # fmt: skip
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a server") as caught:
        model_of(url)
    assert not {"pass", "hidden"} & set(str(caught.value).replace(":", " ").split())


# ---------------------------------------------------------------------------------------------
# Replies and refusals as local servers document and send them, field by field


VLLM: dict[str, Any] = {
    "id": "chatcmpl-7c1", "object": "chat.completion", "created": 1_790_000_000, "model": "smollm2",
    "choices": [
        {
            "index": 0, "finish_reason": "stop", "logprobs": None, "stop_reason": None, "token_ids": None,
            "message": {
                "role": "assistant", "content": "Ada did.", "refusal": None, "annotations": None,
                "audio": None, "function_call": None, "tool_calls": [], "reasoning": None,
                "reasoning_content": None,
            },
        }
    ],
    "service_tier": None, "system_fingerprint": None, "prompt_logprobs": None,
    "prompt_token_ids": None, "kv_transfer_params": None,
    "usage": {
        "prompt_tokens": 90, "total_tokens": 97, "completion_tokens": 7, "prompt_tokens_details": None,
    },
}  # fmt: skip


def test_a_reply_of_a_local_server_is_read(openai_server: Server) -> None:
    (choice,) = VLLM["choices"]
    cut = {**VLLM, "choices": [{**choice, "finish_reason": "length"}]}
    openai_server.next(Canned({**VLLM, "system_fingerprint": "b6900"}), Canned(cut))
    usage = Usage(90, 7)
    assert complete(model_of(openai_server)) == Completion(
        "Ada did.", "smollm2", usage, fingerprint="b6900", temperature=0.0
    )
    caught = failure(model_of(openai_server), "truncated")
    assert (caught.reply, caught.usage) == ("Ada did.", usage)


@pytest.mark.parametrize(
    "refusal",
    [
        {
            "message": "This model's maximum context length is 512 tokens. However, your request has 900 input tokens. Please reduce the length of the input messages.",
            "type": "BadRequestError", "param": "input_tokens", "code": 400,
        },
        {
            "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 900, "n_ctx": 512,
            "message": "request (900 tokens) exceeds the available context size (512 tokens), try increasing it",
        },
        {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"},
    ],
)  # fmt: skip
def test_a_prompt_beyond_the_window_is_not_sent_again(
    refusal: dict[str, Any], openai_server: Server
) -> None:
    openai_server.next(Canned({"error": refusal}, 400))
    request = replace(REQUEST, max_output_tokens=40)
    caught = failure(model_of(openai_server), "bad_request", request)
    assert not caught.is_retryable
    assert "window" in str(caught)
    assert refusal["message"][:40] in str(caught)
    assert len(openai_server.requests) == 1
