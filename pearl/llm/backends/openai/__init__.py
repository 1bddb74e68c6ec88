"""Any server that speaks OpenAI's Chat Completions: OpenAI itself, vLLM, Ollama, llama.cpp, ...

Every call ends in a `Completion` or in a `ModelError` of the right kind, whatever the server sends
or does not send. The official client carries the request; `replies` reads what comes back, because
the client passes HTML, errors and wrong types off as completions; `faults` explains the rest.
Replies under a constraint go by `constraining`, which finds out what the server at hand takes;
`servers` has the kinds there are.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from pearl.documents.tokens import window_of
from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Constrains, Request
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.openai import faults, replies, servers, streaming
from pearl.llm.backends.openai.batches import Batches
from pearl.llm.backends.openai.constraining import Constraining
from pearl.llm.backends.openai.endpoint import (
    KEY_VARIABLE,
    Endpoint,
    key_variable,
    read_key,
)
from pearl.llm.backends.openai.faults import Refuses
from pearl.llm.backends.openai.parameters import Parameters
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.usage import plausible

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

__all__ = [
    "ADDRESS_VARIABLE",
    "DESCRIPTION",
    "OpenAIModel",
    "address",
    "create",
    "key_variable",
]

DESCRIPTION = "any OpenAI-compatible server: openai:NAME; --base-url for one of your own"

ADDRESS_VARIABLE = "OPENAI_BASE_URL"

OWN_URL = "https://api.openai.com/v1"

CONNECT_TIMEOUT_S = 10.0
LIST_TIMEOUT_S = 5.0


def create(name: str, settings: ModelSettings) -> OpenAIModel:
    """The model `name` of the server in `settings`, in `OPENAI_BASE_URL`, or else of OpenAI.

    Raises:
        UsageError: The name is empty, the address is none, or there is no such kind of server.
        ModelError: OpenAI asks for a key and none is set, or a variable holds no key.
    """
    if not name:
        raise UsageError("openai: needs the name of a model", help="for example openai:gpt-4o-mini")
    url = address(settings) or OWN_URL
    variable = key_variable(url) if settings.api_key_env is None else settings.api_key_env
    key = read_key(variable) if settings.is_asked else ""
    endpoint = Endpoint(url, name, key, variable if key else "")
    if settings.is_asked and not key and (settings.api_key_env or endpoint.is_openai):
        asked = settings.api_key_env or KEY_VARIABLE
        raise ModelError(
            f"{endpoint.shown} asks for a key, and {asked} is not set",
            kind="auth",
            help=f"set {asked}, or name a server of your own with --base-url",
        )
    kind = settings.server
    server = servers.by_address(endpoint) if kind is None else servers.load(kind)
    return OpenAIModel(endpoint, settings.timeout_s, settings.window or window_of(name), server)


def address(settings: ModelSettings) -> str:
    """The address of the server; "" for OpenAI's own."""
    return settings.base_url or os.environ.get(ADDRESS_VARIABLE, "").strip()


