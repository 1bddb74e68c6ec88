"""HTTP/1.1 connections to one server, directly or through a proxy: h11 reads and writes the messages, asyncio moves the bytes."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import select
import ssl
import sys
import weakref
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import lru_cache
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit

import h11
from msgspec import Struct

from pearl.llm.backends.openai.faults import ProxyError

MAX_CONNECTIONS = 1_000  # At the same time, to one server
KEEP_ALIVE_S = 4.0  # Less than uvicorn's 5 s
MAX_HEADER_BYTES = 64 * 1024  # Of the head of a reply
MAX_PIECE_BYTES = (
    64 * 1024
)  # Of a decompressed body: a decompression bomb must be detected before it fills the memory
MAX_UNREAD_BYTES = 256 * 1024  # Of a reply that arrives faster than it is read
# Seconds until another address of a host is tried, as RFC 8305 recommends: IPv6 may be broken
HAPPY_EYEBALLS_S = 0.25
_STATUS_LINE, _NO_HTTP = b"HTTP/", "the server does not answer in HTTP/1.1"
_END = h11.EndOfMessage()
_FRAMING = {"content-length", "transfer-encoding"}  # Set here, not by a user
_PORTS = {"http": 80, "https": 443}
_REFUSED = {str(errno.ECONNREFUSED), "1225"}  # Error numbers of POSIX and Windows


class Origin(Struct, frozen=True):
    """Scheme, host and port of an address."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: SplitResult) -> Self:
        """The origin of an HTTP address; a `ValueError` for any other address."""
        if url.scheme not in _PORTS or not url.hostname:
            raise ValueError(f"'{url.geturl()}' is not an HTTP address")
        host = url.hostname
        return cls(
            url.scheme,
            host if host.isascii() else host.encode("idna").decode(),
            _PORTS[url.scheme] if url.port is None else url.port,
        )

    @property
    def is_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port, as in CONNECT requests."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def netloc(self) -> str:
        """Host, and the port unless it is the default of the scheme."""
        return self.authority.removesuffix(f":{_PORTS[self.scheme]}")


def basic_auth(url: SplitResult) -> str:
    """The header for the name and password in an address; "" for none."""
    if url.username is None:
        return ""
    secret = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return f"Basic {b64encode(secret.encode()).decode()}"


