"""`ollama:NAME`: which address, which window, and that no key goes there unasked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pearl.errors import UsageError
from pearl.llm import Message
from pearl.llm.backends import ModelSettings, address_of, create_model
from tests.llm.backends.asking import REQUEST, complete, failure
from tests.server import Server


@pytest.fixture(autouse=True)
def _nobodys_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OLLAMA_HOST", "OLLAMA_CONTEXT_LENGTH"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://localhost:11434/v1"),
        ("0.0.0.0:8080", "http://localhost:8080/v1"),
        (":8080", "http://localhost:8080/v1"),
        ("gpu", "http://gpu:11434/v1"),
        ("gpu:80/", "http://gpu:80/v1"),
        (" 'http://gpu' ", "http://gpu:80/v1"),
        ("https://gpu/at/", "https://gpu:443/at/v1"),
        ("[::1]:8080", "http://[::1]:8080/v1"),
        ("fe80::1", "http://[fe80::1]:11434/v1"),
    ],
)
def test_the_address_is_that_of_ollama(
    host: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # is no business of its
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert address_of("ollama:m") == url
    assert create_model("ollama:m").notice == f"ollama: m at {url}, without a key"
    assert address_of("ollama:m", ModelSettings("http://here/v1")) == "http://here/v1"


def test_no_key_is_sent_unless_it_is_named(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", openai_server.url.removesuffix("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PEARL_API_KEY", "secret, too")
    monkeypatch.setenv("PROXY_KEY", "of-a-proxy")
    complete(create_model("ollama:llama3.2:3b"))
    complete(create_model("ollama:m", ModelSettings(api_key_env="PROXY_KEY")))
    bare, named = openai_server.requests
    assert bare.body["model"] == "llama3.2:3b"
    assert not any("secret" in value for value in bare.headers.values())
    assert named.headers["authorization"] == "Bearer of-a-proxy"


def test_the_window_is_the_default_of_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    assert create_model("ollama:gpt-4o").window == 4_096
    monkeypatch.setenv("OLLAMA_CONTEXT_LENGTH", "32768")
    assert create_model("ollama:gpt-4o").window == 32_768
    assert create_model("ollama:gpt-4o", ModelSettings(window=9_000)).window == 9_000
    monkeypatch.setenv("OLLAMA_CONTEXT_LENGTH", "256")
    assert create_model("ollama:gpt-4o").window == 256
    for wrong in ("much", "255"):
        monkeypatch.setenv("OLLAMA_CONTEXT_LENGTH", wrong)
        with pytest.raises(UsageError, match=f"OLLAMA_CONTEXT_LENGTH={wrong}"):
            create_model("ollama:gpt-4o")


def test_a_prompt_that_ollama_would_cut_is_not_sent(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", openai_server.url.removesuffix("/v1"))
    short, long = (
        replace(REQUEST, messages=(Message("user", "one two three " * n),)) for n in (800, 2_000)
    )
    complete(create_model("ollama:m"), short)
    caught = failure(create_model("ollama:m"), "bad_request", long)
    assert "its window of 4,096" in str(caught)
    assert not caught.is_retryable
    complete(create_model("ollama:m", ModelSettings(window=10_000)), long)
    assert len(openai_server.requests) == 2
