"""How a server is reached: by which proxy, with which headers, over which connection."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.wire import Wire, proxy_of
from tests.conftest import PROXIES
from tests.server import Server, completion

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = json.dumps(completion("ok")).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(OK)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def talk(answer: Answer, use: Callable[[int], Awaitable[Any]]) -> Any:
    """What comes of using a server on loopback."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    async def main() -> Any:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        async with server:
            return await use(server.sockets[0].getsockname()[1])

    return asyncio.run(main())


def test_a_proxy_is_sent_the_whole_address_and_its_own_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(HEAD + OK)

    async def use(port: int) -> None:
        monkeypatch.setenv("http_proxy", f"http://of:proxy@127.0.0.1:{port}")
        wire = Wire(Endpoint("http://me:secret@nowhere.invalid/v1?k=a%2Bb", "m", "key"), 5.0)
        assert await wire.get("/models", {"limit": 3}) == OK
        await wire.close()

    talk(answer, use)
    assert heads[0].startswith("GET http://nowhere.invalid/v1/models?k=a%2Bb&limit=3 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic b2Y6cHJveHk=" in heads[0]
    assert "authorization: Basic bWU6c2VjcmV0" in heads[0], (
        "an address with a password needs no key"
    )


@pytest.mark.parametrize(
    ("no_proxy", "url", "is_direct"),
    [
        ("", "http://a.example.org/v1", False),
        ("example.org", "http://a.example.org:8000/v1", True),
        ("example.org", "http://notexample.org/v1", False),
        ("10.0.0.0/8", "http://10.1.2.3/v1", True),
        ("10.0.0.0/8", "http://11.1.2.3/v1", False),
        ("::1", "http://[::1]:80/v1", True),
        ("*", "http://a.example.org/v1", True),
    ],
)
def test_who_is_asked_without_a_proxy(
    no_proxy: str, url: str, is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", no_proxy)
    monkeypatch.setenv("all_proxy", "proxy.example.org:3128")
    assert proxy_of(url) == (None if is_direct else "http://proxy.example.org:3128")


def test_a_caller_that_does_not_close_hears_nothing(
    openai_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        wire = Wire(Endpoint(openai_server.url, "m", ""), 5.0)
        await wire.post("/chat/completions", {"messages": []})

    asyncio.run(main())
    gc.collect()
    assert not caplog.records
