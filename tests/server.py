"""An OpenAI-compatible server on loopback for tests: scripted replies, real sockets, real faults.

In a test, take the fixture `openai_server`. Faults come first, one a call, then the replies of the
rules, the first that matches the prompt, or `ok`.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

HANG_S = 3600.0
DRIP_S = 0.05
LOOK_S = 0.005


@dataclass(frozen=True)
class Canned:
    """What goes back over the wire.

    Attributes:
        manner: `whole`; `short`: half of the body, then the connection ends; `drip`: a few bytes
            every `DRIP_S`, from the first header on; `reset` before any byte; `hang` before any
            byte; `stall`: all but the last byte; `endless`: the body again and again, until the
            client leaves; `raw`: the body is all that is sent, head included, and the connection
            ends; `torn`: the same, but the connection is reset.
    """

    body: bytes | str | Mapping[str, Any] | Sequence[Any] = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    manner: Literal[
        "whole", "short", "drip", "reset", "hang", "stall", "endless", "raw", "torn"
    ] = "whole"  # fmt: skip

    @property
    def data(self) -> bytes:
        """The body in bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(frozen=True)
class Seen:
    """A request that the server got; `data` is its body as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    data: bytes = b""

    @property
    def prompt(self) -> str:
        """All messages as one text."""
        messages = self.body.get("messages") or self.body.get("input") or ()
        return "\n\n".join(_text_of(message["content"]) for message in messages)


def _text_of(content: str | Sequence[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def completion(
    text: str | None = "ok", *, finish_reason: str | None = "stop", **message: Any
) -> dict[str, Any]:
    """A reply as OpenAI sends it."""
    n_output_tokens = len((text or "").split())
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "test-model-2026",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish_reason,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": n_output_tokens,
            "total_tokens": 100 + n_output_tokens,
            "prompt_tokens_details": {"cached_tokens": 64},
        },
    }


def quoting(reply: dict[str, Any], prompt: str) -> dict[str, Any]:
    """A reply to the request for a text, with the beginning of the document, or a quote of a part, as its quote."""
    message = reply["choices"][0]["message"]
    shown = quotable(prompt)
    if shown and '{"answer": ' in prompt and not re.search(r"^[{>]", message["content"], re.M):
        message["content"] += f"\n> {shown}"
    return reply


def quotable(prompt: str) -> str | None:
    """The beginning of the document in a prompt, or a quote of a part of it."""
    shown = re.search(r"(?:<text>\n|<part 1>\n[^>]+\n> )(.{1,60}(?!\w))", prompt)
    return shown and shown[1]


def tool_call(text: str, **changes: Any) -> dict[str, Any]:
    """A reply as OpenAI sends it where the model calls a custom tool."""
    call = {"id": "call_1", "type": "custom", "custom": {"name": "reply", "input": text}}
    return completion(None, tool_calls=[{**call, **changes}])


def embeddings(texts: Sequence[str], *, dimension: int = 16) -> dict[str, Any]:
    """Vectors as OpenAI sends them: texts with the same words have similar ones."""
    data = []
    for index, text in enumerate(texts):
        vector = [0.0] * dimension
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % dimension] += 1.0
        data.append({"object": "embedding", "index": index, "embedding": vector})
    n_tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "model": "test-model-2026", "data": data, "usage": usage}


def error(message: str, **details: Any) -> dict[str, Any]:
    """An error as OpenAI sends it."""
    return {"error": {"message": message, **details}}


PAGE = "<html><body>\n<h1>502 Bad Gateway</h1>\n</body></html>"
WHOLE = json.dumps(completion("a reply of some length " * 20)).encode()

FAULTS: Mapping[str, Canned] = {
    "400": Canned(error("no"), 400),
    "401": Canned(error("Incorrect API key provided: sk-abc***xyz", code="invalid_api_key"), 401),
    "402": Canned(error("Insufficient Balance"), 402),
    "403": Canned(error("country not supported"), 403),
    "404": Canned({"detail": "Not Found"}, 404),
    "413": Canned(PAGE, 413, content_type="text/html"),
    "422": Canned({"detail": [{"loc": ["body"], "msg": "field required"}]}, 422),
    "429": Canned(error("slow down"), 429),
    "quota": Canned(error("You exceeded your current quota", code="insufficient_quota"), 429),
    "500": Canned(error("internal"), 500),
    "502": Canned(PAGE, 502, content_type="text/html"),
    "503": Canned({"error": "overloaded"}, 503),
    "loop": Canned(b"", 307, {"location": "/v1/chat/completions"}),
    "nowhere": Canned(b"", 307, {"location": "http://[broken"}),
    "filtered prompt": Canned(error("filtered", code="content_filter"), 400),
    "reset": Canned(manner="reset"),
    "hang": Canned(manner="hang"),
    "drip": Canned(WHOLE, manner="drip"),
    "not gzip": Canned(WHOLE, headers={"content-encoding": "gzip"}),
    "half JSON": Canned(WHOLE[: len(WHOLE) // 2]),
    "no body": Canned(b""),
    "page": Canned(PAGE, content_type="text/html"),
    "page as JSON": Canned(PAGE),
    "not UTF-8": Canned(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "deep": Canned("[" * 100_000),
    "long number": Canned('{"choices": ' + "9" * 5_000 + "}"),
    "number": Canned("1"),
    "null": Canned("null"),
    "list": Canned([completion()]),
    "error": Canned(error("upstream failed")),
    "no choices": Canned({**completion(), "choices": []}),
    "wrong choices": Canned({**completion(), "choices": [{"message": "hello"}]}),
    "null content": Canned(completion(None)),
    "empty content": Canned(completion("")),
    "blank content": Canned(completion(" \n\t")),
    "cut": Canned(completion("half a sen", finish_reason="length")),
    "cut while thinking": Canned(completion(None, finish_reason="length")),
    "content filter": Canned(completion("", finish_reason="content_filter")),
    "refusal": Canned(completion(None, refusal="I'm sorry, I can't help with that.")),
    "surrogate": Canned(completion("a\ud800b \U0001f600")),
    "bare": Canned({"choices": [{"message": {"content": "ok"}}]}),
}
"""Everything a server can do to a client, by name."""


class Server:
    """Answers `chat/completions`, `embeddings` and `models`; keeps what it was asked.

    Attributes:
        url: Base URL, `/v1` included.
        requests: Every request for a completion or embeddings so far.
        models: Names that `/models` lists; None to answer 404 there.
        owned_by: Whose the listed models are; None where the listing does not say.
        listing: What to answer there in place of those names, also by the request; None for them.
        n_listings: How often `/models` was asked for.
        takes_constraints: Whether it may be asked for a form of replies; else it is known to refuse all.
        fingerprint: The `system_fingerprint` of replies by rules.
        answer: What to answer in place of the rules, once the answers given first are used up.
        n_at_once: The most requests that were open together.
        delay_s: How long a request is open before it is answered.
        n_together: Answer sooner: as soon as so many requests have been open together.
        hold_after: Answer so many requests and hold the others until it is None again: what is
            stopped then is stopped amid its work, however busy the machine.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Seen] = []
        self.models: list[str] | None = ["test-model"]
        self.owned_by: str | None = None
        self.listing: Canned | Callable[[Seen], Canned] | None = None
        self.n_listings = 0
        self.takes_constraints = False
        self.answer: Callable[[Seen], Canned] | None = None
        self.fingerprint: str | None = None
        self.n_at_once = 0
        self.delay_s = 0.0
        self.n_together: int | None = None
        self.hold_after: int | None = None
        self._port = 0
        self.n_open = 0
        self._rules: list[tuple[re.Pattern[str], str | Callable[[Seen], str]]] = []
        self._queue: deque[Canned] = deque()
        self._stop: Callable[[], object] = lambda: None
        self._connections: set[asyncio.Task[None]] = set()

    def on(self, match: str, reply: str | Callable[[Seen], str]) -> None:
        """Answer with `reply` where the regular expression `match` is found in the prompt."""
        self._rules.append((re.compile(match, re.DOTALL), reply))

    def next(self, *answers: str | Canned) -> None:
        """Give these answers first: names of faults, or what to send."""
        self._queue += [FAULTS[a] if isinstance(a, str) else a for a in answers]

    def forget(self) -> None:
        """Begin anew: no answer is due, nothing was asked."""
        self._queue.clear()
        self.requests.clear()

    def start(self) -> None:
        """Serve in a thread of its own, until `stop`; then again at the same address."""
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)))
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """End every connection and the thread."""
        self._stop()
        self._thread.join()

    async def _serve(self, ready: threading.Event) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        async with self.within_loop():
            ready.set()
            await stopped.wait()

    @asynccontextmanager
    async def within_loop(self) -> AsyncIterator[None]:
        """Serve in the running event loop, and so by its clock, for the length of a block."""
        server = await asyncio.start_server(
            self._connected, "127.0.0.1", self._port, limit=2**26, backlog=2_000
        )
        self._port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/v1"
        try:
            yield
        finally:
            server.close()
            for connection in self._connections:
                connection.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        try:
            while seen := await _read(reader):
                await self._answer(seen, writer)
        except (OSError, EOFError, ValueError, asyncio.CancelledError):
            pass  # the client left, spoke no HTTP, or the test is over
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        if seen.path.partition("?")[0].endswith("/models"):
            self.n_listings += 1
            names = self.models
            owned = {} if self.owned_by is None else {"owned_by": self.owned_by}
            listing = {"object": "list", "data": [{"id": name, **owned} for name in names or ()]}
            of_names = FAULTS["404"] if names is None else Canned(listing)
            told = self.listing(seen) if callable(self.listing) else self.listing
            await send(told or of_names, writer)
            return
        self.requests.append(seen)
        number = len(self.requests)
        self.n_open += 1
        self.n_at_once = max(self.n_at_once, self.n_open)
        try:
            await self._is_due(number)
            if self._queue:
                answer = self._queue.popleft()
            elif self.answer:
                answer = self.answer(seen)
            elif seen.path.endswith("/embeddings"):
                answer = Canned(embeddings(seen.body["input"]))
            elif not seen.path.partition("?")[0].endswith("/chat/completions"):
                answer = FAULTS["404"]
            else:
                reply = quoting(completion(self._reply(seen)), seen.prompt)
                answer = Canned(reply | {"system_fingerprint": self.fingerprint})
        finally:
            self.n_open -= 1
        await send(answer, writer)

    async def _is_due(self, number: int) -> None:
        """Wait as long as the test wants it, which is in another thread."""
        if self.n_together is None:
            await asyncio.sleep(self.delay_s)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.delay_s):
                    while self.n_at_once < self.n_together:  # noqa: ASYNC110
                        await asyncio.sleep(LOOK_S)
        while self.hold_after is not None and number > self.hold_after:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)

    def _reply(self, seen: Seen) -> str:
        for pattern, reply in self._rules:
            if pattern.search(seen.prompt):
                return reply if isinstance(reply, str) else reply(seen)
        return "ok"


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    first = await reader.readexactly(1)
    if not first.isalpha():
        raise ValueError("no HTTP")  # a client that speaks TLS
    head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    others = ("multipart/", "application/jsonl")
    is_json = body and not headers.get("content-type", "").startswith(others)
    return Seen(method, path, headers, json.loads(body) if is_json else {}, body)


