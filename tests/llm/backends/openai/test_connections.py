"""Encrypted connections, directly and through a proxy; what servers say is in test_wire."""

from __future__ import annotations

import asyncio
import gc
import shutil
import ssl
import subprocess
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pearl.errors import ModelError
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.wire import Wire
from pearl.llm.concurrency import background_loop
from tests.conftest import PROXIES

T = TypeVar("T")
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of localhost, signed by itself, with its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]  # fmt: skip
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*command, *names], cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "NO_PROXY", "no_proxy", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def serving(handle: Handler, certificate: Path | None = None) -> AsyncIterator[int]:
    """A server of streams; yields its port."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_name("key.pem"))

    async def handled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            await handle(reader, writer)
        writer.close() if certificate is None else writer.transport.abort()

    async with await asyncio.start_server(handled, "localhost", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests without a body."""
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


async def asked(url: str, n: int = 1) -> list[bytes]:
    wire = Wire(Endpoint(url, "m", "key"), 5.0)
    try:
        return [await wire.get("/models") for _ in range(n)]
    finally:
        await wire.close()


def test_a_trusted_server_is_asked_and_another_one_is_not(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> list[bytes]:
        async with serving(answer, certificate) as port:
            return await asked(f"https://localhost:{port}/v1", 2)

    with pytest.raises(ModelError, match="no trusted connection"):
        asyncio.run(main())
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert asyncio.run(main()) == [b"ok"] * 2


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_a_server_without_tls_is_no_trusted_one(said: bytes) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(9_999)
        writer.write(said)
        await writer.drain()

    async def main() -> None:
        async with serving(refuse) as port:
            await asked(f"https://localhost:{port}/v1")

    with pytest.raises(ModelError, match="no trusted connection"):
        asyncio.run(main())


@pytest.mark.parametrize("status", [200, 407])
def test_a_proxy_carries_an_encrypted_connection_that_it_cannot_read(
    status: int, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[bytes] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heard.append(head)
        writer.write(b"HTTP/1.1 %d x\r\n\r\n" % status)
        if status != 200:
            return
        host, _, port = head.split()[1].decode().rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(9_999):
                    heard.append(data)
                    target.write(data)
            finally:
                target.transport.abort()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    async def main() -> list[bytes]:
        async with serving(answer, certificate) as port, serving(carry) as at:
            monkeypatch.setenv("https_proxy", f"http://me:pass@localhost:{at}")
            return await asked(f"https://localhost:{port}/v1")

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    if status != 200:
        with pytest.raises(ModelError, match=r"the proxy localhost:\d+ answered 407"):
            asyncio.run(main())
        return
    assert asyncio.run(main()) == [b"ok"]
    head, *rest = heard
    assert head.startswith(b"CONNECT localhost:")
    assert b"proxy-authorization: Basic bWU6cGFzcw==" in head
    assert b"/v1/models" not in b"".join(rest)


def test_encrypted_connections_that_nobody_closes_end_with_their_loop(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    def elsewhere(call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, background_loop("server")).result(9)

    async def main() -> None:
        wire = Wire(Endpoint(f"https://localhost:{port}/v1", "m", "key"), 5.0)
        wire.__dict__["cycle"] = wire
        assert await wire.get("/models") == b"ok"

    server = serving(answer, certificate)
    port = elsewhere(server.__aenter__())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    elsewhere(server.__aexit__(None, None, None))
    assert not [str(one.message) for one in warned]


def test_a_server_that_greets_is_none_of_http() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.7\r\n")
        await reader.readuntil(b"never")

    async def main() -> None:
        async with serving(greet) as port:
            await asked(f"http://localhost:{port}/v1")

    with pytest.raises(ModelError, match=r"does not answer in HTTP/1\.1"):
        asyncio.run(main())
