"""Requests about one model of one server: connections, errors, listing, context window, tokenizer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from pearl.documents.digest import digest
from pearl.documents.tokens import NoTokenizerError, TokenizerError
from pearl.errors import ModelError
from pearl.llm import Usage
from pearl.llm.backends.openai import chat, faults, servers
from pearl.llm.backends.openai.api import Accepted
from pearl.llm.backends.openai.chat import Listed
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.servers import Server
from pearl.llm.concurrency import background_loop
from pearl.llm.flaws import Watch, repeats
from pearl.llm.progress import MAX_TAIL, CallProgress, report
from pearl.plugins.files import content_cache
from pearl.plugins.persistence import write_private

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire


class _Delta(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None


class _StreamedChoice(BaseModel):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Prompt(BaseModel):
    """Progress on the prompt, as reported by llama.cpp."""

    total: int = 0
    processed: int = 0
    cache: int = 0


class _Chunk(BaseModel):
    choices: list[_StreamedChoice] = []
    usage: dict[str, Any] | None = None
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    prompt_progress: _Prompt | None = None


async def streamed(wire: Wire, path: str, body: dict[str, Any], endpoint: Endpoint) -> bytes:
    """Post a body with streaming; returns the body of the same reply without streaming."""
    body = {
        **body,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    reply = _StreamedReply(endpoint.model)
    try:
        async with aclosing(wire.stream(path, body)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, dict) and chunk.get("error"):
                    raise faults.reported(chunk["error"], endpoint)
                reply.add(_Chunk.model_validate(chunk))
    except (ValidationError, ValueError, RecursionError):
        reply.finish_reason = None
    if reply.finish_reason is None:
        raise ModelError(f"the stream of {endpoint.shown} ends early", kind="transport")
    return reply.body()


class _StreamedReply:
    """An incomplete reply."""

    def __init__(self, model: str) -> None:
        self.finish_reason: str | None = None
        self._requested_model = model
        self._told: dict[str, Any] = {}  # the latest of each field beside the choices
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._tail = ""
        self._prompt = _Prompt()
        self._watch = Watch()

    def add(self, chunk: _Chunk) -> None:
        """Append a chunk; raises `ModelError` if the reply repeats itself."""
        told = chunk.model_dump(exclude={"choices", "prompt_progress"})
        self._told |= {name: value for name, value in told.items() if value}
        if chunk.prompt_progress is not None:
            self._prompt = prompt = chunk.prompt_progress
            report(CallProgress("reading", prompt.processed, prompt.total))
        for choice in chunk.choices[:1]:
            self.finish_reason = choice.finish_reason or self.finish_reason
            text, reasoning = choice.delta.content or "", choice.delta.reasoning_content or ""
            if text or reasoning:
                self._write(text, reasoning)

    def _write(self, text: str, reasoning: str) -> None:
        self._texts.append(text)
        self._reasoning.append(reasoning)
        n_tokens = len(self._texts)
        self._tail = (self._tail + text)[-MAX_TAIL:]
        report(CallProgress("writing", n_tokens, text=self._tail))
        if (loop := self._watch.add(reasoning + text)) is not None:
            usage = Usage(self._prompt.total, n_tokens, self._prompt.cache)
            raise repeats(self._requested_model, loop, usage, "".join(self._texts))

    def body(self) -> bytes:
        """The body of the whole reply."""
        message = {"content": "".join(self._texts), "reasoning_content": "".join(self._reasoning)}
        choice = {"message": message, "finish_reason": self.finish_reason}
        return json.dumps({**self._told, "choices": [choice]}).encode()


KEPT_S = 86_400.0
"""Seconds for which it counts: a server may be started again with another model or window."""


class ServerMemory:
    """JSON values by name about one model of one server: of this process, and in a file of the user's cache, which is none in a private run and may be damaged."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._name = digest([endpoint.identity, endpoint.model]).hex()[:32]
        self._of_process: dict[str, Any] = {}

    def read(self, name: str) -> Any:
        """The value of a name; None if it is unknown."""
        return self._of_process.get(name, self._values().get(name))

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

# Time limit of a listing or a count in seconds: both take milliseconds.
TIMEOUT_S = 5.0

_LISTING = TypeAdapter(list[Listed])


