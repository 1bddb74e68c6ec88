"""Connections of one model of one server; its listing, context window and tokenizer."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from pearl.documents.tokens import NoTokenizerError, TokenizerError
from pearl.errors import ModelError
from pearl.llm.backends.openai import faults, replies, servers
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.replies import Listed
from pearl.llm.backends.openai.servers import Body, Server

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire


Result = TypeVar("Result")


def aside(call: Coroutine[Any, Any, Result]) -> Future[Result]:
    """Run a call in the background event loop, from any thread."""
    return asyncio.run_coroutine_threadsafe(call, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all such calls; its thread ends with the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aside", daemon=True).start()
    return loop


LIST_TIMEOUT_S = 5.0


class HttpSession:
    """Calls of one model of one server."""

    def __init__(
        self,
        endpoint: Endpoint,
        timeout_s: float,
        kind: str = "openai",
        official: Wire | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._kind = kind
        self._official = official
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
                self._wire = Wire(self._endpoint, self._timeout_s)
            except ValueError as error:
                raise faults.no_way(error, self._endpoint) from None
            self._loop = loop
        return self._wire

    async def aclose(self) -> None:
        """Close connections."""
        wire, self._wire = self._wire, None
        if wire and self._loop is asyncio.get_running_loop():
            await wire.close()

    async def refused(self, error: StatusError) -> ModelError:
        """The error for a status other than 2xx, which names similar models if this is unknown."""
        if faults.may_be_unknown_model(error, self._endpoint):
            served = await self._served()
            if served and self._endpoint.model not in served:
                return faults.unknown_model(error, self._endpoint, served, self._kind)
        return faults.refused(error, self._endpoint)

    async def listed(self) -> list[replies.Listed]:
        """The models that the server lists."""
        async with asyncio.timeout(LIST_TIMEOUT_S):
            return replies.read_models(await self.connect().get("/models"))

    async def _served(self) -> list[str]:
        """Names of the models that the server lists; empty if it does not."""
        try:
            return [model.id for model in await self.listed()]
        except (StatusError, ModelError, ValueError, TimeoutError):
            return []


FIELDS = (
    "max_model_len",  # vLLM, SGLang
    "context_length",  # OpenRouter, Together AI, Fireworks AI
    "context_window",  # Groq
    "max_context_length",  # Mistral AI
)

LEAST, MOST = 256, 10**8
"""Tokens that a window may have."""


def listed_window(model: Listed) -> int | None:
    """The window in tokens that a listing reports for a model, the smallest of several."""
    told = model.model_extra or {}
    meta = told.get("meta")
    of_llamacpp = meta.get("n_ctx") if isinstance(meta, dict) else None  # n_ctx_train is another
    windows = map(_window, [of_llamacpp, *(told.get(field) for field in FIELDS)])
    return min((window for window in windows if window is not None), default=None)


async def find_window(endpoint: Endpoint, server: Server | None) -> int | None:
    """The window in tokens that a server reports for a model; None if unknown."""
    session = HttpSession(endpoint, LIST_TIMEOUT_S)
    session.connect()  # the import must not count towards the timeout
    try:
        listed = await session.listed()
        its_own = _its_own(listed, endpoint.model)
        if its_own is not None and (window := listed_window(its_own)) is not None:
            return window
        kind = server or servers.by_owner({str(model.owned_by) for model in listed})
        return await _window_of_props(endpoint) if kind and kind.tells_props else None
    except (StatusError, ModelError, ValueError, TimeoutError):
        return None
    finally:
        await session.aclose()


def beside(endpoint: Endpoint) -> Endpoint:
    """The same server without `/v1`, for paths specific to a kind of server."""
    parts = urlsplit(endpoint.url)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return replace(endpoint, url=urlunsplit(parts._replace(path=path)))


def _its_own(listed: Sequence[Listed], name: str) -> Listed | None:
    """The entry of a model in a listing; the only entry matches any name."""
    found = [model for model in listed if model.id == name]
    return next(iter(found or (listed if len(listed) == 1 else ())), None)


async def _window_of_props(endpoint: Endpoint) -> int | None:
    """The window of one slot of llama.cpp's server."""
    session = HttpSession(beside(endpoint), LIST_TIMEOUT_S)
    try:
        async with asyncio.timeout(LIST_TIMEOUT_S):
            told = json.loads(await session.connect().get("/props"))
    except RecursionError:
        return None
    finally:
        await session.aclose()
    settings = told.get("default_generation_settings") if isinstance(told, dict) else None
    return _window(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _window(told: Any) -> int | None:
    is_number = isinstance(told, int) and not isinstance(told, bool)
    return told if is_number and LEAST <= told <= MOST else None


TIMEOUT_S = 5.0  # Time limit of one call in seconds. Tokenizing takes milliseconds.
_MESSAGE = "Who?"


class ServerTokenizer:
    """The tokenizer of one model of one server."""

    def __init__(self, endpoint: Endpoint, server: Server | None = None, name: str = "") -> None:
        self.name = name or f"the tokenizer of {endpoint.model} at {endpoint.shown}"
        self._model = endpoint.model
        self._server = server
        self._listing = HttpSession(endpoint, TIMEOUT_S)
        self._session = HttpSession(beside(endpoint), TIMEOUT_S)

    def count(self, text: str) -> int:
        """Count the tokens of a text."""
        return aside(self._count(text)).result()

    def frame_tokens(self) -> int:
        """Tokens of the chat template around one message; 0 if the server does not tell."""
        return aside(self._frame_tokens()).result()

    async def aclose(self) -> None:
        """End the connections; a later count opens new ones."""
        for session in (self._listing, self._session):
            await asyncio.wrap_future(aside(session.aclose()))

    async def _count(self, text: str, *, is_framed: bool = False) -> int:
        body: Body
        text = scrubbed(text)
        if (await self._kind()).tokenizes == "content":
            # The marks of a template are tokens of their own, in a text they are letters.
            body = {"content": text, "add_special": is_framed, "parse_special": is_framed}
        else:
            body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        return _n_tokens(await self._posted("/tokenize", body))

    async def _frame_tokens(self) -> int:
        messages = [{"role": "user", "content": _MESSAGE}]
        body: Body = {"model": self._model, "messages": messages, "add_generation_prompt": True}
        with suppress(_RefusedError):  # by older servers, and those that take no messages here
            if (await self._kind()).tokenizes == "content":
                shown = await self._posted("/apply-template", body)
                if not isinstance(shown, dict) or not isinstance(shown.get("prompt"), str):
                    raise TokenizerError("/apply-template answers something else")
                framed = await self._count(shown["prompt"], is_framed=True)
            else:
                framed = _n_tokens(await self._posted("/tokenize", body))
            return framed - await self._count(_MESSAGE)
        return 0

    async def _kind(self) -> Server:
        if self._server is None:
            self._listing.connect()  # the import must not count towards the timeout
            try:
                listed = await self._listing.listed()
            except (StatusError, ModelError, ValueError, TimeoutError):
                listed = []
            its_own = [model for model in listed if model.id == self._model]
            owners = {str(model.owned_by) for model in its_own or listed}
            self._server = servers.by_owner(owners)
        if self._server is None or not self._server.tokenizes:
            raise NoTokenizerError("a server of a kind without one")
        return self._server

    async def _posted(self, path: str, body: Body) -> Any:
        wire = self._session.connect()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return json.loads(await wire.post(path, body))
        except StatusError as error:
            raise _RefusedError(f"{path}: status {error.status}") from None
        except TimeoutError:
            raise TokenizerError(f"{path}: no answer within {TIMEOUT_S:g} s") from None
        except (ValueError, RecursionError):
            raise TokenizerError(f"{path} answers no JSON") from None
        except ModelError as error:
            raise TokenizerError(f"{path}: {error.message}") from None


class _RefusedError(TokenizerError):
    """The server answers with a status of failure."""


def _n_tokens(said: object) -> int:
    """The number of tokens in an answer, which lists them."""
    tokens = said.get("tokens") if isinstance(said, dict) else None
    if not isinstance(tokens, list):
        raise TokenizerError("/tokenize answers without tokens")
    return len(tokens)
