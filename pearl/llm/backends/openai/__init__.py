"""Any server that speaks OpenAI's Chat Completions: OpenAI itself, vLLM, Ollama, llama.cpp, ...

Every call returns a `Completion` or raises a `ModelError` of the right kind, whatever the server
sends. `wire` sends the request by aiohttp; `replies` validates the response; `faults` maps errors
(docs/decisions/0014-transport.md). `official` sends it by an official client of the caller.
`constraining` handles constrained requests and detects what the server supports; `servers` has the
kinds of servers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pearl.documents.tokens import DEFAULT_WINDOW, known_window
from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Constrains, Request
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.openai import faults, replies, servers, streaming
from pearl.llm.backends.openai.batches import Batches
from pearl.llm.backends.openai.constraining import Constraining
from pearl.llm.backends.openai.endpoint import (
    ANY_KEY,
    KEY_VARIABLE,
    Endpoint,
    Parameters,
    key_variable,
    read_key,
)
from pearl.llm.backends.openai.faults import Refuses, StatusError
from pearl.llm.backends.openai.replies import Listed, plausible
from pearl.llm.backends.openai.servers import Server
from pearl.llm.backends.openai.sessions import (
    LIST_TIMEOUT_S,
    HttpSession,
    ServerTokenizer,
    aside,
    find_window,
)

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire

__all__ = [
    "ABILITIES",
    "ADDRESS_VARIABLE",
    "ANY_KEY",
    "DESCRIPTION",
    "OpenAIModel",
    "address",
    "create",
    "create_named",
    "endpoint_of",
    "key_variable",
]

DESCRIPTION = "any OpenAI-compatible server: openai:NAME; --base-url for one of your own"

ADDRESS_VARIABLE = "OPENAI_BASE_URL"

OWN_URL = "https://api.openai.com/v1"


def create(name: str, settings: ModelSettings) -> OpenAIModel:
    """Create the model `name` of the server in `settings`, else `OPENAI_BASE_URL`, else OpenAI."""
    return create_named("openai", name, settings)


def create_named(backend: str, name: str, settings: ModelSettings) -> OpenAIModel:
    """The same under another name than `openai` (`pearl.llm.backends`)."""
    if not name:
        raise UsageError(
            f"{backend}: needs the name of a model",
            help="for example openai:gpt-4o-mini"
            if backend == "openai"
            else "as the server names it",
        )
    endpoint = endpoint_of(
        name, settings.base_url, settings.api_key_env, is_asked=settings.is_asked
    )
    kind = settings.server
    server = servers.by_address(endpoint) if kind is None else servers.load(kind)
    model = OpenAIModel(endpoint, settings.timeout_s, settings.window, server, backend=backend)
    if not settings.is_asked:
        model.tokenizer = None
        model.asks_window = False
    return model


def endpoint_of(
    name: str, base_url: str | None, api_key_env: str | None, *, is_asked: bool
) -> Endpoint:
    """The model `name` of a server, with the key for it."""
    url = base_url or os.environ.get(ADDRESS_VARIABLE, "").strip() or OWN_URL
    variable = key_variable(url) if api_key_env is None else api_key_env
    key = read_key(variable) if is_asked else ""
    endpoint = Endpoint(url, name, key, variable if key else "")
    if is_asked and not key and (api_key_env or endpoint.is_openai):
        raise ModelError(
            f"{endpoint.shown} requires a key, but {api_key_env or KEY_VARIABLE} is not set",
            kind="auth",
            help=f"set {api_key_env or KEY_VARIABLE}, or name your own server with --base-url",
        )
    return endpoint


def address(settings: ModelSettings) -> str:
    """The address of the server; "" for OpenAI's own."""
    return settings.base_url or os.environ.get(ADDRESS_VARIABLE, "").strip()


