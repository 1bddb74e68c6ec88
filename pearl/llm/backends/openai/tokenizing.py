"""Counts tokens by a server's own `/tokenize`: that of vLLM, SGLang or llama.cpp.

Counting is synchronous and may happen in any thread, so the connections belong to an event loop in a
thread of its own. Every call has a time limit.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from pearl.documents.tokens import NoTokenizerError, TokenizerError
from pearl.errors import ModelError
from pearl.llm.backends.openai import servers
from pearl.llm.backends.openai.aside import aside
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.backends.openai.faults import StatusError
from pearl.llm.backends.openai.servers import Body, Server
from pearl.llm.backends.openai.session import HttpSession
from pearl.llm.backends.openai.windows import beside

TIMEOUT_S = 5.0
"""Time limit of one call in seconds. Tokenizing takes milliseconds."""

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
