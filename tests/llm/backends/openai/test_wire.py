"""What a server, a proxy or a cable may do to a request; bodies are read in test_replies."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pearl.errors import ModelError, ModelErrorKind
from pearl.llm import Completion
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.wire import Wire, proxy_of
from tests.conftest import PROXIES
from tests.llm.backends.asking import REQUEST
from tests.server import FAULTS, PAGE, Canned, Server, completion, serving

KEY = "sk-very-secret-0123456789"
OK = json.dumps(completion("ok")).encode()
LONG = "w" * 3 * 2**20
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(OK)
CHUNKS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
PATH = "/v1/chat/completions"

Outcome = ModelErrorKind | tuple[ModelErrorKind, ...] | None
"""The kind of the error, or one of several; None for a reply of `ok`."""


@dataclass(frozen=True)
class Case:
    """One thing that a server may do.

    Attributes:
        id: Names it.
        sent: The answers, one a request; `{here}`, `{host}` and `{other}` in a header stand for
            this server and another one.
        outcome: What it has to be.
        n_requests: How many requests it may take.
    """

    id: str
    sent: tuple[Canned, ...]
    outcome: Outcome
    n_requests: int = 1


def packed(data: bytes, coding: str = "gzip", **options: Any) -> Canned:
    if coding.lower() == "gzip":
        data = gzip.compress(data, 1)
    return Canned(data, headers={"content-encoding": coding}, **options)


def statuses() -> Iterator[Case]:
    yield Case("500 with ok", (Canned(OK, 500),), "transport")
    yield Case("203 with ok", (Canned(OK, 203),), None)
    yield Case("204", (Canned(b"", 204),), ("malformed", "transport"))
    bodies: dict[str, bytes | str] = {
        "page": PAGE, "nothing": b"", "bytes": b"\xff\xfe\0", "list": "[1]", "deep": "[" * 50_000,
        "large": "x" * 2**20, "half": '{"error": {"mess',
    }  # fmt: skip
    for name, body in bodies.items():
        yield Case(f"500 {name}", (Canned(body, 500),), "transport")
    yield Case("401 page", (Canned(PAGE, 401),), "auth")


def redirects() -> Iterator[Case]:
    """The whole prompt goes where a redirect leads."""
    for status in (301, 302, 303, 307, 308):
        for where in ("{other}/chat/completions", "//example.invalid/v1", "https://{host}" + PATH):
            sent = Canned(b"", status, {"location": where})
            yield Case(f"{status} to {where}", (sent,), "bad_request")
        sent = (Canned(b"", status, {"location": PATH + "/"}), Canned(OK))
        keeps = status in (307, 308)
        outcome: Outcome = None if keeps else "bad_request"
        yield Case(f"{status} to here", sent, outcome, 2 if keeps else 1)
        yield Case(f"{status} to nowhere", (Canned(b"", status),), "bad_request")
    for where in ("ftp://h/x", "file:///etc/passwd", "data:,x", "http://[broken"):
        sent = Canned(b"", 307, {"location": where})
        yield Case(f"307 to {where}", (sent,), ("bad_request", "transport"))
    again = Canned(b"", 307, {"location": "{here}/chat/completions"})
    yield Case("loop", (again,) * 9, "bad_request", 6)


def sizes() -> Iterator[Case]:
    """Lengths and packings; the model's window lets a reply have 4.1 MiB."""
    bomb = b" " * 20 * 2**20
    yield Case("3 MiB beside", (Canned({**completion("ok"), "extra": LONG}),), None)
    yield Case("5 MiB of blanks", (Canned(b" " * 5 * 2**20 + OK),), "malformed")
    yield Case("gzip bomb", (packed(bomb),), "malformed")
    yield Case("bomb in a bomb", (replace(packed(gzip.compress(bomb, 1)), headers={"content-encoding": "gzip, gzip"}),), ("malformed", "transport"))  # fmt: skip
    yield Case("bomb with 500", (packed(bomb, status=500),), "transport")
    for coding in ("gzip", "GZIP", "identity", ""):
        yield Case(f"packed as {coding!r}", (packed(OK, coding),), None)
    for coding in ("deflate", "br", "zstd"):
        yield Case(f"packed as {coding}", (packed(OK, coding),), ("malformed", "transport"))
    yield Case("no gzip", (FAULTS["not gzip"],), ("malformed", "transport"))
    half = replace(packed(OK), body=gzip.compress(OK)[:99])
    yield Case("half gzip", (half,), ("malformed", "transport"))
    unended = replace(packed(OK), body=gzip.compress(OK)[:-4])
    yield Case("gzip without its end", (unended,), ("malformed", "transport"))
    yield Case("gzip unsaid", (Canned(gzip.compress(OK)),), "malformed")
    for status, outcome in ((200, "malformed"), (500, "transport")):
        sent = Canned(b" " * 2**16, status, manner="endless")
        yield Case(f"endless with {status}", (sent,), outcome)  # type: ignore[arg-type]
    piece = b"10000\r\n" + b" " * 2**16 + b"\r\n"
    chunked = Canned(piece, headers={"transfer-encoding": "chunked"}, manner="endless")
    yield Case("endless chunks", (chunked,), "malformed")
    yield Case("drip", (Canned(OK, manner="drip"),), "deadline")
    yield Case("hang", (Canned(manner="hang"),), "deadline")
    yield Case("reset", (Canned(manner="reset"),), "transport")
    yield Case("short", (Canned(OK, manner="short"),), "transport")
    yield Case("charset bogus", (Canned(OK, content_type="application/json; charset=bogus"),), None)