class OpenAIModel:
    """One model of one server.

    Args:
        endpoint: The server, the model and the key.
        timeout_s: Seconds that one call may take in all, however slowly the reply drips in.
        window: Tokens that the model reads and writes in one call.
        server: Kind of the server; None to find out when there is a constraint.
        backend: What the model's name begins with.
        is_streamed: Whether replies are sent while they are written (`streaming`).
    """

    reads_prompts = True

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float,
        window: int,
        server: Server | None = None,
        *,
        backend: str = "openai",
        is_streamed: bool = False,
    ) -> None:
        self.name = f"{backend}:{endpoint.model}"
        self.identity = f"{self.name}@{endpoint.identity}"
        self.notice = f"{backend}: {endpoint.greeting}"
        self.window: int | None = window
        self._window = window
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._is_streamed = is_streamed
        self._parameters = Parameters(endpoint)
        self._client: AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._constraining = Constraining(
            endpoint,
            server,
            body_of=self._parameters.body,
            send=self._post,
            owners=self._owners,
            timeout_s=timeout_s,
        )

    @property
    def constrains(self) -> Constrains:
        """How it may be held to a constraint, as far as is known without asking the server."""
        return self._constraining.constrains

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, {self._endpoint.shown!r})"

    async def complete(self, request: Request) -> Completion:
        """Carry out one request: in one call, or a few if the server refuses a parameter.

        The first under a constraint makes a few calls more, to find out what the server takes.

        Raises:
            ModelError: There is no usable reply.
        """
        self._connect()  # the import takes its time, which is not the server's
        from pearl.llm.backends.openai.wire import at_most, reply_bytes

        try:
            async with asyncio.timeout(self._timeout_s):
                with at_most(reply_bytes(request, self._window, is_streamed=self._is_streamed)):
                    completion = await self._reply(request)
        except TimeoutError:
            raise faults.too_slow(self._timeout_s, self._endpoint) from None
        except ModelError as error:
            error.usage = error.usage and plausible(error.usage, request)
            raise
        return replies.within(completion, request, self._endpoint)

    async def _reply(self, request: Request) -> Completion:
        if request.constraint is not None:
            return await self._constraining.complete(request, request.constraint)
        body = await self._post("/chat/completions", self._parameters.body(request))
        return replies.read_completion(body, self._endpoint)

    def batches(self) -> Batches:
        """The same model by the server's Batch API: many requests in one file, replies later."""
        return Batches(
            self._endpoint,
            connect=self._connect,
            body_of=self._parameters.body,
            refused=lambda error: self._refused(error, faults.refuses_nothing),
            drop_temperature=self._parameters.drop_temperature,
            timeout_s=self._timeout_s,
        )

    async def aclose(self) -> None:
        """Let go of connections."""
        self._constraining.cancel()
        client, self._client = self._client, None
        if client and self._loop is asyncio.get_running_loop():
            await client.close()

    async def _post(
        self, path: str, body: dict[str, Any], is_of_constraint: Refuses = faults.refuses_nothing
    ) -> bytes:
        """The body that the server sends with status 200."""
        import openai

        client = self._connect()
        while True:
            try:
                if self._is_streamed:
                    return await streaming.post(client, path, body, self._endpoint)
                # As `chat.completions.create`, which takes a fifth longer to look over a prompt.
                return await client.post(path, cast_to=bytes, body=body)
            except openai.APIStatusError as error:
                if error.status_code in (400, 422):
                    mended = self._parameters.mended(body, str(error.body), error.param)
                    if mended is not None:
                        body = mended
                        continue
                raise await self._refused(error, is_of_constraint) from None
            except openai.APIConnectionError as error:
                raise faults.cut_off(error, self._endpoint) from None

    def _connect(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, Omit, Timeout

        from pearl.llm.backends.openai.wire import Wire

        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # connections belong to one event loop
            connect_s = min(CONNECT_TIMEOUT_S, self._timeout_s)
            # The client would tell any server OPENAI_ORG_ID and OPENAI_PROJECT_ID.
            of_openai = dict.fromkeys(("OpenAI-Organization", "OpenAI-Project"), Omit())
            try:
                self._client = AsyncOpenAI(
                    # Local servers ask for no key, but the client insists on one.
                    api_key=self._endpoint.key or "none",
                    base_url=self._endpoint.base,
                    default_query=self._endpoint.query,
                    default_headers={} if self._endpoint.is_openai else of_openai,  # type: ignore[arg-type]
                    max_retries=0,
                    timeout=Timeout(self._timeout_s, connect=connect_s),
                    http_client=Wire(self._endpoint),
                )
            except (ImportError, ValueError) as error:
                raise faults.no_way(error, self._endpoint) from None
            self._loop = loop
        return self._client

    async def _refused(self, error: APIStatusError, is_of_constraint: Refuses) -> ModelError:
        if faults.may_be_unknown_model(error, self._endpoint):
            served = await self._served()
            if served and self._endpoint.model not in served:
                backend = self.name.partition(":")[0]
                return faults.unknown_model(error, self._endpoint, served, backend)
        refused = faults.refused(error, self._endpoint)
        if is_of_constraint(error):
            return ModelError(refused.message, kind="unconstrained")
        return refused

    async def _served(self) -> list[str]:
        """Names of the models that the server lists; none where it does not tell."""
        import openai

        try:
            return [model.id for model in await self._listed()]
        except (openai.OpenAIError, ValueError, TimeoutError):
            return []

    async def _owners(self) -> frozenset[str] | None:
        """Whose this model is by the server's listing, or its models are; None for not now."""
        import openai

        try:
            listed = await self._listed()
        except openai.APIStatusError as error:
            is_passing = error.status_code in (408, 425, 429) or error.status_code >= 500
            return None if is_passing else frozenset()
        except (openai.APITimeoutError, TimeoutError):
            return None
        except openai.APIConnectionError as error:
            raise faults.cut_off(error, self._endpoint) from None
        except ValueError:
            return frozenset()
        its_own = [model for model in listed if model.id == self._endpoint.model]
        return frozenset(str(model.owned_by) for model in its_own or listed)

    async def _listed(self) -> list[replies.Listed]:
        async with asyncio.timeout(LIST_TIMEOUT_S):
            reply = await self._connect().models.with_raw_response.list()
        return replies.read_models(reply.content)
