"""Requests about one model of one server: connections, errors, listing, context window, tokenizer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from pearl.documents.digest import digest
from pearl.documents.tokens import NoTokenizerError, TokenizerError
from pearl.errors import ModelError
from pearl.llm.backends.openai import chat, faults, servers
from pearl.llm.backends.openai.api import Accepted, KeyHeaders
from pearl.llm.backends.openai.chat import Listed
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.servers import Server
from pearl.llm.concurrency import background_loop
from pearl.plugins.files import content_cache
from pearl.plugins.persistence import write_private

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire


KEPT_S = 86_400.0
"""Lifetime of stored values in seconds: a server may be restarted with another model or window."""


class ServerMemory:
    """JSON values by name about one model of one server, kept in this process and in a file of the user's cache. A private run has no such file; a damaged file is ignored."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._name = digest([endpoint.identity, endpoint.model]).hex()[:32]
        self._of_process: dict[str, Any] = {}

    def read(self, name: str) -> Any:
        """The value of a name; None if it is unknown."""
        return self._of_process[name] if name in self._of_process else self._values().get(name)

    def keep(self, name: str, value: Any, *, is_stored: bool = True) -> None:
        """Keep a value that JSON can represent."""
        self._of_process[name] = value
        path = content_cache(f"servers/{self._name}.json")
        if path is None or not is_stored:
            return
        values = {"at_s": time.time(), **self._values(), name: value}
        with suppress(OSError):
            write_private(path, json.dumps(values).encode())

    def _values(self) -> dict[str, Any]:
        path = content_cache(f"servers/{self._name}.json")
        try:
            values = json.loads(path.read_bytes()) if path else {}
        except (OSError, ValueError, RecursionError):
            return {}
        at_s = values.get("at_s") if isinstance(values, dict) else None
        is_recent = isinstance(at_s, float) and 0 <= time.time() - at_s < KEPT_S
        return values if is_recent else {}


Result = TypeVar("Result")

# Time limit in seconds of a listing or a token count, which usually take milliseconds.
TIMEOUT_S = 5.0


