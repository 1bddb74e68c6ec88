"""Connections to a server: proxy, certificates, keep-alive."""

from __future__ import annotations

import asyncio
import os
import select
import ssl
import sys
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import ClientPayloadError, StreamReader, TCPConnector
from aiohttp.client_proto import ResponseHandler

MAX_CONNECTIONS = 1_000

KEEP_ALIVE_S = 4.0
"""Less than uvicorn's 5 s."""


def connector_of(*urls: str) -> TCPConnector:
    """Create the connector for the addresses of a server and its proxy, in the running event loop."""
    is_tls = any(url.startswith("https:") for url in urls)
    connector = TCPConnector(
        limit=MAX_CONNECTIONS,
        keepalive_timeout=KEEP_ALIVE_S,
        ssl=_certificates() if is_tls else True,  # it takes a while to read them
    )
    # aiohttp < 4 has no argument for the protocol of a connection.
    connector._factory = partial(_Handler, asyncio.get_running_loop())  # type: ignore[assignment]
    return connector


class _Handler(ResponseHandler):
    """A connection that distinguishes errors in a reply from errors in the data after it."""

    def data_received(self, data: bytes) -> None:
        # An error discards everything parsed in one call, so the header is parsed separately. If a
        # server sends more than announced, the body is delivered before the error.
        end = data.find(b"\r\n\r\n") + 4
        if end >= 4 and len(data) > end:
            super().data_received(data[:end])
            data = data[end:]
        super().data_received(data)

    def set_exception(self, exc: BaseException, *cause: Any) -> None:
        """Pass the error on to the reply that is being read, too."""
        super().set_exception(exc, *cause)
        if isinstance(self._payload, StreamReader) and not self._payload.is_eof():
            self._payload.set_exception(ClientPayloadError(str(exc)))

    def is_connected(self) -> bool:
        """Whether it can be reused: not if there is unread data, such as the end of the connection.

        The event loop, which would have noticed, may not have run since the last reply.
        """
        if not super().is_connected():
            return False
        assert self.transport is not None
        return not _is_readable(self.transport.get_extra_info("socket").fileno())


def _is_readable(fileno: int) -> bool:
    if not hasattr(select, "poll"):
        return bool(select.select([fileno], [], [], 0)[0])
    poll = select.poll()
    poll.register(fileno, select.POLLIN)
    return bool(poll.poll(0))


def _certificates() -> ssl.SSLContext:
    """The certificates of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else those of the system."""
    is_named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    if sys.platform in ("darwin", "win32") and not is_named:
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()  # OpenSSL reads the variables


def proxy_of(url: str) -> str | None:
    """The proxy for a server; None for none.

    From `HTTP_PROXY` or `HTTPS_PROXY`, by the scheme, else `ALL_PROXY`; `NO_PROXY` lists suffixes of
    names, addresses and networks (`10.0.0.0/8`).
    """
    parts = urlsplit(url)
    said = getproxies()
    proxy = said.get(parts.scheme) or said.get("all")
    host = parts.hostname or ""
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]) or proxy_bypass(host):
        return None
    if any(_is_in(host, network.strip()) for network in said.get("no", "").split(",")):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = urlsplit(proxy).scheme
    if scheme not in ("http", "https"):
        raise ValueError(f"proxies of the kind '{scheme}' are not known")
    return proxy


def _is_in(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:  # a name, on either side
        return False