class _Connection(asyncio.Protocol):
    """One connection; it carries one message at a time."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADER_BYTES)
        self.idle_since_s = 0.0
        self.is_reused = False
        self._n_unread = 0
        self._lost: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.http.receive_data(data)
        self._n_unread += len(data)
        if self._n_unread > MAX_UNREAD_BYTES:
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self.http.receive_data(b"")
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = exc or ConnectionError("connection lost")
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended, so that nothing is left to close."""
        return self._lost is not None

    async def event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """The next event of the reply."""
        while True:
            if self.http.their_state is h11.SEND_RESPONSE:
                begun, is_ended = self.http.trailing_data
                if is_ended and not begun:
                    raise ConnectionError("no reply came")
                # h11 would wait for the end of a head that is none, such as the greeting of SSH
                if not _STATUS_LINE.startswith(begun.lstrip(b"\r\n")[: len(_STATUS_LINE)]):
                    raise h11.RemoteProtocolError(_NO_HTTP)
            event = self.http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._lost is not None:
                raise self._lost
            if self._n_unread > MAX_UNREAD_BYTES:
                self.transport.resume_reading()
            self._n_unread = 0
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    def send(
        self, method: str, target: str, headers: Mapping[str, str], data: bytes | None
    ) -> None:
        """Send a whole request; the transport buffers what the server does not accept at once."""
        request, head = _begun(method, target, tuple(headers.items()))
        self.http.send(request)  # h11 knows no body: its length is not constant
        self.http.send(_END)
        body = b"\r\n" if data is None else b"content-length: %d\r\n\r\n%b" % (len(data), data)
        self.transport.write(head + body)

    async def head(self) -> h11.Response:
        """The head of the reply; informational heads (1xx) are skipped."""
        while True:
            event = await self.event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise h11.RemoteProtocolError(_NO_HTTP)

    def is_usable(self, now_s: float) -> bool:
        """Whether the connection can be reused: it has no unread data, such as its end.

        llama.cpp's server ends connections right after some replies, before the event loop notices
        (test_the_beginning_of_a_prompt_is_read_once fails without this).
        """
        is_old = now_s - self.idle_since_s > KEEP_ALIVE_S
        if is_old or self.transport.is_closing() or self.http.trailing_data != (b"", False):
            return False
        fileno = self.transport.get_extra_info("socket").fileno()
        if not hasattr(select, "poll"):
            return not select.select([fileno], [], [], 0)[0]
        poll = select.poll()
        poll.register(fileno, select.POLLIN)
        return not poll.poll(0)

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Encrypt a connection through a proxy."""
        loop = asyncio.get_running_loop()
        transport = await loop.start_tls(self.transport, self, context, server_hostname=host)
        assert transport is not None
        self.transport = transport
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEADER_BYTES)


@lru_cache(64)
def _begun(
    method: str, target: str, headers: tuple[tuple[str, str], ...]
) -> tuple[h11.Request, bytes]:
    """A request, and its head without the blank line; once for many requests, because h11 checks every header."""
    fields = [(k.encode(), v.encode()) for k, v in headers if k not in _FRAMING]
    request = h11.Request(method=method, target=target, headers=fields)
    head = h11.Connection(h11.CLIENT).send(request)
    assert head is not None
    return request, head.removesuffix(b"\r\n")


class Response:
    """A reply whose head has been read: status, and headers by lower-case name."""

    def __init__(
        self, connection: _Connection, head: h11.Response, timeout_s: float | None
    ) -> None:
        self.status = head.status_code
        self.headers: dict[str, str] = {}
        for name, value in head.headers:
            key, text = name.decode("ascii"), value.decode("latin-1")
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text
        self._connection = connection
        self._timeout_s = timeout_s

    async def pieces(self) -> AsyncIterator[bytes]:
        """The decompressed body, in pieces as they arrive, of at most `MAX_PIECE_BYTES`."""
        coding = self.headers.get("content-encoding", "").strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip"):
            raise h11.RemoteProtocolError(
                f"the reply is packed as {coding}, which was not asked for"
            )
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16) if coding.endswith("gzip") else None
        n_packed = 0
        while True:
            async with _limited(self._timeout_s):
                event = await self._connection.event()
            if isinstance(event, h11.EndOfMessage):
                break
            if not isinstance(event, h11.Data):
                raise h11.RemoteProtocolError("the reply ends early")
            data = bytes(event.data)
            if inflater is None:
                yield data
                continue
            n_packed += len(data)
            try:
                while data and not inflater.eof:
                    yield inflater.decompress(data, MAX_PIECE_BYTES)
                    data = inflater.unconsumed_tail
            except zlib.error as error:
                raise h11.RemoteProtocolError(f"the packed reply is damaged: {error}") from None
        if inflater is not None and n_packed and not inflater.eof:
            raise h11.RemoteProtocolError("the packed reply ends early")
        if self._connection.http.trailing_data[0]:
            raise h11.RemoteProtocolError("the server sent more than its reply")


def _limited(timeout_s: float | None) -> AbstractAsyncContextManager[object]:
    return nullcontext() if timeout_s is None else asyncio.timeout(timeout_s)


class Connections:
    """The connections to one server, in the running event loop."""

    def __init__(self, origin: Origin, proxy: str | None, connect_s: float) -> None:
        self.origin = origin
        self._proxy = None if proxy is None else urlsplit(proxy)
        self._via = None if self._proxy is None else Origin.of(self._proxy)
        self._connect_s = connect_s
        is_tls = origin.is_tls or (self._via is not None and self._via.is_tls)
        self._context = _certificates() if is_tls else None  # Reading certificates is slow
        self._slots = asyncio.Semaphore(MAX_CONNECTIONS)
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        # A caller that runs `asyncio.run` for each question never calls `close`.
        weakref.finalize(self, _drop, self._open, asyncio.get_running_loop(), os.getpid())

    async def close(self) -> None:
        """End all connections."""
        for connection in (*self._open,):
            self._end(connection)
        await asyncio.sleep(0)  # asyncio closes the sockets in the next iteration of the loop

    @asynccontextmanager
    async def sent(
        self,
        method: str,
        target: str,  # Path and query
        headers: Mapping[str, str],
        data: bytes | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[Response]:
        """Send a request; `timeout_s` limits the wait for each piece of the reply. Leaving the context before the end of the reply closes the connection."""
        headers = {"host": self.origin.netloc, **headers}
        if self._proxy is not None and not self.origin.is_tls:
            target = f"http://{self.origin.netloc}{target}"
            headers |= self._proxy_headers()
        async with self._slots:
            while True:
                connection = self._reused() or await self._connected()
                try:
                    async with _limited(timeout_s):
                        connection.send(method, target, headers, data)
                        head = await connection.head()
                    break
                except BaseException as error:
                    self._end(connection)
                    is_slow = isinstance(error, TimeoutError)
                    is_lost = isinstance(error, OSError | h11.RemoteProtocolError) and not is_slow
                    # The server may close a connection just as it is reused; a GET can be repeated.
                    if not (is_lost and connection.is_reused and method == "GET"):
                        raise
            try:
                yield Response(connection, head, timeout_s)
            finally:
                self._release(connection)

    def _proxy_headers(self) -> dict[str, str]:
        auth = "" if self._proxy is None else basic_auth(self._proxy)
        return {"proxy-authorization": auth} if auth else {}

    def _reused(self) -> _Connection | None:
        now_s = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable(now_s):
                connection.is_reused = True
                return connection
            self._end(connection)
        return None

    def _release(self, connection: _Connection) -> None:
        """Keep a connection for the next request, or close it if it cannot be reused."""
        http = connection.http
        if http.our_state is h11.DONE and http.their_state is h11.DONE:
            http.start_next_cycle()
            connection.idle_since_s = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            self._end(connection)

    def _end(self, connection: _Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        connection.transport.abort()  # close() waits for the other side of TLS, perhaps longer than the loop runs

    async def _connected(self) -> _Connection:
        """A new connection."""
        first = self._via or self.origin
        async with asyncio.timeout(self._connect_s):
            try:
                connection = await self._opened(first)
            except OSError as error:
                if self._via is None:
                    raise
                raise ProxyError(f"the proxy {first.authority} cannot be reached") from error
            self._open.add(connection)
            if self._via is None or not self.origin.is_tls:
                return connection
            try:
                authority = self.origin.authority
                headers = {"host": authority, **self._proxy_headers()}
                connection.send("CONNECT", authority, headers, None)
                status = (await connection.head()).status_code
                if not 200 <= status < 300:
                    raise ProxyError(f"the proxy {first.authority} answered {status}")
                assert self._context is not None
                await connection.start_tls(self._context, self.origin.host)
            except BaseException:
                self._end(connection)
                raise
        return connection

    async def _opened(self, origin: Origin) -> _Connection:
        context = self._context if origin.is_tls else None
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                _Connection, origin.host, origin.port, ssl=context,
                happy_eyeballs_delay=HAPPY_EYEBALLS_S,
            )  # fmt: skip
        except ConnectionRefusedError:
            raise
        except ConnectionError as error:
            if context is None:
                raise
            raise ssl.SSLError(0, "the server ended the connection in the handshake") from error
        except OSError as error:
            # For several addresses, asyncio joins the errors to one text.
            numbers = re.findall(r"\[(?:Errno|WinError) (\d+)\]", str(error))
            if error.errno is None and numbers and _REFUSED.issuperset(numbers):
                raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused") from None
            raise
        return connection


def _drop(connections: set[_Connection], loop: asyncio.AbstractEventLoop, process: int) -> None:
    """Close connections that their owner left open: by their event loop, which may run in another thread."""
    for connection in (*connections,):
        if connection.is_lost:
            continue
        # A forked process has no such loop, but the parent's selector, which abort() would change.
        if process == os.getpid():
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(connection.transport.abort)
                continue
        # asyncio has no public way to close a socket without its loop, and would warn on stderr.
        raw = getattr(getattr(connection.transport, "_ssl_protocol", None), "_transport", None)
        lose = getattr(raw or connection.transport, "_call_connection_lost", None)
        if lose is not None:
            with suppress(RuntimeError):  # TLS tells its protocol by the loop
                lose(None)


def _certificates() -> ssl.SSLContext:
    """The certificates of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else the system's."""
    is_named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    if sys.platform in ("darwin", "win32") and not is_named:
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()  # OpenSSL reads the variables itself
