"""What servers tell of themselves: windows and tokens, in the forms of each, and their faults."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from pearl.documents.tokens import DEFAULT_WINDOW, Counter, estimate
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import create, sessions
from pearl.llm.backends.openai.chat import Listed
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.sessions import HttpSession, listed_window
from pearl.llm.backends.openai.wire import Wire
from tests.server import FAULTS, Canned, Seen, Server


def window(served: Server, name: str = "m", **settings: Any) -> int | None:
    return create_model(f"openai:{name}", ModelSettings(served.url, **settings)).window


@pytest.mark.parametrize(
    "told",
    [
        {"max_model_len": 4_096, "owned_by": "vllm"},
        {"context_length": 4_096, "top_provider": {"context_length": None}},
        {"context_window": 4_096, "owned_by": "Groq"},
        {"max_context_length": 4_096},
        {"meta": {"n_ctx": 4_096, "n_ctx_train": 131_072}, "owned_by": "llamacpp"},
        {"max_model_len": 32_768, "context_length": 4_096},
    ],
)
@pytest.mark.parametrize("is_list", [False, True])
def test_a_window_is_read_from_the_list_of_models(
    openai_server: Server, told: dict[str, Any], is_list: bool
) -> None:
    listed = [{"id": "other", "max_model_len": 777}, {"id": "m", **told}]
    openai_server.listing = Canned(listed if is_list else {"data": listed})
    assert window(openai_server) == 4_096
    assert window(openai_server, window=999) == 999
    assert window(openai_server, "unlisted") == DEFAULT_WINDOW
    assert openai_server.n_listings == 2
    openai_server.listing = Canned({"data": [{"id": "/models/a.gguf", **told}]})
    assert window(openai_server, "llama-3.1") == 4_096, "a server of one model takes any name"


@pytest.mark.parametrize("server", [None, "llamacpp", "llguidance"])
def test_the_window_of_an_older_llamacpp_is_read_from_its_properties(
    openai_server: Server, server: str | None
) -> None:
    openai_server.models, openai_server.owned_by = ["m"], "llamacpp"

    def props(seen: Seen) -> Canned:
        assert (seen.method, seen.path) == ("GET", "/props")
        return Canned({"default_generation_settings": {"n_ctx": 2_048}, "n_ctx": 9})

    openai_server.answer = props
    assert window(openai_server, server=server) == 2_048
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize(
    "fault", ["404", "500", "page", "deep", "number", "list", "null", "half JSON"]
)
def test_without_a_listed_window_that_of_the_name_counts(openai_server: Server, fault: str) -> None:
    openai_server.listing = FAULTS[fault]
    assert window(openai_server, "gpt-4o-mini") == 128_000
    assert window(openai_server, "qwen2.5-7b") == window(
        openai_server, "qwen2.5-7b", is_asked=False
    )
    openai_server.listing, openai_server.owned_by = None, "llamacpp"
    openai_server.answer = lambda seen: FAULTS[fault]
    assert window(openai_server, "test-model") == DEFAULT_WINDOW


def test_a_server_without_an_answer_leaves_the_default_window(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "TIMEOUT_S", 0.2)
    openai_server.listing = FAULTS["hang"]
    assert window(openai_server) == DEFAULT_WINDOW
    gone = ModelSettings("http://127.0.0.1:9/v1")
    assert create_model("vllm:m", gone).window == DEFAULT_WINDOW


def test_a_vendor_is_asked_only_for_windows_of_unknown_names(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.listing = Canned({"data": [{"id": "gpt-4", "context_length": 999_999}]})
    monkeypatch.setattr("pearl.llm.backends.openai.endpoint.Endpoint.is_local", False)
    assert window(openai_server, "gpt-4") == 8_192
    assert openai_server.n_listings == 0
    assert window(openai_server, "somebodys-model") == 999_999  # the only one there
    assert openai_server.n_listings == 1


@pytest.mark.parametrize("told", [None, True, 255, 10**8 + 1, 4_096.0, "4096", [], {"n_ctx": 1}])
def test_an_impossible_window_is_ignored(told: Any) -> None:
    fields = {"max_model_len": told, "context_length": 4_096, "meta": told}
    assert listed_window(Listed("m", fields=fields)) == 4_096


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


def as_llamacpp_without_a_template(seen: Seen) -> Canned:
    return FAULTS["500"] if seen.path == "/apply-template" else as_llamacpp(seen)


def counter_of(served: Server, **settings: Any) -> Counter:
    model = create("test-model", ModelSettings(served.url, api_key_env="", **settings))
    return Counter.for_model(model.name, model.tokenizer)


@pytest.mark.parametrize(
    ("owner", "answer", "frame"),
    [
        ("vllm", as_vllm, 5), ("sglang", as_sglang, 0), ("llamacpp", as_llamacpp, 3),
        ("llamacpp", as_llamacpp_without_a_template, 0),
    ],
)  # fmt: skip
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


@pytest.mark.parametrize(
    ("owner", "settings"), [("library", {}), ("vllm", {"server": "vllm", "is_asked": False})]
)
def test_nothing_is_sent_to_a_server_of_another_kind_or_for_a_forecast(
    openai_server: Server, owner: str, settings: dict[str, Any]
) -> None:
    openai_server.owned_by = owner
    counter = counter_of(openai_server, **settings)
    assert counter.count(TEXT) == estimate(TEXT)
    assert counter.method == "estimate"
    assert openai_server.requests == []


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
def test_tokens_are_estimated_after_a_fault(
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


def test_event_loops_that_connect_at_once_do_not_get_the_connections_of_each_other() -> None:
    session = HttpSession(
        Endpoint("http://localhost:1/v1", "m", ""), 5.0, new_wire=lambda *_: OfLoop()
    )
    wrong: list[object] = []

    async def connect() -> None:
        for _ in range(300):
            wire: object = session.connect()
            if not isinstance(wire, OfLoop) or wire.loop is not asyncio.get_running_loop():
                wrong.append(wire)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: asyncio.run(connect())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


class OfLoop(Wire):
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()

    def __del__(self) -> None:
        time.sleep(0)  # closing connections lets other threads run
