"""Counting by a server's `/tokenize`: the wire forms of vLLM, SGLang and llama.cpp, and their faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pearl.documents.tokens import Counter, estimate
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.openai import OpenAIModel, create, sessions
from tests.server import Canned, Seen, Server

TEXT = "The captain waited for the tide, and nobody came to the harbour. " * 40
N_WORDS = 12 * 40


def words(text: str) -> dict[str, Any]:
    n = len(text.split())
    return {"count": n, "max_model_len": 4_096, "tokens": list(range(n))}


def as_vllm(seen: Seen) -> Canned:
    if "messages" in seen.body:
        assert seen.body["add_generation_prompt"]
        return Canned(words("a b c d e " + seen.body["messages"][0]["content"]))
    assert seen.body["add_special_tokens"] is False
    assert seen.body["model"] == "test-model"
    return Canned(words(seen.body["prompt"]))


def as_sglang(seen: Seen) -> Canned:
    if "messages" in seen.body:
        return Canned({"detail": "field required"}, 422)
    return Canned(words(seen.body["prompt"]))


def as_llamacpp(seen: Seen) -> Canned:
    if seen.path == "/apply-template":
        return Canned(
            {"prompt": f"<|im_start|> user {seen.body['messages'][0]['content']} <|im_end|>"}
        )
    return Canned({"tokens": words(seen.body["content"])["tokens"]})


def counter_of(served: Server, **settings: Any) -> Counter:
    model = create("test-model", ModelSettings(served.url, api_key_env="", **settings))
    return Counter.for_model(model.name, model.tokenizer)


@pytest.mark.parametrize(
    ("owner", "answer", "frame"),
    [("vllm", as_vllm, 5), ("sglang", as_sglang, 0), ("llamacpp", as_llamacpp, 3)],
)
@pytest.mark.parametrize("is_named", [False, True])
def test_the_tokenizer_of_a_server_counts(
    openai_server: Server,
    owner: str,
    answer: Callable[[Seen], Canned],
    frame: int,
    is_named: bool,
) -> None:
    openai_server.owned_by, openai_server.answer = owner, answer
    counter = counter_of(openai_server, server=owner if is_named else None)
    assert counter.count(TEXT) == N_WORDS
    assert counter.method.startswith("the tokenizer of test-model at http://127.0.0.1:")
    assert counter.frame_tokens == frame
    assert {seen.path for seen in openai_server.requests} <= {"/tokenize", "/apply-template"}
    assert openai_server.n_listings == (0 if is_named else 1)


def test_nothing_is_sent_to_a_server_of_another_kind(openai_server: Server) -> None:
    openai_server.owned_by = "library"
    counter = counter_of(openai_server)
    assert counter.count(TEXT) == estimate(TEXT)
    assert counter.method == "estimate"
    assert openai_server.requests == []


def test_a_forecast_asks_no_server(openai_server: Server) -> None:
    counter = counter_of(openai_server, server="vllm", is_asked=False)
    assert counter.count(TEXT) == estimate(TEXT)
    assert openai_server.requests == []


def test_openai_itself_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert create("gpt-new", ModelSettings()).tokenizer is None


@pytest.mark.parametrize(
    "fault",
    [
        "404", "500", "hang", "reset", "page as JSON", "deep", "null", "nowhere",
        pytest.param(Canned({"tokens": "many"}), id="no list"),
        pytest.param(Canned({"count": 3}), id="no tokens"),
        pytest.param(Canned({"tokens": [0]}), id="too few"),
        pytest.param(Canned(b"[" + b"1," * 10_000, manner="endless"), id="endless"),
    ],
)  # fmt: skip
def test_a_server_that_fails_is_left(
    openai_server: Server, fault: str | Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "TIMEOUT_S", 1.0)
    for _ in range(3):  # the tokens of the template, of its message, and of the text
        openai_server.next(fault)
    openai_server.answer = as_vllm
    counter = counter_of(openai_server, server="vllm")
    assert counter.count(TEXT) == counter.count(TEXT) == estimate(TEXT)
    assert counter.method.startswith("estimate (the tokenizer of test-model at ")
    assert "\n" not in counter.method
    assert len(counter.method) < 400


def test_a_text_that_is_no_unicode_is_counted(openai_server: Server) -> None:
    openai_server.owned_by, openai_server.answer = "vllm", as_vllm
    assert counter_of(openai_server).count(f"{TEXT} \ud800") == N_WORDS + 1


def test_it_counts_in_a_loop_and_out_of_it_and_after_closing(openai_server: Server) -> None:
    openai_server.owned_by, openai_server.answer = "vllm", as_vllm
    model = create("test-model", ModelSettings(openai_server.url, api_key_env=""))
    assert isinstance(model, OpenAIModel)
    counter = Counter.for_model(model.name, model.tokenizer)

    async def count(text: str) -> int:
        n = counter.count(text)
        await model.aclose()
        return n

    assert counter.count(TEXT) == N_WORDS
    assert asyncio.run(count(f"{TEXT} more")) == N_WORDS + 1
    assert asyncio.run(count(f"{TEXT} and more")) == N_WORDS + 2