def raw() -> Iterator[Case]:
    """Bytes in place of HTTP."""
    whole = {
        "until the end": b"HTTP/1.1 200 OK\r\n\r\n" + OK,
        "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + OK,
        "hints before": b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + HEAD + OK,
        "trailers": CHUNKS + b"%x\r\n%b\r\n0\r\nx: y\r\n\r\n" % (len(OK), OK),
        "odd header": HEAD.replace(b"OK\r\n", b"OK\r\nx: \xff\xfe\r\n") + OK,
    }
    broken = {
        "nothing": b"", "only a head": HEAD, "words": b"hello\r\n\r\n", "HTTP/0.9": OK,
        "garbage behind": HEAD + OK + b"garbage", "no status": b"HTTP/1.1\r\n\r\n" + OK,
        "length abc": b"HTTP/1.1 200 OK\r\ncontent-length: abc\r\n\r\n" + OK,
        "length too long": b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n" + OK,
        "length too short": b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n" + OK,
        "two lengths": HEAD.replace(b"\r\n\r\n", b"\r\ncontent-length: 5\r\n\r\n") + OK,
        "half a chunk": CHUNKS + b"ffff\r\n" + OK, "no last chunk": CHUNKS + b"%x\r\n%b\r\n" % (len(OK), OK),
        "switch": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        "head without end": b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2**20, "TLS": b"\x15\x03\x01\x00\x02\x02\x28",
    }  # fmt: skip
    for cases, outcome in ((whole, None), (broken, "transport")):
        for name, data in cases.items():
            yield Case(f"raw {name}", (Canned(data, manner="raw"),), outcome)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Wired:
    """A server, another one that is not to hear of anything, and an event loop."""

    here: Server
    other: Server
    runner: asyncio.Runner

    async def ask(self, timeout_s: float) -> Completion | ModelError:
        """Ask by a connection of its own: the server may close the one before at any time."""
        settings = ModelSettings(self.here.url, timeout_s, window=1_000)
        model = create_model("openai:m", settings)
        try:
            return await model.complete(REQUEST)
        except ModelError as error:
            return error
        finally:
            await model.aclose()


@pytest.fixture(scope="module")
def wired() -> Iterator[Wired]:
    with (
        pytest.MonkeyPatch.context() as patch,
        serving() as here,
        serving() as other,
        asyncio.Runner() as runner,
    ):
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("OPENAI_CUSTOM_HEADERS", "x-secret: hidden")
        yield Wired(here, other, runner)


CASES = [*statuses(), *redirects(), *sizes(), *raw()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_fault_is_an_error_of_its_kind_and_a_reply_is_whole(case: Case, wired: Wired) -> None:
    host = wired.here.url.split("/")[2]
    wired.here.forget()
    for sent in case.sent:
        headers = {
            name: value.format(here=wired.here.url, other=wired.other.url, host=host)
            for name, value in sent.headers.items()
        }
        wired.here.next(replace(sent, headers=headers))
    found = wired.runner.run(wired.ask(0.5 if case.outcome == "deadline" else 15.0))
    if case.outcome is None:
        assert isinstance(found, Completion), found
        assert found.text == "ok"
    else:
        assert isinstance(found, ModelError), f"taken for an answer: {found}"
        kinds = (case.outcome,) if isinstance(case.outcome, str) else case.outcome
        assert found.kind in kinds, found
        assert len(str(found).splitlines()) <= 3
        assert KEY not in str(found)
    assert len(wired.here.requests) == case.n_requests, "nothing is asked again in silence"
    assert not wired.other.requests, "no other server hears of the prompt"


ASKING = """
import re, sys
from pathlib import Path
from pearl.errors import ModelError
from pearl.llm.backends import ModelSettings, create_model
from tests.llm.backends.asking import complete

model = create_model("openai:m", ModelSettings(sys.argv[1], 60.0, window=1_000))
for _ in range(2):
    try:
        print(complete(model).text)
    except ModelError as error:
        print(error.kind, "MiB" in str(error))
    peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
    print(int(peak[1]) // 1024)
"""


def large(name: str) -> Canned:
    many = b'{"choices": [' + b"[]," * (50 * 2**20 // 3) + b"0]}"
    if name == "endless":
        return Canned(b"[" * 2**16, manner="endless")
    return packed(many) if name == "packed" else Canned(many)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "packed", "endless"])
