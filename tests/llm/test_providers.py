"""`anthropic:NAME`, `vllm:NAME`, ...: whose address, and that a key goes nowhere else."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from pearl import plugins
from pearl.errors import ModelError, UsageError
from pearl.llm import Message, Request, declared
from pearl.llm.backends import (
    ModelSettings,
    Provider,
    address_of,
    create_model,
    default_key_variable,
    providers,
)
from pearl.llm.backends.openai import servers
from tests.models import answer_task
from tests.root import ROOT
from tests.server import Server

OF_VENDORS = sorted(name for name, provider in providers().items() if provider.key)
LOCAL = sorted(name for name, provider in providers().items() if not provider.key)


@pytest.mark.parametrize("provider", providers().values(), ids=lambda each: each.name)
def test_the_table_is_sound(provider: Provider) -> None:
    assert not plugins.exists("pearl.llm.backends", provider.name)  # a backend would hide it
    url = urlsplit(provider.url)
    assert (url.scheme == "https") == bool(provider.key)  # no key over the network unencrypted
    assert (url.hostname == "localhost") == (not provider.key)
    assert not provider.url.endswith("/")
    if provider.server:
        servers.load(provider.server)
    ours = {each["wire"]["chat"] for each in declared(Request).values()}
    assert provider.names.keys() <= ours  # other keys would change nothing
    assert not provider.fields.keys() & {"model", "messages", *ours, *provider.names.values()}
    assert f"`{provider.name}:" in (ROOT / "docs/servers.md").read_text("utf-8")


@pytest.mark.parametrize("name", OF_VENDORS)
def test_a_vendor_needs_its_own_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = providers()[name]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.delenv("PEARL_API_KEY", raising=False)
    monkeypatch.delenv(provider.key, raising=False)
    with pytest.raises(ModelError, match=f"{provider.key} is not set"):
        create_model(f"{name}:m")
    monkeypatch.setenv(provider.key, "its-own-key")
    model = create_model(f"{name}:m")
    assert model.name == f"{name}:m"
    assert model.notice == f"{name}: m at {provider.url}, with the key in {provider.key}"


@pytest.mark.parametrize("name", LOCAL)
def test_a_local_server_is_sent_no_key_of_openai(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # is no business of it
    assert create_model(f"{name}:m").notice.endswith(f"m at {providers()[name].url}, without a key")


def test_the_key_goes_to_no_other_address(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "sk-ant-secret")
    for name in ("OPENAI_API_KEY", "PEARL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    model = create_model("groq:m", ModelSettings(openai_server.url))

    async def ask() -> str:
        try:
            request = Request((Message("user", "Who?"),), answer_task("Who?", ""))
            return (await model.complete(request)).text
        finally:
            await model.aclose()

    assert asyncio.run(ask()) == "ok"
    (seen,) = openai_server.requests
    assert "secret" not in str(seen.headers)
    assert default_key_variable("groq:m", openai_server.url) == ""


def test_a_wrong_name_is_corrected() -> None:
    with pytest.raises(UsageError, match="unknown model 'anthropc:m'") as caught:
        create_model("anthropc:m")
    assert "did you mean 'anthropic:m'?" in str(caught.value.help)
    with pytest.raises(UsageError, match="vllm: needs the name of a model"):
        create_model("vllm")
    assert address_of("vllm:m") == "http://localhost:8000/v1"
