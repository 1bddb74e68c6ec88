"""Official clients as models, and our own requests compared with theirs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAI

from pearl import Pearl
from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Message
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.wire import Wire
from pearl.llm.client import Client, ClientSettings
from tests.llm.backends import asking
from tests.llm.backends.asking import complete
from tests.server import Seen, Server

REQUEST = replace(
    asking.REQUEST,
    messages=(Message("system", "Be brief."), Message("user", 'Who is "é \U0001f600"?')),
    max_output_tokens=7,
    seed=5,
)

OF_SOFTWARE = {"user-agent", "accept-encoding", "connection"}
"""Headers that name the software or its connections, besides `x-stainless-...`."""


class Own(AsyncOpenAI):
    """A subclass, as for a gateway."""


def answered(settings: ClientSettings) -> Completion:
    async def main() -> Completion:
        client = Client(settings)
        try:
            return await client.complete(REQUEST)
        finally:
            await client.aclose()
            assert isinstance(settings.model, AsyncOpenAI)
            assert not settings.model.is_closed()
            await settings.model.close()

    return asyncio.run(main())


def meaningful(seen: Seen) -> dict[str, str]:
    return {
        name: value
        for name, value in seen.headers.items()
        if name not in OF_SOFTWARE and not name.startswith("x-stainless-")
    }


@pytest.mark.parametrize(
    "variables",
    [{}, {"OPENAI_CUSTOM_HEADERS": "X-Team: seven\n Authorization : Key 1 \nX-Empty:"}],
)
def test_our_requests_are_those_of_the_official_client(
    variables: dict[str, str], openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    async def theirs() -> None:
        async with AsyncOpenAI(base_url=openai_server.url) as client:
            await client.chat.completions.create(
                model="m",
                messages=[{"role": m.role, "content": m.content} for m in REQUEST.messages],  # type: ignore[misc]
                max_tokens=7,
                temperature=0.0,
                seed=5,
            )

    asyncio.run(theirs())
    complete(create_model("openai:m", ModelSettings(openai_server.url, window=1_000)), REQUEST)
    one, other = openai_server.requests
    assert (one.path, one.body) == (other.path, other.body)
    assert meaningful(one) == meaningful(other)


def test_headers_of_users_do_not_change_how_requests_are_framed(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", "Content-Length: 1\nTransfer-Encoding: chunked\nX-Team: seven"
    )
    model = create_model("openai:m", ModelSettings(openai_server.url, window=1_000))
    assert complete(model, REQUEST).text == "ok"
    (seen,) = openai_server.requests
    assert "transfer-encoding" not in meaningful(seen)
    assert meaningful(seen)["x-team"] == "seven"


def test_organization_and_project_go_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project")

    async def headers(url: str) -> dict[str, str]:
        wire = Wire(Endpoint(url, "m", "key"), 5.0)
        await wire.close()
        return {name.lower(): value for name, value in wire._headers.items()}

    theirs = AsyncOpenAI(api_key="key").default_headers
    ours = asyncio.run(headers("https://api.openai.com/v1"))
    for name in ("OpenAI-Organization", "OpenAI-Project"):
        assert ours[name.lower()] == theirs[name]
    other = asyncio.run(headers("http://localhost/v1"))
    assert not {"openai-organization", "openai-project"} & set(other)


@pytest.mark.parametrize("kind", [AsyncOpenAI, Own])
def test_an_official_client_is_a_model(kind: type[AsyncOpenAI], openai_server: Server) -> None:
    client = kind(api_key="sk-0123456789", base_url=openai_server.url)
    reply = answered(ClientSettings(client, model_name="m"))
    assert reply.text == "ok"
    (seen,) = openai_server.requests
    assert (seen.path, seen.body["model"]) == ("/v1/chat/completions", "m")
    assert seen.headers["user-agent"].startswith(kind.__name__)


@pytest.mark.parametrize(
    ("of_client", "path"),
    [
        ({"azure_deployment": "gpt"}, "/openai/deployments/gpt/chat/completions"),
        ({}, "/openai/deployments/m/chat/completions"),
    ],
)
def test_azure_has_urls_of_deployments(
    of_client: dict[str, Any], path: str, openai_server: Server
) -> None:
    client = AsyncAzureOpenAI(
        azure_endpoint=openai_server.url.removesuffix("/v1"), api_version="2024-10-21",
        api_key="azure-key", **of_client,
    )  # fmt: skip
    name = None if of_client else "m"
    openai_server.next("429")
    reply = answered(ClientSettings(client, model_name=name, first_wait_s=0.01))
    assert reply.text == "ok"
    refused, seen = openai_server.requests  # one retry, which is ours
    assert (refused.path, seen.path) == (f"{path}?api-version=2024-10-21",) * 2
    assert seen.headers["api-key"] == "azure-key"
    assert "authorization" not in seen.headers


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("401", "auth"), ("reset", "transport"), ("cut", "truncated"), ("hang", "deadline"), ("surrogate", None)],
)  # fmt: skip
def test_faults_are_those_of_our_own_transport(
    fault: str, kind: str | None, openai_server: Server
) -> None:
    openai_server.next(fault)
    client = AsyncOpenAI(api_key="sk-0123456789", base_url=openai_server.url)
    settings = ClientSettings(client, model_name="m", attempts=1, timeout_s=1.0)
    if kind is None:
        assert answered(settings).text
        return
    with pytest.raises(ModelError) as caught:
        answered(settings)
    assert caught.value.kind == kind
    assert "sk-0123456789" not in str(caught.value)


def test_a_client_without_a_model_or_a_synchronous_client_is_refused() -> None:
    with pytest.raises(UsageError, match="needs the name of a model"):
        Pearl(AsyncOpenAI(api_key="k"))
    with pytest.raises(UsageError, match="synchronous"):
        Client(ClientSettings(OpenAI(api_key="k"), model_name="m"))  # type: ignore[arg-type]
