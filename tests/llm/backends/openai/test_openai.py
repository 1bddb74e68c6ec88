"""The client for OpenAI-compatible servers, against a real server that does its worst."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pearl.errors import ModelError, ModelErrorKind, UsageError
from pearl.llm import Completion, Message, Model, Request, Usage
from pearl.llm.backends import ModelSettings, create_model
from tests.conftest import PROXIES
from tests.models import answer_task
from tests.server import PAGE, Canned, Server, completion, error

KEY = "sk-very-secret-0123456789"

REQUEST = Request(
    (Message("system", "Be brief."), Message("user", "Who?")), answer_task("Who?", "")
)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def ask(
    server: Server | str,
    name: str = "test-model",
    *,
    request: Request = REQUEST,
    timeout_s: float = 5.0,
) -> Completion:
    url = server if isinstance(server, str) else server.url
    model = create_model(f"openai:{name}", ModelSettings(url, timeout_s))
    return asyncio.run(_ask(model, request))


async def _ask(model: Model, request: Request) -> Completion:
    try:
        return await model.complete(request)
    finally:
        await model.aclose()


@contextmanager
def fails(kind: ModelErrorKind) -> Iterator[pytest.ExceptionInfo[ModelError]]:
    with pytest.raises(ModelError) as caught:
        yield caught
    assert caught.value.kind == kind
    assert len(str(caught.value).splitlines()) <= 2


def test_a_reply_comes_with_its_usage(openai_server: Server) -> None:
    openai_server.on("Who", "Ada it was")
    assert ask(openai_server) == Completion("Ada it was", "test-model-2026", Usage(100, 3, 64))


def test_messages_go_out_as_they_are(openai_server: Server) -> None:
    ask(openai_server)
    (seen,) = openai_server.requests
    assert seen.body == {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"},
        ],
        "temperature": 0.0,
    }  # fmt: skip
    assert seen.headers["authorization"] == f"Bearer {KEY}"


def test_limits_go_out_under_the_name_that_other_servers_know(openai_server: Server) -> None:
    request = Request(REQUEST.messages, REQUEST.task, max_output_tokens=7, temperature=None)
    ask(openai_server, request=request)
    body = openai_server.requests[0].body
    assert body["max_tokens"] == 7
    assert "temperature" not in body
    assert "max_completion_tokens" not in body


def test_lone_surrogates_do_not_go_out(openai_server: Server) -> None:
    request = Request((Message("user", "a\ud800b"),), REQUEST.task)
    assert ask(openai_server, request=request).text == "ok"
    assert openai_server.requests[0].prompt == "a\ufffdb"


def test_lone_surrogates_do_not_come_in(openai_server: Server) -> None:
    openai_server.next("surrogate")
    assert ask(openai_server).text == "a\ufffdb \U0001f600"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("401", "check the key in OPENAI_API_KEY"),
        ("quota", "add credit"),
        ("429", "--concurrency"),
        ("500", "internal"),
        ("503", "overloaded"),
        ("error", "an error instead of a reply: upstream failed"),
        ("page", "usually ends in /v1"),
        ("422", "field required"),
        ("413", "--window"),
        ("refusal", "I can't help with that"),
        ("cut", "--max-output-tokens"),
        ("wrong choices", "'choices.0.message'"),
    ],
)
def test_a_message_says_what_to_do(fault: str, said: str, openai_server: Server) -> None:
    openai_server.next(fault)
    with pytest.raises(ModelError) as caught:
        ask(openai_server)
    assert said in str(caught.value)


def test_a_web_page_is_not_quoted(openai_server: Server) -> None:
    openai_server.next("502")
    with fails("transport") as caught:
        ask(openai_server)
    assert "<" not in str(caught.value)


def test_a_request_that_is_too_long_names_the_window(openai_server: Server) -> None:
    said = "This model's maximum context length is 8192 tokens."
    openai_server.next(Canned(error(said, code="context_length_exceeded"), 400))
    with fails("bad_request") as caught:
        ask(openai_server)
    assert said in str(caught.value)
    assert "--window" in str(caught.value)


def test_the_key_is_in_no_message_trace_or_repr(openai_server: Server) -> None:
    model = create_model("openai:test-model", ModelSettings(openai_server.url, 5.0))
    assert KEY not in repr(model) + repr(vars(model))
    bodies: list[Canned] = [
        Canned(error(f"Incorrect API key provided: {KEY}"), 401),
        Canned(error(f"who is {KEY}?"), 403),
        Canned(error(f"who is {KEY}?"), 500),
        Canned(f"what is {KEY}"),
        Canned(error(f"what is {KEY}")),
        Canned(completion(None, refusal=f"not with {KEY}")),
        Canned({"message": f"sk-other-key and {KEY}"}, 400),
    ]
    for body in bodies:
        openai_server.next(body)
        with pytest.raises(ModelError) as caught:
            asyncio.run(_ask(model, REQUEST))
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert KEY not in shown
        assert "sk-other-key" not in shown


def test_an_unknown_model_is_named_and_the_right_one_proposed(openai_server: Server) -> None:
    said = error("The model `tset-model` does not exist", code="model_not_found")
    openai_server.next(Canned(said, 404))
    with fails("bad_request") as caught:
        ask(openai_server, "tset-model")
    assert "has no model 'tset-model'" in str(caught.value)
    assert "did you mean 'openai:test-model'?" in str(caught.value)
    assert f"{openai_server.url}/models" in str(caught.value)


def test_an_unknown_model_with_no_namesake_gets_the_list(openai_server: Server) -> None:
    openai_server.models = ["llama3.1:8b", "qwen3", "a", "b", "c", "d"]
    openai_server.next(Canned({"error": "model 'gpt' not found, try pulling it first"}, 400))
    with fails("bad_request") as caught:
        ask(openai_server, "gpt")
    assert "it has llama3.1:8b, qwen3, a, b, c, ...;" in str(caught.value)


def test_a_wrong_address_is_not_taken_for_an_unknown_model(openai_server: Server) -> None:
    openai_server.models = None
    openai_server.next("404")
    with fails("bad_request") as caught:
        ask(openai_server)
    assert "answered 404: Not Found" in str(caught.value)
    assert "usually ends in /v1" in str(caught.value)


def test_a_bad_request_for_a_known_model_is_quoted(openai_server: Server) -> None:
    openai_server.next(Canned(error("test-model: max_tokens is too large"), 400))
    with fails("bad_request") as caught:
        ask(openai_server)
    assert "max_tokens is too large" in str(caught.value)


@pytest.mark.parametrize(
    "refusal",
    [
        error("Unsupported value", param="temperature", code="unsupported_value"),
        {"detail": "`temperature` is deprecated for this model."},
    ],
)
def test_a_model_without_temperature_is_asked_without(
    refusal: dict[str, object], openai_server: Server
) -> None:
    model = create_model("openai:test-model", ModelSettings(openai_server.url))
    openai_server.next(Canned(refusal, 400))

    async def twice() -> None:
        await model.complete(REQUEST)
        await _ask(model, REQUEST)

    asyncio.run(twice())
    sent = ["temperature" in seen.body for seen in openai_server.requests]
    assert sent == [True, False, False]


def test_a_server_that_never_likes_the_temperature_is_not_asked_forever(
    openai_server: Server,
) -> None:
    for _ in range(3):
        openai_server.next(Canned(error("temperature!"), 400))
    with fails("bad_request"):
        ask(openai_server)
    assert len(openai_server.requests) == 2


def test_a_server_that_is_not_there() -> None:
    with fails("transport") as caught:
        ask("http://127.0.0.1:9/v1")
    assert "no server at http://127.0.0.1:9/v1" in str(caught.value)
    assert "--base-url" in str(caught.value)


def test_a_host_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name)
    with fails("transport") as caught:
        ask("http://nowhere.invalid/v1")
    assert "no such host: http://nowhere.invalid/v1" in str(caught.value)


def test_a_server_without_tls(openai_server: Server) -> None:
    with fails("transport") as caught:
        ask(openai_server.url.replace("http:", "https:"))
    assert "no trusted connection" in str(caught.value)
    assert "http://" in str(caught.value)


def test_a_proxy_of_an_unknown_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, "socks9://127.0.0.1:9")
    with fails("bad_request") as caught:
        ask("http://nowhere.invalid/v1")
    assert "HTTPS_PROXY" in str(caught.value)


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with fails("auth") as caught:
        create_model("openai:gpt-4o")
    assert "OPENAI_API_KEY" in str(caught.value)


def test_other_servers_need_none(openai_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask(openai_server).text == "ok"
    assert openai_server.requests[0].headers["authorization"] == "Bearer none"
    openai_server.next("401")
    with fails("auth") as caught:
        ask(openai_server)
    assert "set OPENAI_API_KEY" in str(caught.value)


def test_the_address_may_come_from_the_environment(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url + "/")
    model = create_model("openai:test-model")
    assert asyncio.run(_ask(model, REQUEST)).text == "ok"
    assert openai_server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_what_is_no_key_is_not_sent(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with fails("auth") as caught:
        create_model("openai:gpt-4o")
    assert key not in str(caught.value)


def test_blanks_around_a_key_are_none_of_it(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    ask(openai_server)
    assert openai_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url",
    ["localhost:8000", "http://", "http://[broken/v1", "ftp://host/v1", "http://h:99999/v1",
     "http://two words/v1", "http://host/v1\n"],
)  # fmt: skip
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not the address of a server"):
        create_model("openai:m", ModelSettings(url))


def test_a_password_in_the_address_is_not_shown(openai_server: Server) -> None:
    url = openai_server.url.replace("//", "//me:pass-word@") + "?api-key=hidden"
    openai_server.next("500")
    with fails("transport") as caught:
        ask(url)
    assert openai_server.url in str(caught.value)
    assert "pass-word" not in str(caught.value)
    assert "hidden" not in str(caught.value)
    with pytest.raises(UsageError) as usage:
        create_model("openai:m", ModelSettings("http://me:pass word@host/v1?api-key=hidden"))
    assert "pass" not in str(usage.value)


def test_a_model_must_be_named() -> None:
    with pytest.raises(UsageError, match="for example openai:"):
        create_model("openai:")


def test_the_window_is_known_or_given() -> None:
    assert create_model("openai:gpt-4").window == 8_192
    assert create_model("openai:anything").window == 128_000
    assert create_model("openai:gpt-4", ModelSettings(window=5_000)).window == 5_000


def test_a_model_may_be_used_in_one_event_loop_after_the_other(openai_server: Server) -> None:
    model = create_model("openai:test-model", ModelSettings(openai_server.url))
    for _ in range(3):
        assert asyncio.run(_ask(model, REQUEST)).text == "ok"


def test_calls_run_side_by_side(openai_server: Server) -> None:
    openai_server.n_together, openai_server.delay_s = 5, 60.0
    model = create_model("openai:test-model", ModelSettings(openai_server.url))

    async def many() -> None:
        await asyncio.gather(*(model.complete(REQUEST) for _ in range(5)))
        await model.aclose()

    asyncio.run(many())
    assert openai_server.n_at_once == 5


def test_a_cancelled_call_ends(openai_server: Server) -> None:
    openai_server.next("hang")
    model = create_model("openai:test-model", ModelSettings(openai_server.url))

    async def main() -> None:
        task = asyncio.create_task(_ask(model, REQUEST))
        while not openai_server.requests:  # noqa: ASYNC110  the server is in another thread
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_the_wait_comes_with_the_error(openai_server: Server) -> None:
    openai_server.next(Canned(error("slow down"), 429, {"Retry-After": "1m30s"}))
    with fails("rate_limited") as caught:
        ask(openai_server)
    assert caught.value.retry_after_s == 90
    assert "try again in 90 s" in str(caught.value)
    openai_server.next(Canned(PAGE, 503, {"retry-after": "2"}, "text/html"))
    with fails("transport") as caught:
        ask(openai_server)
    assert caught.value.retry_after_s == 2