async def send(answer: Canned, writer: asyncio.StreamWriter) -> None:
    if answer.manner == "reset":
        raise ConnectionResetError
    if answer.manner == "hang":
        await asyncio.sleep(HANG_S)
    data = answer.data
    if answer.manner in ("raw", "torn"):
        writer.write(data)
        await writer.drain()
        if answer.manner == "torn":
            sent_now = struct.pack("ii", 1, 0)  # what is unsent is thrown away
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, sent_now)
            raise ConnectionResetError
        writer.close()
        raise EOFError
    n_bytes = len(data) + (answer.manner == "stall")
    length = {} if answer.manner == "endless" else {"content-length": n_bytes}
    headers = {"content-type": answer.content_type, **length, **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {headers[name]}" for name in headers)]
    head = "\r\n".join([*lines, "", ""]).encode()
    if answer.manner == "short":
        writer.write(head + data[: len(data) // 2])
        await writer.drain()
        raise ConnectionResetError
    if answer.manner == "endless":
        writer.write(head)
    while answer.manner == "endless":
        writer.write(data)
        await writer.drain()
    whole = head + data
    step = 8 if answer.manner == "drip" else len(whole)
    for start in range(0, len(whole), step):
        writer.write(whole[start : start + step])
        await writer.drain()
        if answer.manner == "drip":
            await asyncio.sleep(DRIP_S)
    if answer.manner == "stall":
        await asyncio.sleep(HANG_S)


@contextmanager
def serving() -> Iterator[Server]:
    """A server for the length of a block."""
    server = Server()
    server.start()
    try:
        yield server
    finally:
        server.stop()
