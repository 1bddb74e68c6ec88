"""How connections to a server are made: by which proxy, with which certificates, read how patiently."""

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

__all__ = ["connector_of", "proxy_of"]

MAX_CONNECTIONS = 1_000

KEEP_ALIVE_S = 4.0
"""Less than the 5 s that servers on uvicorn keep a connection without a request."""


def connector_of(*urls: str) -> TCPConnector:
    """Makes the connections, in the event loop that runs.

    Args:
        urls: Of the server, and of its proxy if there is one.
    """
    is_tls = any(url.startswith("https:") for url in urls)
    connector = TCPConnector(
        limit=MAX_CONNECTIONS,
        keepalive_timeout=KEEP_ALIVE_S,
        ssl=_certificates() if is_tls else True,  # it takes a while to read them
    )
    # aiohttp < 4, for it has no argument for what reads a connection; `_Handler` says why that is ours.
    connector._factory = partial(_Handler, asyncio.get_running_loop())  # type: ignore[assignment]
    return connector


class _Handler(ResponseHandler):
    """One connection, which tells apart what is wrong with a reply and what is wrong behind it."""

    def data_received(self, data: bytes) -> None:
        # What is parsed at once is refused as a whole; so a head is parsed by itself. Where a server
        # sends more than it said, the body is handed on before that is found out.
        end = data.find(b"\r\n\r\n") + 4
        if end >= 4 and len(data) > end:
            super().data_received(data[:end])
            data = data[end:]
        super().data_received(data)

    def set_exception(self, exc: BaseException, *cause: Any) -> None:
        """Told of the reply that is being read, too: it will not come to its end."""
        super().set_exception(exc, *cause)
        if isinstance(self._payload, StreamReader) and not self._payload.is_eof():
            self._payload.set_exception(ClientPayloadError(str(exc)))

    def is_connected(self) -> bool:
        """Whether it can be used again: one with something to read has ended meanwhile, or is at odds.

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
    """Those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else the system's own."""
    is_named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    if sys.platform in ("darwin", "win32") and not is_named:
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()  # OpenSSL reads the variables


def proxy_of(url: str) -> str | None:
    """The proxy that leads to a server; None for none.

    Read are `HTTP_PROXY` or `HTTPS_PROXY`, by the scheme, then `ALL_PROXY`, and of `NO_PROXY` names,
    which stand for all that end in them, addresses and networks (`10.0.0.0/8`).

    Args:
        url: Of the server.

    Raises:
        ValueError: It is of a kind that is not known, as SOCKS.
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
