"""Which key goes where."""

from __future__ import annotations

import pytest

from pearl.errors import ModelError
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai.endpoint import Endpoint, key_variable

LOCAL = ("http://127.0.0.1:1/v1", "http://[::1]/v1", "http://localhost:8000/v1", "http://10.1.2.3/v1",
         "http://172.31.0.1/v1", "https://192.168.1.9/v1", "http://[fd00::1]/v1")  # fmt: skip
FOREIGN = ("https://example.org/v1", "http://8.8.8.8/v1", "http://169.254.169.254/v1",
           "http://172.32.0.1/v1", "http://0.0.0.0/v1", "http://localhost.example.org/v1",
           "https://api.openai.com.example.org/v1", "https://api.openai.com@example.org/v1",
           "http://api.openai.com/v1", "http://127.0.0.1.nip.io/v1")  # fmt: skip


@pytest.mark.parametrize("url", LOCAL)
def test_local_addresses(url: str) -> None:
    assert Endpoint(url, "", "").is_local


@pytest.mark.parametrize("url", FOREIGN)
def test_foreign_addresses(url: str) -> None:
    assert not Endpoint(url, "", "").is_local


def test_other_servers_get_the_key_of_openai_only_if_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert key_variable("https://api.openai.com/v1") == ""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    for url in (*LOCAL, "https://api.openai.com/v1", "https://eu.api.openai.com/v1"):
        assert key_variable(url, is_named=False) == "OPENAI_API_KEY"
    for url in FOREIGN:
        assert key_variable(url, is_named=False) == ""
        assert key_variable(url) == "OPENAI_API_KEY"
    monkeypatch.setenv("PEARL_API_KEY", "k")
    assert key_variable(FOREIGN[0], is_named=False) == "PEARL_API_KEY"


def test_a_named_variable_replaces_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("VLLM_KEY", "k-2")

    def notice(api_key_env: str | None) -> str:
        settings = ModelSettings("http://me:pw@here/v1?key=x", api_key_env=api_key_env)
        return create_model("openai:m", settings).notice

    assert notice(None) == "openai: m at http://here/v1, with the key in OPENAI_API_KEY"
    assert notice("VLLM_KEY") == "openai: m at http://here/v1, with the key in VLLM_KEY"
    assert notice("") == "openai: m at http://here/v1, without a key"
    with pytest.raises(ModelError, match="NO_KEY is not set"):
        notice("NO_KEY")


def test_a_message_shows_no_key_and_is_not_starred_by_a_letter() -> None:
    said = "the reply is packed; the key abcd-1 is wrong"
    assert Endpoint("http://h/v1?q=x", "m", "k").quote(said) == said
    assert Endpoint("http://h/v1", "m", "abcd-1").quote(said).endswith("the key *** is wrong")