def aside(call: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Run a coroutine in the background event loop; can be called from any thread."""
    return asyncio.run_coroutine_threadsafe(call, background_loop("aside"))


NewWire = Callable[[Endpoint, float, KeyHeaders], "Wire"]
"""Endpoint, seconds per call, function from key to headers → connections in the running event loop."""


class HttpSession:
    """Requests about one model of one server; callers apply `timeout_s`."""

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float,
        backend: str = "openai",
        new_wire: NewWire | None = None,
        *,
        server: Server | None = None,
        memory: ServerMemory | None = None,
    ) -> None:
        kind = server or servers.load(servers.UNKNOWN)
        self.endpoint = endpoint
        self.timeout_s = timeout_s
        self.memory = memory or ServerMemory(endpoint)
        self.accepted = Accepted(endpoint, kind.caching(endpoint.model), kind.names)
        self._api = kind.api
        self._backend = backend
        self._new_wire = new_wire
        self._bound: tuple[asyncio.AbstractEventLoop, Wire] | None = None

    def connect(self) -> Wire:
        """The connections in the running event loop."""
        loop = asyncio.get_running_loop()
        bound = self._bound  # Connections are bound to an event loop, and each thread may run one
        if bound is None or bound[0] is not loop:
            # Imported on use: asyncio, ssl and others are only needed to contact a server.
            from pearl.llm.backends.openai.wire import Wire

            new_wire = self._new_wire or Wire
            try:
                wire = new_wire(self.endpoint, self.timeout_s, self._api.key_headers)
            except ValueError as error:
                raise ModelError(
                    f"cannot connect to {self.endpoint.shown}: {self.endpoint.quote(str(error))}",
                    kind="bad_request",
                    help="check the variables HTTP_PROXY, HTTPS_PROXY and ALL_PROXY",
                ) from None
            self._bound = bound = loop, wire
        return bound[1]

    async def aclose(self) -> None:
        """Close connections."""
        bound, self._bound = self._bound, None
        if bound and bound[0] is asyncio.get_running_loop():
            await bound[1].close()

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        refuses_form: Callable[[StatusError], bool] = lambda error: False,
    ) -> bytes:
        """Post a body, and again without a parameter that the server rejects; return the body of the reply. An error is `unconstrained` if it `refuses_form`."""
        wire = self.connect()
        body = dict(body)
        while True:
            try:
                return await wire.post(path, body)
            except StatusError as error:
                if error.status in (400, 422, 500):
                    mended = self.accepted.mended(body, str(error.body), error.param)
                    if mended is not None:
                        body = mended
                        continue
                refused = await self.refused(error)
                if refuses_form(error):
                    refused = ModelError(refused.message, kind="unconstrained")
                raise refused from None

    async def refused(self, error: StatusError) -> ModelError:
        """The error for a status other than 2xx; for an unknown model, it suggests a similar name."""
        if faults.may_be_unknown_model(error, self.endpoint):
            listed: list[str] = []
            with suppress(StatusError, ModelError, ValueError, TimeoutError):
                listed = [model.id for model in await self.listed()]
            if listed and self.endpoint.model not in listed:
                return faults.unknown_model(error, self.endpoint, listed, self._backend)
        return faults.refused(error, self.endpoint)

    async def listed(self) -> list[Listed]:
        """The models that the server lists."""
        wire = self.connect()  # The import must not count towards the timeout
        async with asyncio.timeout(TIMEOUT_S):
            return chat.read_models(await wire.get("/models", self._api.page))

    async def known_listing(self) -> list[Listed]:
        """The models that the server lists, requested once per process, or stored by an earlier command; empty if it lists none."""
        with suppress(ValueError):
            if (kept := self.memory.read("listing")) is not None:
                return chat.listed({"data": kept})
        try:
            listed = await self.listed()
        except StatusError as error:
            if error.status in (408, 425, 429) or error.status >= 500:
                raise
            listed = []
        except ValueError:
            listed = []
        own = [model for model in listed if model.id == self.endpoint.model] or listed
        # A catalogue without the model is not stored: the model may be added to it.
        self.memory.keep("listing", [model.fields for model in own], is_stored=len(own) <= 1)
        return own


_WINDOWS = (
    "max_model_len",  # vLLM, SGLang
    "context_length",  # OpenRouter, Together AI, Fireworks AI
    "context_window",  # Groq
    "max_context_length",  # Mistral AI
    "max_input_tokens",  # Anthropic
)
LEAST, MOST = 256, 10**8  # Tokens that a window may have


def listed_window(model: Listed) -> int | None:
    """The window in tokens that a listing reports for a model; the smallest if it reports several."""
    fields = model.fields
    # llama.cpp reports its window as `n_ctx`; `n_ctx_train` is the window used in training.
    windows = [_window(fields.get("meta"), "n_ctx"), *(_window(fields, name) for name in _WINDOWS)]
    return min((window for window in windows if window is not None), default=None)


async def find_window(
    endpoint: Endpoint, server: Server | None, memory: ServerMemory
) -> int | None:
    """The window in tokens that a server reports for a model; None if unknown."""
    session = HttpSession(endpoint, TIMEOUT_S, server=server, memory=memory)
    try:
        listed = await session.known_listing()
        entries = [model for model in listed if model.id == endpoint.model]
        # A server with one model accepts any name for it.
        for entry in entries or (listed if len(listed) == 1 else ()):
            if (window := listed_window(entry)) is not None:
                return window
        kind = server or servers.by_listing(listed, endpoint.model)
        if kind is None or not kind.tells_props:
            return None
        if (props := session.memory.read("props")) is None:
            async with asyncio.timeout(TIMEOUT_S):
                # Older versions of llama.cpp report the window of one slot here.
                props = json.loads(await session.connect().get("/../props"))
            session.memory.keep("props", props)
    except (StatusError, ModelError, ValueError, TimeoutError, RecursionError):
        return None
    finally:
        await session.aclose()
    return _window(isinstance(props, dict) and props.get("default_generation_settings"), "n_ctx")


def _window(fields: Any, name: str) -> int | None:
    value: Any = fields.get(name) if isinstance(fields, dict) else None
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and LEAST <= value <= MOST else None


_MESSAGE = "Who?"


class ServerTokenizer:
    """The tokenizer of one model of one server."""

    def __init__(
        self, endpoint: Endpoint, server: Server | None = None, memory: ServerMemory | None = None
    ) -> None:
        self.name = f"the tokenizer of {endpoint.model} at {endpoint.shown}"
        self._server = server
        self._session = HttpSession(endpoint, TIMEOUT_S, memory=memory)

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return aside(self._count(text)).result()

    def frame_tokens(self) -> int:
        """Tokens that the chat template adds to one message; 0 if the server does not report them."""
        return aside(self._count(_MESSAGE, is_framed=True)).result()

    async def aclose(self) -> None:
        """Close connections; a later count opens new ones."""
        await asyncio.wrap_future(aside(self._session.aclose()))

    async def _count(self, text: str, *, is_framed: bool = False) -> int:
        """Count the tokens of a text; if it `is_framed`, those that the chat template adds to it instead."""
        try:
            session, server = await self._connected()
            async with asyncio.timeout(TIMEOUT_S):
                n_framed = await _prompt_tokens(text, session, server) if is_framed else 0
                # Special tokens in the text are counted as ordinary text.
                plain = ("add_special", "parse_special")
                names = plain if server.tokenizes == "content" else ("add_special_tokens",)
                body = {"model": session.endpoint.model, server.tokenizes: scrubbed(text)}
                n = await _tokens(body | dict.fromkeys(names, False), session)
        except TimeoutError:
            raise TokenizerError(f"no answer within {TIMEOUT_S:g} s") from None
        except ModelError as error:
            # An older server does not accept messages, or cannot apply the template.
            if is_framed and error.kind not in ("malformed", "deadline"):
                return 0
            raise TokenizerError(error.message) from None
        return n_framed - n if is_framed else n

    async def _connected(self) -> tuple[HttpSession, Server]:
        """The session and the kind of the server; tokenizers of files have their own."""
        if self._server is None:
            listed: list[Listed] = []
            with suppress(StatusError, ModelError, TimeoutError):
                listed = await self._session.known_listing()
            self._server = servers.by_listing(listed, self._session.endpoint.model)
        if self._server is None or not self._server.tokenizes:
            raise NoTokenizerError("servers of this kind have no tokenizer")
        return self._session, self._server


class _Templated(Struct):
    prompt: str


class _Tokens(Struct):
    tokens: list[int]


async def _prompt_tokens(text: str, session: HttpSession, server: Server) -> int:
    """The tokens of a message within the chat template of the model."""
    messages = [{"role": "user", "content": text}]
    body: dict[str, Any] = {"model": session.endpoint.model, "messages": messages}
    if server.tokenizes == "content":
        template = await session.post("/../apply-template", body)
        prompt = chat.read_as(_Templated, template, session.endpoint, "prompt").prompt
        return await _tokens(
            {"content": prompt, "add_special": True, "parse_special": True}, session
        )
    return await _tokens({**body, "add_generation_prompt": True}, session)


async def _tokens(body: Mapping[str, Any], session: HttpSession) -> int:
    reply = await session.post("/../tokenize", body)
    return len(chat.read_as(_Tokens, reply, session.endpoint, "list of tokens").tokens)