def aside(call: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Run a call in the background event loop, from any thread."""
    return asyncio.run_coroutine_threadsafe(call, background_loop("aside"))


class HttpSession:
    """Requests about one model of one server; callers apply `timeout_s`."""

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float,
        backend: str = "openai",
        official: Wire | None = None,
        *,
        is_streamed: bool = False,
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
        self._official = official
        self._is_streamed = is_streamed
        self._wire: Wire | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def connect(self) -> Wire:
        """The connections of the running event loop."""
        if self._official is not None:
            return self._official
        from pearl.llm.backends.openai.wire import Wire

        loop = asyncio.get_running_loop()
        if self._wire is None or self._loop is not loop:  # connections are bound to an event loop
            try:
                self._wire = Wire(self.endpoint, self.timeout_s, self._api.key_headers)
            except ValueError as error:
                raise ModelError(
                    f"cannot connect to {self.endpoint.shown}: {self.endpoint.quote(str(error))}",
                    kind="bad_request",
                    help="check the variables HTTP_PROXY, HTTPS_PROXY and ALL_PROXY",
                ) from None
            self._loop = loop
        return self._wire

    async def aclose(self) -> None:
        """Close connections."""
        wire, self._wire = self._wire, None
        if wire and self._loop is asyncio.get_running_loop():
            await wire.close()

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        refuses_form: Callable[[StatusError], bool] = lambda error: False,
    ) -> bytes:
        """Post a body, again without a parameter that the server rejects; returns that of the reply. An error is `unconstrained` if it `refuses_form`."""
        wire = self.connect()
        body = dict(body)
        while True:
            try:
                if self._is_streamed and path == "/chat/completions":
                    return await streamed(wire, path, body, self.endpoint)
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
        """The error for a status other than 2xx; for an unknown model it names a similar one."""
        if faults.may_be_unknown_model(error, self.endpoint):
            listed: list[str] = []
            with suppress(StatusError, ModelError, ValueError, TimeoutError):
                listed = [model.id for model in await self.listed()]
            if listed and self.endpoint.model not in listed:
                return faults.unknown_model(error, self.endpoint, listed, self._backend)
        return faults.refused(error, self.endpoint)

    async def listed(self) -> list[Listed]:
        """The models that the server lists."""
        wire = self.connect()  # its import of aiohttp must not count towards the timeout
        async with asyncio.timeout(TIMEOUT_S):
            return chat.read_models(await wire.get("/models", self._api.page))

    async def known_listing(self) -> list[Listed]:
        """The models that the server lists, asked for once a process, or known of an earlier command; empty if it lists none."""
        with suppress(ValidationError):
            if (kept := self.memory.read("listing")) is not None:
                return _LISTING.validate_python(kept)
        try:
            listed = await self.listed()
        except StatusError as error:
            if error.status in (408, 425, 429) or error.status >= 500:
                raise
            listed = []
        except ValueError:
            listed = []
        own = [model for model in listed if model.id == self.endpoint.model] or listed
        # A catalogue is not stored: the model may be added to it.
        self.memory.keep("listing", _LISTING.dump_python(own), is_stored=len(own) <= 1)
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
    """The window in tokens that a listing reports for a model, the smallest of several."""
    fields = model.model_extra or {}
    # llama.cpp reports its window as `n_ctx`; `n_ctx_train` is that of the training.
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
        # A server of one model accepts any name for it.
        for entry in entries or (listed if len(listed) == 1 else ()):
            if (window := listed_window(entry)) is not None:
                return window
        kind = server or servers.by_listing(listed, endpoint.model)
        if kind is None or not kind.tells_props:
            return None
        if (props := session.memory.read("props")) is None:
            async with asyncio.timeout(TIMEOUT_S):
                # An older llama.cpp reports the window of one slot here.
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
        """Tokens of the chat template around one message; 0 if the server does not report them."""
        return aside(self._count(_MESSAGE, is_framed=True)).result()

    async def aclose(self) -> None:
        """End the connections; a later count opens new ones."""
        await asyncio.wrap_future(aside(self._close()))

    async def _count(self, text: str, *, is_framed: bool = False) -> int:
        """Tokens of a text, or those that the template adds to it."""
        try:
            session, server = await self._connected()
            async with asyncio.timeout(TIMEOUT_S):
                n_framed = await _prompt_tokens(text, session, server) if is_framed else 0
                n = await _text_tokens(text, session, server)
        except TimeoutError:
            raise TokenizerError(f"no answer within {TIMEOUT_S:g} s") from None
        except ModelError as error:
            # An older server does not accept messages, or it cannot apply the template.
            if is_framed and error.kind not in ("malformed", "deadline"):
                return 0
            raise TokenizerError(error.message) from None
        return n_framed - n if is_framed else n

    async def _connected(self) -> tuple[HttpSession, Server]:
        """The session and the kind of the server."""
        if self._server is None:
            listed: list[Listed] = []
            with suppress(StatusError, ModelError, TimeoutError):
                listed = await self._session.known_listing()
            self._server = servers.by_listing(listed, self._session.endpoint.model)
        if self._server is None or not self._server.tokenizes:
            raise NoTokenizerError("servers of this kind have no tokenizer")
        return self._session, self._server

    async def _close(self) -> None:
        await self._session.aclose()


class _Templated(BaseModel):
    prompt: str


class _Tokens(BaseModel):
    tokens: list[int]


async def _text_tokens(text: str, session: HttpSession, server: Server) -> int:
    """The tokens of a text, in which a mark of the chat template is no token of its own."""
    body = {"model": session.endpoint.model, server.tokenizes: scrubbed(text)}
    if server.tokenizes == "content":
        return await _tokens({**body, "add_special": False, "parse_special": False}, session)
    return await _tokens({**body, "add_special_tokens": False}, session)


async def _prompt_tokens(text: str, session: HttpSession, server: Server) -> int:
    """The tokens of a message in the chat template of the model."""
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