class OpenAIModel:
    """One model of one server."""

    reads_prompts = True

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float,
        window: int | None,
        server: Server | None = None,
        *,
        backend: str = "openai",
        is_streamed: bool = False,
        wire: Wire | None = None,
    ) -> None:
        self.name = f"{backend}:{endpoint.model}"
        self.identity = f"{self.name}@{endpoint.identity}"
        self.notice = f"{backend}: {endpoint.greeting}"
        self.asks_window = True
        self._window = window
        self._server = server
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._is_streamed = is_streamed
        self._likelihoods = None if server is None else server.likelihoods
        self._parameters = Parameters(endpoint)
        self._session = HttpSession(endpoint, timeout_s, backend, wire)
        may_tokenize = not endpoint.is_openai if server is None else bool(server.tokenizes)
        self.tokenizer = ServerTokenizer(endpoint, server) if may_tokenize else None
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
        """Its support for constraints, as far as known without a request."""
        return self._constraining.constrains

    @property
    def window(self) -> int:
        """Context window in tokens: as set, as reported by the server, or by the model's name."""
        if self._window is None:
            known = known_window(self._endpoint.model)
            # The makers' servers have the windows that are known of their models.
            is_told = self._endpoint.is_local or (known is None and not self._endpoint.is_openai)
            told = None
            if is_told and self.asks_window:
                told = aside(find_window(self._endpoint, self._server)).result()
            self._window = told or known or DEFAULT_WINDOW
        return self._window

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, {self._endpoint.shown!r})"

    async def complete(self, request: Request) -> Completion:
        """Send one request, repeated without a parameter that the server rejects.

        The first constrained request is preceded by probes of the server.
        """
        self._session.connect()  # the import must not count towards the timeout
        from pearl.llm.backends.openai.wire import at_most, reply_bytes

        window = self._window or known_window(self._endpoint.model) or DEFAULT_WINDOW
        try:
            async with asyncio.timeout(self._timeout_s):
                with at_most(reply_bytes(request, window, is_streamed=self._is_streamed)):
                    completion = await self._reply(request)
        except TimeoutError:
            raise faults.too_slow(self._timeout_s, self._endpoint) from None
        except ModelError as error:
            error.usage = error.usage and plausible(error.usage, request)
            raise
        return replies.within(completion, request, self._endpoint)

    async def _reply(self, request: Request) -> Completion:
        if request.candidates:
            if self._likelihoods is None:
                raise ModelError(f"{self.name} does not report likelihoods", kind="bad_request")
            return await self._likelihoods(request, self._endpoint, self._post_whole)
        if request.constraint is not None:
            return await self._constraining.complete(request, request.constraint)
        body = await self._post("/chat/completions", self._parameters.body(request))
        return replies.read_completion(body, self._endpoint)

    def batches(self) -> Batches:
        """The same model through the server's Batch API."""
        return Batches(self._endpoint, self._session, self._parameters, self._timeout_s)

    async def listing(self) -> list[Listed]:
        """The models that the server lists, which costs nothing; empty if it does not list."""
        try:
            return await self._session.listed()
        except StatusError as error:
            if error.status in (404, 405, 501):  # it is there, and does not list
                return []
            raise await self._session.refused(error) from None
        except TimeoutError:
            raise faults.too_slow(LIST_TIMEOUT_S, self._endpoint) from None
        except ValueError:
            return []

    async def served(self) -> list[str]:
        """Names of the models that the server lists.

        With the short forms that it takes, too (`model` for Ollama's `model:latest` and Google's
        `models/model`); empty if it lists none, or has one model and takes any name for it.
        """
        listed = await self.listing()
        kind = servers.by_owner({str(model.owned_by) for model in listed})
        if len(listed) == 1 and kind is not None and kind.is_of_any_name:
            return []
        names = [model.id for model in listed]
        short = (name.removeprefix("models/").removesuffix(":latest") for name in names)
        return list(dict.fromkeys([*names, *short]))

    async def aclose(self) -> None:
        """Close connections."""
        await self._session.aclose()
        if self.tokenizer is not None:
            await self.tokenizer.aclose()

    async def _post(
        self, path: str, body: dict[str, Any], is_of_constraint: Refuses = faults.refuses_nothing
    ) -> bytes:
        """Post a body and return that of the response with status 200."""
        wire = self._session.connect()
        while True:
            try:
                if self._is_streamed:
                    return await streaming.post(wire, path, body, self._endpoint)
                return await wire.post(path, body)
            except StatusError as error:
                if error.status in (400, 422):
                    mended = self._parameters.mended(body, str(error.body), error.param)
                    if mended is not None:
                        body = mended
                        continue
                raise await self._refused(error, is_of_constraint) from None

    async def _post_whole(self, path: str, body: Mapping[str, Any]) -> bytes:
        """As `_post`, without streaming and without changes to the body."""
        try:
            return await self._session.connect().post(path, body)
        except StatusError as error:
            raise await self._session.refused(error) from None

    async def _refused(self, error: StatusError, is_of_constraint: Refuses) -> ModelError:
        refused = await self._session.refused(error)
        if is_of_constraint(error):
            return ModelError(refused.message, kind="unconstrained")
        return refused

    async def _owners(self) -> frozenset[str] | None:
        """`owned_by` of this model, or of all listed models; None if unavailable for now."""
        try:
            listed = await self._session.listed()
        except StatusError as error:
            is_passing = error.status in (408, 425, 429) or error.status >= 500
            return None if is_passing else frozenset()
        except TimeoutError:
            return None
        except ModelError as error:
            if error.kind == "deadline":
                return None
            raise
        except ValueError:
            return frozenset()
        its_own = [model for model in listed if model.id == self._endpoint.model]
        return frozenset(str(model.owned_by) for model in its_own or listed)


ABILITIES = Abilities("NAME", None, key=KEY_VARIABLE, tokenizes=None)
