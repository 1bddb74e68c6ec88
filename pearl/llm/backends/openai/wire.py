"""HTTP connections to a server: headers, proxy, certificates, size limits. Redirects are followed only within the server, because requests contain texts and the key."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

import h11

from pearl.errors import ModelError
from pearl.errors.escaping import json_bytes, redacted
from pearl.llm import Request
from pearl.llm.backends.openai import faults
from pearl.llm.backends.openai.api import KeyHeaders, bearer
from pearl.llm.backends.openai.connections import Connections, Origin, Response, basic_auth
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.plugins.version import __version__

CONNECT_TIMEOUT_S = 10.0  # Less than for a reply: a dead server should be noticed soon
# Maximum bytes of a decompressed reply; `Wire.BYTES_A_TOKEN` is added for each requested token.
# Of an error, only the beginning of the body is read.
MAX_BYTES = 4 * 2**20
MAX_ERROR_BYTES = 64 * 1024
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_WITH_BODY = frozenset({307, 308})  # Repeat the request; others turn it into a GET

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
        self._headers = _headers(endpoint, key_headers)
        self._origin = Origin.of(urlsplit(endpoint.base))
        self._base_path = quote(urlsplit(endpoint.base).path, safe=_SAFE)
        self._urls: dict[str, str] = {}
        self._timeout_s = timeout_s
        self._connections = Connections(
            self._origin, proxy_of(endpoint.base), min(CONNECT_TIMEOUT_S, timeout_s)
        )

    def reply_bytes(self, request: Request, window: int) -> int:
        """Maximum bytes of the reply to a request."""
        return MAX_BYTES + self.BYTES_A_TOKEN * (request.max_output_tokens or window)

    async def close(self) -> None:
        """End all connections."""
        await self._connections.close()

    async def post(self, path: str, body: Mapping[str, Any] | bytes) -> bytes:
        """Post JSON data; return the body of the reply."""
        return await self._whole(
            "POST", path, body if isinstance(body, bytes) else json_bytes(body)
        )

    async def get(self, path: str, query: Mapping[str, str | int] | None = None) -> bytes:
        """Return the body at a path."""
        return await self._whole("GET", path, query=query)

    async def upload(self, path: str, name: str, data: bytes, fields: Mapping[str, str]) -> bytes:
        """Post a form with a file of JSON lines; return the body of the reply."""
        border = secrets.token_hex(16)
        named = {f'name="{key}"': value.encode() for key, value in fields.items()}
        named[f'name="file"; filename="{quote(name)}"\r\ncontent-type: application/jsonl'] = data
        parts = [
            b"--%b\r\ncontent-disposition: form-data; %b\r\n\r\n%b\r\n" % (border.encode(), key.encode(), value)
            for key, value in named.items()
        ]  # fmt: skip
        form = b"%b--%b--\r\n" % (b"".join(parts), border.encode())
        kind = {"content-type": f"multipart/form-data; boundary={border}"}
        return await self._whole("POST", path, form, headers=kind)

    async def upload_resumably(
        self, path: str, file: Mapping[str, Any], data: bytes, kind: str
    ) -> bytes:
        """Upload a file with Google's protocol: request an upload address, then send the data. Return the body of the last reply."""
        begin = {
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(data)),
            "x-goog-upload-header-content-type": kind,
        }
        told: dict[str, str] = {}
        asked = json_bytes({"file": file})
        await self._whole("POST", path, asked, headers=begin, told=told)
        own = self._url(path)
        with suppress(ValueError):
            url = urlsplit(urljoin(own, told.get("x-goog-upload-url", "")))
            if url.geturl() != own and Origin.of(url) == self._origin:
                whole = {
                    "content-type": kind,
                    "x-goog-upload-command": "upload, finalize",
                    "x-goog-upload-offset": "0",
                }
                address = url._replace(fragment="").geturl()
                return await self._whole("POST", address, data, headers=whole)
        raise ModelError(
            f"{self._endpoint.shown} gives no upload address on its own host", kind="malformed"
        )

    async def _whole(
        self, method: str, path: str, data: bytes | None = None, **options: Any
    ) -> bytes:
        """The whole body of a successful reply; the arguments are those of `_sent`."""
        async with self._sent(method, path, data, **options) as pieces:
            return b"".join([piece async for piece in pieces])

    def _url(self, path: str) -> str:
        """The address of a path; `/../` is the server's root, without `/v1`."""
        if path not in self._urls:
            base, name = self._base_path.rstrip("/"), path.removeprefix("/../")
            if name != path:
                base = base.removesuffix("/v1")
            query = urlencode(self._endpoint.query)
            url = f"{self._origin.scheme}://{self._origin.netloc}{base}/{quote(name.lstrip('/'), safe=_SAFE)}"
            self._urls[path] = f"{url}?{query}" if query else url
        return self._urls[path]

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        path: str,  # Or a whole address
        data: bytes | None = None,
        query: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] = {},
        told: dict[str, str] | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body of a successful reply, piece by piece; its headers are stored in `told`."""
        url = path if "://" in path else self._url(path)
        if query:
            url += ("&" if "?" in url else "?") + urlencode(query)
        # Callers limit the time of a whole reply; only a file may take longer.
        is_json = data is not None and not headers
        all_headers = {**self._headers, **headers}
        if data is None:
            del all_headers["content-type"]
        try:
            for _ in range(MAX_REDIRECTS + 1):
                sent = self._connections.sent(
                    method, _target(url), all_headers, data, None if is_json else self._timeout_s
                )
                # Leaving the context before the end of a reply closes the connection.
                async with sent as response:
                    if response.status not in _REDIRECTS or "location" not in response.headers:
                        if not 200 <= response.status < 300:
                            raise await self._refusal(response, url)
                        if told is not None:
                            told |= response.headers
                        yield self._pieces(response, _most.get())
                        return
                    url = self._redirected(method, url, response)
        except (h11.RemoteProtocolError, OSError) as error:
            raise faults.cut_off(error, self._endpoint) from None
        except h11.LocalProtocolError as error:
            raise ModelError(
                f"cannot send the request to {self._endpoint.shown}: {self._endpoint.quote(str(error))}",
                kind="bad_request",
                help="check the variable OPENAI_CUSTOM_HEADERS",
            ) from None
        raise ModelError(
            f"{self._endpoint.shown} redirected the request more than {MAX_REDIRECTS} times",
            kind="bad_request",
            help="give the final address: --base-url",
        )

    def _redirected(self, method: str, asked: str, response: Response) -> str:
        target = response.headers["location"]
        why, help = "which is another server", "if it is yours, give that address: --base-url"
        with suppress(ValueError):
            target = urljoin(asked, target)
            url = urlsplit(target)
            if Origin.of(url) == self._origin:
                if method == "GET" or response.status in _WITH_BODY:
                    return target
                why, help = "without its body", "check the address: --base-url"
        raise ModelError(
            f"{self._endpoint.shown} redirects the request to "
            f"{self._endpoint.quote(redacted(target))}, {why}: the redirect is not followed",
            kind="bad_request",
            help=help,
        )

    async def _refusal(self, response: Response, url: str) -> faults.StatusError:
        pieces = self._pieces(response, MAX_ERROR_BYTES, is_cut=True)
        data = b"".join([piece async for piece in pieces])
        body: object = data.decode(errors="replace")
        with suppress(ValueError, RecursionError):
            body = json.loads(data)
        if isinstance(body, dict):
            body = body.get("error", body)
        return faults.StatusError(response.status, body, response.headers, urlsplit(url).path)

    async def _pieces(
        self, response: Response, most: int, *, is_cut: bool = False
    ) -> AsyncIterator[bytes]:
        """The decompressed body, limited in size."""
        left = most
        async for piece in response.pieces():
            if len(piece) > left:
                if is_cut:
                    yield piece[:left]
                    return
                raise ModelError(
                    f"the reply of {self._endpoint.shown} is longer than {most / 2**20:,.1f} MiB, "
                    "far more than was requested",
                    kind="malformed",
                    help="check the server; each token of --max-output-tokens raises this limit by 64 bytes",
                )
            left -= len(piece)
            yield piece


# Characters that are not escaped in a path: the marks of RFC 3986, and `%` of existing escapes
_SAFE = "/%:@!$&'()*+,;=~"


@lru_cache(64)
def _target(url: str) -> str:
    """The path and query of an address."""
    parts = urlsplit(url)
    path = quote(parts.path, safe=_SAFE) or "/"
    return f"{path}?{quote(parts.query, safe=f'{_SAFE}?')}" if parts.query else path


def _headers(endpoint: Endpoint, key_headers: KeyHeaders) -> dict[str, str]:
    """The headers of the official client, by lower-case name, except those about its software (`x-stainless-...`)."""
    auth = basic_auth(urlsplit(endpoint.base))
    keys = {"authorization": auth} if auth else key_headers(endpoint.key or "none")
    headers = {
        **{name.lower(): value for name, value in keys.items()},  # Servers without keys ignore it
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": f"pearl/{__version__}",
        "accept-encoding": "gzip",
    }
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
            headers[name.strip().lower()] = value.strip()
    return headers


def proxy_of(url: str) -> str | None:
    """The proxy for a server; None if it is contacted directly."""
    is_named = any(
        name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ
    )
    if not is_named and sys.platform not in ("darwin", "win32"):  # whose settings may name one
        return None
    # late: it imports HTTP and mail of the standard library
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]) or proxy_bypass(host):
        return None
    for network in proxies.get("no", "").split(","):
        with suppress(ValueError):  # One of the two is a name
            if ip_address(host) in ip_network(network.strip(), strict=False):
                return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = urlsplit(proxy).scheme
    if scheme not in ("http", "https"):
        raise ValueError(f"proxies of the kind '{scheme}' are not supported")
    return proxy
