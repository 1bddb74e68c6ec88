"""Clients of the `openai` package passed as a model: they make the connections and stay open; all else is as for addresses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    HttpxBinaryResponseContent,
    OpenAIError,
)

from pearl.errors import ModelError, UsageError
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.openai import OpenAIModel, faults, servers
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.wire import Wire


def create(client: AsyncOpenAI, name: str | None, settings: ModelSettings) -> OpenAIModel:
    """Create the model `name` of an official client; for an Azure client, its deployment."""
    name = name or getattr(client, "_azure_deployment", None)
    if not name:
        raise UsageError(
            f"{type(client).__name__} needs the name of a model",
            help='for example Pearl(client, model_name="gpt-5-mini")',
        )
    key = client.api_key if isinstance(client.api_key, str) else ""
    endpoint = Endpoint(str(client.base_url), name, key, "the official client")
    server = servers.load(settings.server) if settings.server else servers.by_address(endpoint)
    wire = OfficialWire(client, endpoint)
    # The official client has no paths for tokenizers and context windows.
    return OpenAIModel(
        endpoint,
        settings.timeout_s,
        settings.window,
        server,
        is_asked=False,
        new_wire=lambda *_: wire,
    )


class OfficialWire(Wire):
    """A `Wire` that uses an official client."""

    def __init__(self, client: AsyncOpenAI, endpoint: Endpoint) -> None:
        self._client = client.with_options(max_retries=0)
        self._endpoint = endpoint

    async def post(self, path: str, body: Mapping[str, Any] | bytes) -> bytes:
        """Post JSON data; return the body of the reply."""
        async with self._errors(path):
            reply = await self._client.post(path, body=body, cast_to=HttpxBinaryResponseContent)
        return reply.content

    async def get(self, path: str, query: Mapping[str, str | int] | None = None) -> bytes:
        """Return the body at a path."""
        async with self._errors(path):
            reply = await self._client.get(
                path, cast_to=HttpxBinaryResponseContent, options={"params": query or {}}
            )
        return reply.content

    async def upload(self, path: str, name: str, data: bytes, fields: Mapping[str, str]) -> bytes:
        """Post a form with a file of JSON lines; return the body of the reply."""
        async with self._errors(path):
            reply = await self._client.post(
                path,
                body=fields,
                files=[("file", (name, data, "application/jsonl"))],
                options={"headers": {"Content-Type": "multipart/form-data"}},
                cast_to=HttpxBinaryResponseContent,
            )
        return reply.content

    async def close(self) -> None:
        """Leave the client open."""

    @asynccontextmanager
    async def _errors(self, path: str) -> AsyncGenerator[None, None]:
        try:
            yield
        except APIStatusError as error:
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            raise StatusError(error.status_code, error.body, headers, path) from None
        except APITimeoutError:
            raise faults.cut_off(TimeoutError(), self._endpoint) from None
        except APIConnectionError as error:
            raise faults.cut_off(error, self._endpoint) from None
        except (OpenAIError, TypeError, ValueError) as error:  # The client cannot build the request
            raise ModelError(
                f"{type(self._client).__name__}: {self._endpoint.quote(str(error))}",
                kind="bad_request",
                is_sent=False,
            ) from None
