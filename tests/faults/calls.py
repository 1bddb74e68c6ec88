"""Calls to the loopback server by a client, and bytes of replies that are cut or changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pearl.llm import Completion, Message, Model, Request
from pearl.llm.backends.openai import OpenAIModel
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.client import Client, ClientSettings
from pearl.runs.store import Store
from pearl.runs.store.database import unpacked_reply
from tests.models import answer_task
from tests.server import Canned, Seen, Server, completion

Outcome = Completion | BaseException
"""What a caller of a client gets."""

FORMS = ("chat", "stream")
"""The forms of replies: whole, or as they are written."""


def request(number: int, **options: Any) -> Request:
    """The request whose prompt is a number."""
    return Request((Message("user", f"{number}"),), answer_task("Who?", ""), **options)


def model_of(server: Server, form: str = "chat", timeout_s: float = 30.0) -> Model:
    """The model of the server that sends replies in a form."""
    endpoint = Endpoint(server.url, "m", "")
    if form == "stream":
        from pearl.contrib.llamacpp.streaming import StreamingWire

        return OpenAIModel(endpoint, timeout_s, 128_000, new_wire=StreamingWire)
    return OpenAIModel(endpoint, timeout_s, 128_000)


def answering(answer: Callable[[int, int], Canned]) -> Callable[[Seen], Canned]:
    """Answers by the number of the prompt, and by how often it was asked before."""
    n_asked: dict[str, int] = {}

    def reply(seen: Seen) -> Canned:
        n_before = n_asked.get(seen.prompt, 0)
        n_asked[seen.prompt] = n_before + 1
        return answer(int(seen.prompt), n_before)

    return reply


def ask(
    model: Model, requests: Sequence[Request], folder: Path | None = None, **settings: Any
) -> list[Outcome]:
    """The outcome of each request; one client makes all calls, and stores replies in the folder."""

    async def main(store: Store | None) -> list[Outcome]:
        options = {"concurrency": 32, "first_wait_s": 0.001, "prefix": "off", **settings}
        client = Client(ClientSettings(model, **options), replies=store)
        try:
            return await asyncio.gather(*map(client.complete, requests), return_exceptions=True)
        finally:
            await client.aclose()

    if folder is None:
        return asyncio.run(main(None))
    with Store.open(folder) as store:
        return asyncio.run(main(store))


def stored(folder: Path) -> list[str]:
    """The text of every reply in a store, as its file has it."""
    with Store.open(folder, read_only=True) as store:
        replies = [unpacked_reply(*row) for row in store.all("SELECT key, body FROM replies")]
    assert None not in replies
    return [reply.text for reply in replies if reply is not None]


def events(text: str, finish_reason: str | None = "stop", n: int = 4) -> list[Any]:
    """The events of a reply as it is written, about `n` characters each."""
    parts = [text[start : start + n] for start in range(0, len(text), n)]
    choices: list[Any] = [{"delta": {"content": part}, "finish_reason": None} for part in parts]
    choices.append({"delta": {}, "finish_reason": finish_reason})
    usage = {"prompt_tokens": 9, "completion_tokens": len(parts)}
    return [*({"choices": [choice]} for choice in choices), {"choices": [], "usage": usage}]


def streamed(sent: Sequence[Any], end: str = "data: [DONE]\n\n") -> str:
    """The body of events."""
    return "".join(f"data: {json.dumps(event)}\n\n" for event in sent) + end


def body_of(text: str, form: str) -> bytes:
    """The body of a whole reply in a form."""
    if form == "stream":
        return streamed(events(text)).encode()
    return json.dumps(completion(text)).encode()


FRAMES: dict[str, Callable[[bytes], bytes]] = {
    "length": lambda body: b"content-length: %d\r\n\r\n%b" % (len(body), body),
    "until the end": lambda body: b"\r\n" + body,
    "chunks": lambda body: b"transfer-encoding: chunked\r\n\r\n"
    + b"".join(b"%x\r\n%b\r\n" % (len(part), part)
               for part in (body[start : start + 40] for start in range(0, len(body), 40)))
    + b"0\r\n\r\n",
}  # fmt: skip
"""How HTTP tells where a body ends."""


def http(body: bytes, frame: str) -> bytes:
    """A response with status 200."""
    kind = b"text/event-stream" if body.startswith(b"data:") else b"application/json"
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b" % (kind, FRAMES[frame](body))