def test_a_large_reply_takes_no_more_memory_than_a_reply_may(name: str) -> None:
    """50 MiB of empty lists took more than 3 GB once."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the most memory that a process had is read from /proc")
    with serving() as server:
        server.next(Canned(completion("ok")), large(name))
        command = [sys.executable, "-c", ASKING, server.url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, before_mib, second, after_mib = done.stdout.splitlines()
    assert (first, second) == ("ok", "malformed True")
    assert int(after_mib) - int(before_mib) < 64


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_proxy")
def test_a_proxy_is_sent_the_whole_address_and_its_own_password(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.next(Canned(OK))
    proxy = openai_server.url.removesuffix("/v1").replace("//", "//of:proxy@")
    monkeypatch.setenv("http_proxy", proxy)

    async def use() -> bytes:
        wire = Wire(Endpoint("http://me:secret@nowhere.invalid/v1?k=a%2Bb", "m", "key"), 5.0)
        try:
            return await wire.get("/files", {"limit": 3})
        finally:
            await wire.close()

    assert asyncio.run(use()) == OK
    (seen,) = openai_server.requests
    assert seen.path == "http://nowhere.invalid/v1/files?k=a%2Bb&limit=3"
    assert seen.headers["proxy-authorization"] == "Basic b2Y6cHJveHk="
    assert seen.headers["authorization"] == "Basic bWU6c2VjcmV0", "a password replaces the key"


@pytest.mark.parametrize(
    ("hosts", "url", "is_direct"),
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
@pytest.mark.usefixtures("no_proxy")
def test_some_servers_are_asked_without_a_proxy(
    hosts: str, url: str, is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", hosts)
    monkeypatch.setenv("all_proxy", "proxy.example.org:3128")
    assert proxy_of(url) == (None if is_direct else "http://proxy.example.org:3128")


def test_a_connection_that_the_server_has_ended_is_dropped_in_silence(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.next(Canned(HEAD + OK, manner="raw"))
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)

    async def main() -> Wire:
        wire = Wire(Endpoint(openai_server.url, "m", ""), 5.0)
        await wire.post("/chat/completions", {"messages": []})
        while not all(each.is_lost for each in wire._connections._open):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return wire

    kept = asyncio.run(main())
    del kept
    gc.collect()
    assert not raised


@pytest.mark.usefixtures("no_proxy")
def test_a_proxy_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@localhost:1")

    async def main() -> None:
        wire = Wire(Endpoint("http://a.example.org/v1", "m", ""), 5.0)
        await wire.get("/models")

    with pytest.raises(ModelError, match="the proxy localhost:1 cannot be reached") as raised:
        asyncio.run(main())
    assert "NO_PROXY" in str(raised.value)
    assert "secret" not in str(raised.value)
    assert not raised.value.is_sent


def test_a_connection_that_ends_before_the_reply_is_told_in_words(openai_server: Server) -> None:
    openai_server.next(Canned(manner="raw"))

    async def main() -> None:
        await Wire(Endpoint(openai_server.url, "m", ""), 5.0).post("/chat/completions", {})

    with pytest.raises(ModelError, match="closed the connection: no reply came"):
        asyncio.run(main())


UNCLOSED = """
import asyncio, gc, os, sys, threading
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.wire import Wire
from pearl.llm.concurrency import background_loop

async def asked(wire=None):
    wire = wire or Wire(Endpoint(sys.argv[1], "m", ""), 5.0)
    await wire.post("/chat/completions", {"messages": []})
    return wire

def in_background(call):
    return asyncio.run_coroutine_threadsafe(call, background_loop("run")).result(9)

in_background(asked())  # its connections end in this thread
kept = in_background(asked())
asyncio.run(asked())
if hasattr(os, "fork"):
    child = os.fork()
    if not child:
        sys.exit()
    os.waitpid(child, 0)
in_background(asked(kept))
"""


def test_connections_that_nobody_closes_end_with_their_loop_thread_or_process(
    openai_server: Server,
) -> None:
    command = [
        sys.executable,
        "-X",
        "dev",
        "-W",
        "ignore:This process:DeprecationWarning",
        "-c",
        UNCLOSED,
        openai_server.url,
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(openai_server.requests) == 4
