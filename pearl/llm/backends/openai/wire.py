"""The connection to a server: where a request may be sent on to, and how much of a reply is read.

A redirect takes the whole prompt along, and what `OPENAI_CUSTOM_HEADERS` holds; so it is followed
within the server only. A reply is read and unpacked in pieces, and no further than it may be long.
What comes with a status of failure is a `StatusError`, what does not come a `ModelError`.
"""

from __future__ import annotations

import json
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import aiohttp
from multidict import CIMultiDict
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Omit
from yarl import URL

from pearl.errors import ModelError
from pearl.errors.escaping import json_bytes, redacted
from pearl.llm import Request
from pearl.llm.backends.openai import faults
from pearl.llm.backends.openai.connections import connector_of, proxy_of
from pearl.llm.backends.openai.endpoint import Endpoint

CONNECT_TIMEOUT_S = 10.0

MAX_HEADER_BYTES = 64 * 1024
"""Of one header."""

MAX_BYTES = 4 * 2**20
"""Bytes of a reply at most, beside those of the tokens asked for; unpacked, as all lengths here."""

BYTES_A_TOKEN = 64
"""Bytes of JSON for each token asked for: the longest are long, and escapes make six of one."""

BYTES_A_STREAMED_TOKEN = 512
"""The same where every token comes in an event of its own."""

MAX_ERROR_BYTES = 64 * 1024
"""Read of what comes with a status of failure; the rest of it would not be shown."""

PIECE_BYTES = 64 * 1024
"""Unpacked at once: a byte that came may stand for a thousand."""

MAX_REDIRECTS = 5

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_WITH_BODY = frozenset({307, 308})
"""Those that leave a request what it is; after the others it is a GET."""

_PACKED = frozenset({"gzip", "deflate", "br", "zstd"})
_ASKED_FOR = ("gzip", "deflate")

_most: ContextVar[int] = ContextVar("most", default=MAX_BYTES)


def reply_bytes(request: Request, window: int, *, is_streamed: bool = False) -> int:
    """Bytes that the reply to a request may have."""
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


