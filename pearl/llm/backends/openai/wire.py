"""The connection to a server: where a request may be sent on to, and how much of a reply is read.

A redirect takes the whole prompt along, and what `OPENAI_CUSTOM_HEADERS` holds; so it is followed
within the server only. A reply is read in pieces, and no further than it may be long: the client's
own way holds whatever comes in memory, be it packed ten thousandfold or without an end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx2
from openai import DEFAULT_CONNECTION_LIMITS

from pearl.errors import ModelError
from pearl.errors.addresses import redacted
from pearl.llm import Request
from pearl.llm.backends.openai.endpoint import Endpoint

__all__ = ["Wire", "at_most", "reply_bytes"]

MAX_BYTES = 4 * 2**20
"""Bytes of a reply at most, beside those of the tokens asked for; unpacked, as all lengths here."""

BYTES_A_TOKEN = 64
"""Bytes of JSON for each token asked for: the longest are long, and escapes make six of one."""

BYTES_A_STREAMED_TOKEN = 512
"""The same where every token comes in an event of its own."""

MAX_ERROR_BYTES = 64 * 1024
"""Read of what comes with a status of failure; the rest of it would not be shown."""

MAX_REDIRECTS = 5

_PACKED = frozenset({"gzip", "deflate", "br", "zstd"})
_ASKED_FOR = frozenset({"gzip", "deflate"})
"""Those of the packings whose next piece can be no more than a thousand times what came."""

_most: ContextVar[int] = ContextVar("most", default=MAX_BYTES)


def reply_bytes(request: Request, window: int, *, is_streamed: bool = False) -> int:
    """Bytes that the reply to a request may have.

    Args:
        request: Without a limit of its own, its reply may fill the window.
        window: Of the model, in tokens.
        is_streamed: Whether the reply comes token by token.
    """
    a_token = BYTES_A_STREAMED_TOKEN if is_streamed else BYTES_A_TOKEN
    return MAX_BYTES + a_token * (request.max_output_tokens or window)


@contextmanager
def at_most(n_bytes: int) -> Iterator[None]:
    """Replies that are asked for within may be so long."""
    token = _most.set(n_bytes)
    try:
        yield
    finally:
        _most.reset(token)


class Wire(httpx2.AsyncClient):
    """The HTTP client under the official one.

    Args:
        endpoint: The only server that is spoken to.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(
            limits=DEFAULT_CONNECTION_LIMITS,
            headers={"accept-encoding": ", ".join(sorted(_ASKED_FOR, reverse=True))},
        )
        self._endpoint = endpoint

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send a request; unless the reply is wanted as a stream, read all of it.

        Raises:
            ModelError: It leads to another server, or the reply is too long.
            RequestError: There is none.
        """
        options["follow_redirects"] = False
        for _ in range(MAX_REDIRECTS + 1):
            response = await super().send(request, stream=True, **options)
            try:
                if response.next_request is None:
                    response = self._bounded(response)
                    if not stream:
                        await response.aread()
                    return response
                request = self._onward(request, response.next_request)
                await response.aclose()
            except BaseException:
                await response.aclose()
                raise
        raise ModelError(
            f"{self._endpoint.shown} sends the request on and on ({MAX_REDIRECTS} redirects)",
            kind="bad_request",
            help="give the address where it ends: --base-url",
        )

    def _onward(self, asked: httpx2.Request, onward: httpx2.Request) -> httpx2.Request:
        """The request that a redirect asks for.

        Raises:
            ModelError: It goes to another server, or would lose its body.
        """
        target = self._endpoint.quote(redacted(str(onward.url)))
        if _origin(onward.url) != _origin(asked.url):
            why, help = "which is another server", "if it is yours, give that address: --base-url"
        elif onward.method != asked.method:
            why, help = "without its body", "check the address: --base-url"
        else:
            return onward
        raise ModelError(
            f"{self._endpoint.shown} sends the request on to {target}, {why}: not followed",
            kind="bad_request",
            help=help,
        )

    def _bounded(self, response: httpx2.Response) -> httpx2.Response:
        """The same response, its body unpacked and no longer than it may be.

        Raises:
            ModelError: It is packed in a way that was not asked for.
        """
        said = response.headers.get("content-encoding", "")
        packed = [each for each in map(str.strip, said.lower().split(",")) if each in _PACKED]
        if len(packed) > 1 or not _ASKED_FOR.issuperset(packed):
            raise ModelError(
                f"the reply of {self._endpoint.shown} is packed as '{self._endpoint.quote(said)}', "
                "which was not asked for",
                kind="malformed",
            )
        headers = [pair for pair in response.headers.raw if pair[0].lower() not in _OF_BODY]
        return httpx2.Response(
            response.status_code,
            headers=headers,
            stream=_Pieces(response, self._pieces(response, _most.get())),
            request=response.request,
            extensions=response.extensions,
        )

    async def _pieces(self, response: httpx2.Response, most: int) -> AsyncIterator[bytes]:
        is_error = response.status_code >= 400
        left = MAX_ERROR_BYTES if is_error else most
        async for piece in response.aiter_bytes():
            if len(piece) > left:
                if not is_error:
                    raise self._too_long(most)
                yield piece[:left]
                return
            left -= len(piece)
            yield piece

    def _too_long(self, most: int) -> ModelError:
        return ModelError(
            f"the reply of {self._endpoint.shown} is longer than {most / 2**20:,.1f} MiB, "
            "far more than was asked for",
            kind="malformed",
            help="check the server; --max-output-tokens allows replies 64 bytes more for each token",
        )


_OF_BODY = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
"""Headers of a body that came packed and in pieces."""


class _Pieces(httpx2.AsyncByteStream):
    """The body of another response, piece by piece."""

    def __init__(self, response: httpx2.Response, pieces: AsyncIterator[bytes]) -> None:
        self._response = response
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._response.aclose()


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)
