"""HTTP connections to a server: headers, proxy, certificates, limits of size; redirects within it only, as requests have texts and the key."""

from __future__ import annotations

import asyncio
import json
import os
import select
import ssl
import sys
import weakref
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from multidict import CIMultiDict
from yarl import URL

from pearl.errors import ModelError
from pearl.errors.escaping import json_bytes, redacted
from pearl.llm import Request
from pearl.llm.backends.openai import faults
from pearl.llm.backends.openai.api import KeyHeaders, bearer
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.plugins.version import __version__

CONNECT_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 1_000
KEEP_ALIVE_S = 4.0  # Less than uvicorn's 5 s
MAX_HEADER_BYTES = 64 * 1024

# Maximum bytes of a decompressed reply, and `Wire.BYTES_A_TOKEN` for each requested token. Only the beginning
# of the body of an error status is read.
MAX_BYTES = 4 * 2**20
MAX_ERROR_BYTES = 64 * 1024
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_WITH_BODY = frozenset({307, 308})  # Those that repeat the request; the others turn it into a GET

_most: ContextVar[int] = ContextVar("most", default=MAX_BYTES)


@contextmanager
def at_most(n_bytes: int) -> Iterator[None]:
    """Context that sets the maximum size of replies."""
    token = _most.set(n_bytes)
    try:
        yield
    finally:
        _most.reset(token)