class Wire:
    """Connections to one server, in the event loop that runs when it is made."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._endpoint = endpoint
        client = _official(endpoint)
        url = URL(str(client.base_url))
        self._headers_of_json = _headers(client, url)
        self._headers = self._headers_of_json.copy()
        self._headers.popall("content-type", None)
        self._base = url.with_user(None)
        self._query = {name: str(value) for name, value in client.default_query.items()}
        self._urls: dict[str, URL] = {}
        proxy = proxy_of(endpoint.base)
        self._proxy = None if proxy is None else URL(proxy)
        connect_s = min(CONNECT_TIMEOUT_S, timeout_s)
        # Without a limit for reading, which aiohttp sets anew with every piece of a reply.
        self._timeout_of_json = aiohttp.ClientTimeout(sock_connect=connect_s)
        self._timeout = aiohttp.ClientTimeout(sock_connect=connect_s, sock_read=timeout_s)
        self._session = aiohttp.ClientSession(
            connector=connector_of(endpoint.base, proxy or ""),
            auto_decompress=False,
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        # aiohttp < 4, which has no argument for it: nothing is asked a second time in silence.
        self._session._retry_connection = False

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    def __del__(self) -> None:
        # Whoever runs one question in an event loop of its own has no place to close anything.
        session = getattr(self, "_session", None)
        if session is not None and not session.closed:
            connector = session.connector
            session.detach()
            connector._close()  # aiohttp < 4: `close` is to be awaited

    async def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """The body of the reply to JSON data."""
        async with self._sent("POST", path, data=json_bytes(body)) as pieces:
            return b"".join([piece async for piece in pieces])

    async def get(self, path: str, query: Mapping[str, str | int] | None = None) -> bytes:
        """What stands at a path; as `post`."""
        async with self._sent("GET", path, query) as pieces:
            return b"".join([piece async for piece in pieces])

    async def upload(self, path: str, name: str, data: bytes, fields: Mapping[str, str]) -> bytes:
        """The reply to a form with a file of JSON lines; as `post`."""
        form = aiohttp.FormData(fields)
        form.add_field("file", data, filename=name, content_type="application/jsonl")
        async with self._sent("POST", path, data=form) as pieces:
            return b"".join([piece async for piece in pieces])

    async def stream(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The data of each event of a reply that is sent while it is written; as `post`."""
        async with self._sent("POST", path, data=json_bytes(body)) as pieces:
            rest = bytearray()
            async for piece in pieces:
                rest += piece
                if b"\n" not in piece:
                    continue
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    if not line.startswith(b"data:"):
                        continue
                    data = line.removeprefix(b"data:").strip()
                    if data == b"[DONE]":
                        return
                    yield json.loads(data)

    def _url(self, path: str) -> URL:
        """The address of a path, made once."""
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = self._base.joinpath(path.lstrip("/")).update_query(self._query)
        return url

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        data: bytes | aiohttp.FormData | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of the reply with a status of success, piece by piece."""
        url = self._url(path)
        if query:
            url = url.update_query(query)
        is_json = isinstance(data, bytes)
        headers = self._headers_of_json if is_json else self._headers
        timeout = self._timeout_of_json if is_json else self._timeout
        try:
            for _ in range(MAX_REDIRECTS + 1):
                # One that is left before its end ends the connection.
                async with self._session.request(
                    method, url, data=data, headers=headers, proxy=self._proxy, timeout=timeout,
                    allow_redirects=False,
                ) as response:  # fmt: skip
                    if response.status not in _REDIRECTS or "location" not in response.headers:
                        if not 200 <= response.status < 300:
                            raise await self._refusal(response)
                        yield self._pieces(response, _most.get())
                        return
                    url = self._onward(method, url, response)
        except (aiohttp.ClientError, OSError) as error:
            raise faults.cut_off(_cause(error, url), self._endpoint) from None
        raise ModelError(
            f"{self._endpoint.shown} sends the request on and on ({MAX_REDIRECTS} redirects)",
            kind="bad_request",
            help="give the address where it ends: --base-url",
        )

    def _onward(self, method: str, asked: URL, response: aiohttp.ClientResponse) -> URL:
        """Where a redirect leads."""
        said = response.headers["location"]
        why, help = "which is another server", "if it is yours, give that address: --base-url"
        try:
            onward = asked.join(URL(said))
            said = str(onward)
            is_within = onward.origin() == asked.origin()
        except ValueError:
            is_within = False
        if is_within and method != "GET" and response.status not in _WITH_BODY:
            is_within = False
            why, help = "without its body", "check the address: --base-url"
        if is_within:
            return onward.with_user(None)
        raise ModelError(
            f"{self._endpoint.shown} sends the request on to "
            f"{self._endpoint.quote(redacted(said))}, {why}: not followed",
            kind="bad_request",
            help=help,
        )

    async def _refusal(self, response: aiohttp.ClientResponse) -> faults.StatusError:
        pieces = self._pieces(response, MAX_ERROR_BYTES, is_cut=True)
        said = b"".join([piece async for piece in pieces])
        body: object = said.decode(errors="replace")
        with suppress(ValueError, RecursionError):
            body = json.loads(said)
        if isinstance(body, dict):
            body = body.get("error", body)
        return faults.StatusError(response.status, body, response.headers, response.url.path)

    async def _pieces(
        self, response: aiohttp.ClientResponse, most: int, *, is_cut: bool = False
    ) -> AsyncIterator[bytes]:
        """The body, unpacked."""
        left = most
        async for piece in self._unpacked(response):
            if len(piece) > left:
                if not is_cut:
                    raise self._too_long(most)
                yield piece[:left]
                return
            left -= len(piece)
            yield piece

    async def _unpacked(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        said = response.headers.get("content-encoding", "")
        packed = [each for each in map(str.strip, said.lower().split(",")) if each in _PACKED]
        if not packed:
            async for piece in response.content.iter_any():
                yield piece
            return
        if len(packed) > 1 or packed[0] not in _ASKED_FOR:
            raise ModelError(
                f"the reply of {self._endpoint.shown} is packed as '{self._endpoint.quote(said)}', "
                "which was not asked for",
                kind="malformed",
            )
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, whichever it is
        is_first = True
        try:
            async for piece in response.content.iter_any():
                if is_first and packed[0] == "deflate" and piece[0] & 0x0F != zlib.DEFLATED:
                    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)  # as some servers have it
                is_first = False
                while piece and not unpacker.eof:
                    yield unpacker.decompress(piece, PIECE_BYTES)
                    piece = unpacker.unconsumed_tail
            while not unpacker.eof and (piece := unpacker.decompress(b"", PIECE_BYTES)):
                yield piece
        except zlib.error as error:
            raise self._broken(f"it cannot be unpacked ({error})") from None
        if not is_first and not unpacker.eof:
            raise self._broken("it breaks off")

    def _broken(self, why: str) -> ModelError:
        return ModelError(
            f"the reply of {self._endpoint.shown} is packed, and {why}", kind="transport"
        )

    def _too_long(self, most: int) -> ModelError:
        return ModelError(
            f"the reply of {self._endpoint.shown} is longer than {most / 2**20:,.1f} MiB, "
            "far more than was asked for",
            kind="malformed",
            help="check the server; --max-output-tokens allows replies 64 bytes more for each token",
        )


def _official(endpoint: Endpoint) -> AsyncOpenAI:
    """The official client, which decides on the address, the key and the headers, and sends nothing.

    It reads what people have set for it: OPENAI_ORG_ID, OPENAI_PROJECT_ID, OPENAI_CUSTOM_HEADERS.
    """
    # It would tell any server OPENAI_ORG_ID and OPENAI_PROJECT_ID.
    of_openai = dict.fromkeys(("OpenAI-Organization", "OpenAI-Project"), Omit())
    return AsyncOpenAI(
        # Local servers ask for no key, but the client insists on one.
        api_key=endpoint.key or "none",
        base_url=endpoint.base,
        default_query=endpoint.query,
        default_headers={} if endpoint.is_openai else of_openai,  # type: ignore[arg-type]
        # It connects to nothing, so it trusts no certificate, which it would take long to read.
        http_client=DefaultAsyncHttpxClient(
            trust_env=False, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        ),
    )


def _headers(client: AsyncOpenAI, url: URL) -> CIMultiDict[str]:
    """What goes along with every request of JSON data."""
    headers = CIMultiDict({"accept-encoding": ", ".join(_ASKED_FOR)})
    if url.user is None:
        headers.update(client.auth_headers)
    else:
        headers["authorization"] = aiohttp.encode_basic_auth(url.user, url.password or "")
    for name, value in client.default_headers.items():
        if isinstance(value, Omit):
            headers.popall(name, None)
        elif name:
            headers[name] = value
    return headers


def _cause(error: Exception, url: URL) -> Exception:
    """What went wrong; a connection that ends in the middle of a handshake does not say so."""
    if isinstance(error, aiohttp.ClientConnectorError) and url.scheme == "https":
        reason = error.os_error
        if isinstance(reason, ConnectionError) and not isinstance(reason, ConnectionRefusedError):
            return ssl.SSLError("the server ended the connection in the handshake")
    return error
