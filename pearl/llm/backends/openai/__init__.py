"""Any server that speaks OpenAI's Chat Completions: OpenAI itself, vLLM, Ollama, llama.cpp, ...

Every call returns a `Completion` or raises a `ModelError`, whatever the server sends. `sessions` sends requests by
`wire` (aiohttp: docs/decisions.md), or by `official` with a client of the caller.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from pearl.documents.tokens import DEFAULT_WINDOW, known_window
from pearl.errors import ModelError, UsageError
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Completion, Constrains, Request
from pearl.llm.backends import Abilities, ModelSettings
from pearl.llm.backends.openai import faults, replies, servers, sessions
from pearl.llm.backends.openai.constraining import Constraining, Spend
from pearl.llm.backends.openai.endpoint import KEY_VARIABLE, Endpoint, key_variable, read_key
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.replies import Listed, plausible
from pearl.llm.backends.openai.servers import Server

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire
    from pearl.llm.batches import Batches


DESCRIPTION = "any OpenAI-compatible server: openai:NAME; --base-url for one of your own"
ABILITIES = Abilities("NAME", None, key=KEY_VARIABLE, tokenizes=None)
ADDRESS_VARIABLE = "OPENAI_BASE_URL"
OWN_URL = "https://api.openai.com/v1"
_SHORT = lazy_pattern(r"^models/|:latest$|-20\d{6}$")


def create(name: str, settings: ModelSettings) -> OpenAIModel:
    """Create the model `name` of the server in `settings`, else `OPENAI_BASE_URL`, else OpenAI."""
    return create_named("openai", name, settings)


def create_named(backend: str, name: str, settings: ModelSettings) -> OpenAIModel:
    """As `create`, with the name of another backend."""
    if not name:
        help = (
            "for example openai:gpt-4o-mini"
            if backend == "openai"
            else "use the server's name for it"
        )
        raise UsageError(f"{backend}: needs the name of a model", help=help)
    is_asked = settings.is_asked
    endpoint = endpoint_of(name, settings.base_url, settings.api_key_env, is_asked=is_asked)
    kind = settings.server
    server = servers.by_address(endpoint) if kind is None else servers.load(kind)
    return OpenAIModel(
        endpoint, settings.timeout_s, settings.window, server, backend=backend, is_asked=is_asked
    )


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
    """One model of one server; a `server` of None is detected when a request has a constraint."""

    reads_prompts = True

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float,
        window: int | None,
        server: Server | None = None,
        *,
        backend: str = "openai",
        is_asked: bool = True,
        is_streamed: bool = False,
        wire: Wire | None = None,
    ) -> None:
        self.name = f"{backend}:{endpoint.model}"
        self.identity = f"{self.name}@{endpoint.identity}"
        self.notice = f"{backend}: {endpoint.greeting}"
        # As far as known without a request: an unknown server may take both forms.
        self.constrains = Constrains((server or servers.load(servers.UNKNOWN)).by)
        may_tokenize = not endpoint.is_openai if server is None else bool(server.tokenizes)
        self.tokenizer = (
            sessions.ServerTokenizer(endpoint, server) if is_asked and may_tokenize else None
        )
        self._is_asked = is_asked
        self._is_streamed = is_streamed
        self._window = window
        self._server = server
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._session = sessions.HttpSession(
            endpoint, timeout_s, backend, wire, is_streamed=is_streamed, server=server
        )
        self.caching = self._session.caching
        self._constraining = Constraining(self._session, server)

    @property
    def window(self) -> int:
        """Context window in tokens: as set, as reported by the server, or by the model's name."""
        if self._window is None:
            known = known_window(self._endpoint.model)
            # Vendors' own servers serve models with the window known for their names.
            is_told = self._endpoint.is_local or (known is None and not self._endpoint.is_openai)
            told = None
            if is_told and self._is_asked:
                told = sessions.aside(sessions.find_window(self._endpoint, self._server)).result()
            self._window = told or known or DEFAULT_WINDOW
        return self._window

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, {self._endpoint.shown!r})"

    async def complete(self, request: Request) -> Completion:
        """Send one request, repeated without a parameter that the server rejects."""
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
        sent = request.temperature if self._session.parameters.takes_temperature else None
        return replace(replies.within(completion, request, self._endpoint), temperature=sent)

    @property
    def n_probes(self) -> int:
        """The most probes of the server that constrained requests still need."""
        return self._constraining.n_probes

    async def prepare(self, request: Request, spend: Spend) -> None:
        """Probe the server for the constraint of a request, unless it was probed; each probe is a call."""
        if request.constraint is not None:
            self._session.connect()  # the import must not count towards the timeout
            await self._constraining.ready(request, spend)

    async def _reply(self, request: Request) -> Completion:
        if request.constraint is not None:
            return await self._constraining.complete(request, request.constraint)
        body = self._session.parameters.body(request)
        if self._server is not None and self._server.with_nothing is not None:
            data = await self._session.post(self._server.path, self._server.with_nothing(body))
            return self._server.read(data, self._endpoint)
        data = await self._session.post("/chat/completions", body)
        return replies.read_completion(data, self._endpoint)

    def batches(self) -> Batches:
        """The same model through the Batch API of its server."""
        from pearl.llm import batches

        return batches.create(self._session, self._server)

    async def listing(self) -> list[Listed]:
        """The models that the server lists, free of charge; empty if it has no listing."""
        try:
            return await self._session.listed()
        except StatusError as error:
            if error.status in (404, 405, 501):  # a server without a listing
                return []
            raise await self._session.refused(error) from None
        except TimeoutError:
            raise faults.too_slow(sessions.TIMEOUT_S, self._endpoint) from None
        except ValueError:
            return []

    async def served(self) -> list[str]:
        """Names of the models that the server lists."""
        listed = await self.listing()
        kind = servers.by_listing(listed, self._endpoint.model)
        if len(listed) == 1 and kind is not None and kind.is_of_any_name:
            return []
        names = [model.id for model in listed]
        short = (_SHORT.sub("", name) for name in names)
        return list(dict.fromkeys([*names, *short]))

    async def aclose(self) -> None:
        """Close connections."""
        await self._session.aclose()
        if self.tokenizer is not None:
            await self.tokenizer.aclose()