class Wire:
    """Connections to one server, in the running event loop."""

    BYTES_A_TOKEN = 64

    def __init__(
        self, endpoint: Endpoint, timeout_s: float, key_headers: KeyHeaders = bearer
    ) -> None:
        self._endpoint = endpoint
        url = URL(endpoint.base)
        self._headers = _headers(endpoint, url, key_headers)
        self._base = url.with_user(None)
        self._urls: dict[str, URL] = {}  # making one takes 20 microseconds
        proxy = proxy_of(endpoint.base)
        self._proxy = None if proxy is None else URL(proxy)
        connect_s = min(CONNECT_TIMEOUT_S, timeout_s)
        # Without `sock_read`, a timer that aiohttp sets anew for every piece of a reply
        self._timeout_of_json = aiohttp.ClientTimeout(sock_connect=connect_s)
        self._timeout = aiohttp.ClientTimeout(sock_connect=connect_s, sock_read=timeout_s)
        self._session = aiohttp.ClientSession(
            connector=connector_of(endpoint.base, proxy or ""),
            max_line_size=MAX_HEADER_BYTES,
            max_field_size=MAX_HEADER_BYTES,
        )
        # A caller that uses `asyncio.run` once per question never calls `close`. A `__del__` would
        # come too late where both are in one cycle and the session, which complains on stderr, is
        # collected first (test_a_caller_that_does_not_close_hears_nothing).
        weakref.finalize(self, _drop, self._session)

    def reply_bytes(self, request: Request, window: int) -> int:
        """Maximum bytes of the reply to a request."""
        return MAX_BYTES + self.BYTES_A_TOKEN * (request.max_output_tokens or window)

    async def close(self) -> None:
        """End all connections."""
        await self._session.close()

    async def post(self, path: str, body: Mapping[str, Any] | bytes) -> bytes:
        """Post JSON data; the body of the reply."""
        data = body if isinstance(body, bytes) else json_bytes(body)
        async with self._sent("POST", path, data) as pieces:
            return b"".join([piece async for piece in pieces])

    async def get(self, path: str, query: Mapping[str, str | int] | None = None) -> bytes:
        """Get the body of a path."""
        async with self._sent("GET", path, query=query) as pieces:
            return b"".join([piece async for piece in pieces])

    async def upload(self, path: str, name: str, data: bytes, fields: Mapping[str, str]) -> bytes:
        """Post a form with a file of JSON lines; the body of the reply."""
        form = aiohttp.FormData(fields)
        form.add_field("file", data, filename=name, content_type="application/jsonl")
        async with self._sent("POST", path, form) as pieces:
            return b"".join([piece async for piece in pieces])

    async def upload_resumably(
        self, path: str, file: Mapping[str, Any], data: bytes, kind: str
    ) -> bytes:
        """Upload a file in Google's way: its address comes first. The body of the last reply."""
        begin = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(data)),
            "x-goog-upload-header-content-type": kind,
        }
        told: dict[str, str] = {}
        asked = json_bytes({"file": file})
        async with self._sent("POST", path, asked, headers=begin, told=told) as pieces:
            b"".join([piece async for piece in pieces])
        own = self._url(path)
        with suppress(ValueError):
            url = own.join(URL(told.get("x-goog-upload-url", "")))
            if url != own and url.origin() == own.origin():
                whole = {
                    "content-type": kind,
                    "x-goog-upload-command": "upload, finalize",
                    "x-goog-upload-offset": "0",
                }
                query = dict(url.query)
                async with self._sent("POST", url.path, data, query, headers=whole) as pieces:
                    return b"".join([piece async for piece in pieces])
        raise ModelError(
            f"{self._endpoint.shown} gives no upload address on its own host", kind="malformed"
        )

    def _url(self, path: str) -> URL:
        """The address of a path; `/../` stands for the server without `/v1`."""
        if path not in self._urls:
            base, name = self._base, path.removeprefix("/../")
            if name != path:
                base = base.with_path(base.path.rstrip("/").removesuffix("/v1"))
            url = base.joinpath(name.lstrip("/"))
            self._urls[path] = url.update_query(self._endpoint.query)
        return self._urls[path]

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        path: str,
        data: bytes | aiohttp.FormData | None = None,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] = {},
        told: dict[str, str] | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of the reply with a status of success, piece by piece; `told` gets its headers."""
        url = self._url(path)
        if query:
            url = url.update_query(query)
        all_headers, timeout = self._headers, self._timeout
        if isinstance(data, bytes):
            timeout = self._timeout_of_json
        else:
            all_headers = all_headers.copy()
            all_headers.popall("content-type", None)
        if headers:
            all_headers = CIMultiDict({**all_headers, **headers})
        try:
            for _ in range(MAX_REDIRECTS + 1):
                # Leaving before the end of a reply closes its connection.
                async with self._session.request(
                    method, url, data=data, headers=all_headers, proxy=self._proxy, timeout=timeout,
                    allow_redirects=False,
                ) as response:  # fmt: skip
                    if response.status not in _REDIRECTS or "location" not in response.headers:
                        if not 200 <= response.status < 300:
                            raise await self._refusal(response)
                        if told is not None:
                            told |= {name.lower(): text for name, text in response.headers.items()}
                        yield self._pieces(response, _most.get())
                        return
                    url = self._redirected(method, url, response)
        except (aiohttp.ClientError, OSError) as error:
            raise faults.cut_off(_cause(error, url), self._endpoint) from None
        raise ModelError(
            f"{self._endpoint.shown} redirected the request more than {MAX_REDIRECTS} times",
            kind="bad_request",
            help="give the final address: --base-url",
        )

    def _redirected(self, method: str, asked: URL, response: aiohttp.ClientResponse) -> URL:
        target = response.headers["location"]
        why, help = "which is another server", "if it is yours, give that address: --base-url"
        with suppress(ValueError):
            url = asked.join(URL(target))
            target = str(url)
            if url.origin() == asked.origin():
                if method == "GET" or response.status in _WITH_BODY:
                    return url.with_user(None)
                why, help = "without its body", "check the address: --base-url"
        raise ModelError(
            f"{self._endpoint.shown} redirects the request to "
            f"{self._endpoint.quote(redacted(target))}, {why}: the redirect is not followed",
            kind="bad_request",
            help=help,
        )

    async def _refusal(self, response: aiohttp.ClientResponse) -> faults.StatusError:
        pieces = self._pieces(response, MAX_ERROR_BYTES, is_cut=True)
        data = b"".join([piece async for piece in pieces])
        body: object = data.decode(errors="replace")
        with suppress(ValueError, RecursionError):
            body = json.loads(data)
        if isinstance(body, dict):
            body = body.get("error", body)
        return faults.StatusError(response.status, body, response.headers, response.url.path)

    async def _pieces(
        self, response: aiohttp.ClientResponse, most: int, *, is_cut: bool = False
    ) -> AsyncIterator[bytes]:
        """The decompressed body, of limited size; aiohttp decompresses in bounded pieces."""
        left = most
        async for piece in response.content.iter_any():
            if len(piece) > left:
                if is_cut:
                    yield piece[:left]
                    return
                raise ModelError(
                    f"the reply of {self._endpoint.shown} is longer than {most / 2**20:,.1f} MiB, "
                    "far more than was requested",
                    kind="malformed",
                    help="check the server; --max-output-tokens allows 64 bytes more per token",
                )
            left -= len(piece)
            yield piece


def _headers(endpoint: Endpoint, url: URL, key_headers: KeyHeaders) -> CIMultiDict[str]:
    """The headers of the official client, except those about software (`x-stainless-...`)."""
    keys = key_headers(endpoint.key or "none")  # servers without keys ignore it
    if url.user is not None:
        keys = {"authorization": aiohttp.encode_basic_auth(url.user, url.password or "")}
    headers = CIMultiDict(
        {
            **keys,
            "accept": "application/json",
            "content-type": "application/json",
            "user-agent": f"pearl/{__version__}",
            "accept-encoding": "gzip, deflate",
        }
    )
    if endpoint.is_openai:
        for name, variable in (
            ("openai-organization", "OPENAI_ORG_ID"),
            ("openai-project", "OPENAI_PROJECT_ID"),
        ):
            if value := os.environ.get(variable):
                headers[name] = value
    for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip():
            headers[name.strip()] = value.strip()
    return headers


def _drop(session: aiohttp.ClientSession) -> None:
    """Close a session whose event loop may be closed, for which aiohttp < 4 has no public way."""
    connector = session.connector
    if connector is None or session.closed:
        return
    session.detach()
    if connector._loop.is_closed():  # neither aiohttp nor asyncio then closes a socket
        for connections in connector._conns.values():
            for protocol, _ in connections:
                if (lose := getattr(protocol.transport, "_call_connection_lost", None)) is not None:
                    lose(None)
    connector._close()


def connector_of(*urls: str) -> aiohttp.TCPConnector:
    """Create the connector for the addresses of a server and its proxy, in the running event loop."""
    is_tls = any(url.startswith("https:") for url in urls)
    connector = aiohttp.TCPConnector(
        limit=MAX_CONNECTIONS,
        keepalive_timeout=KEEP_ALIVE_S,
        ssl=_certificates() if is_tls else True,  # reading certificates is slow
    )
    # aiohttp < 4 has no argument for the protocol of a connection.
    connector._factory = partial(_Handler, asyncio.get_running_loop())  # type: ignore[assignment]
    return connector


class _Handler(ResponseHandler):
    def is_connected(self) -> bool:
        """Whether it can be reused: not with unread data, such as the end of the connection.

        llama.cpp's server ends connections right after some replies, before the event loop notices
        (test_the_beginning_of_a_prompt_is_read_once fails without this).
        """
        if not super().is_connected():
            return False
        assert self.transport is not None
        fileno = self.transport.get_extra_info("socket").fileno()
        if not hasattr(select, "poll"):
            return not select.select([fileno], [], [], 0)[0]
        poll = select.poll()
        poll.register(fileno, select.POLLIN)
        return not poll.poll(0)


def _certificates() -> ssl.SSLContext:
    """The certificates of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else those of the system."""
    is_named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    if sys.platform in ("darwin", "win32") and not is_named:
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()  # OpenSSL reads the variables


def proxy_of(url: str) -> str | None:
    """The proxy for a server; None for none."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]) or proxy_bypass(host):
        return None
    if any(_is_in(host, network.strip()) for network in proxies.get("no", "").split(",")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = urlsplit(proxy).scheme
    if scheme not in ("http", "https"):
        raise ValueError(f"proxies of the kind '{scheme}' are not supported")
    return proxy


def _is_in(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:  # one of them is a name
        return False


def _cause(error: Exception, url: URL) -> Exception:
    """The cause, also of a connection that ends in the handshake, where aiohttp does not name it."""
    if isinstance(error, aiohttp.ClientConnectorError) and url.scheme == "https":
        reason = error.os_error
        if isinstance(reason, ConnectionError) and not isinstance(reason, ConnectionRefusedError):
            return ssl.SSLError(0, "the server ended the connection in the handshake")
    return error
