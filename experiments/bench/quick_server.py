"""A server of Chat Completions that costs next to nothing: what is measured beside it is the client.

It reads as much of a request as it takes to find its end, and answers each with the same reply, after
50 ms. Prints its port, serves until it is ended.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

CALL_S = 0.05
TEXT = (
    sys.argv[1]
    if len(sys.argv) > 1
    else "Ada sold the boat in the spring, because its hull was rotten and nobody in the village could "
    "mend it before the storms. The buyer paid with a clock, and her brother kept both oars."
)


def answer_of(text: str) -> bytes:
    """The answer with a reply."""
    message = {"role": "assistant", "content": text}
    said = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "sim",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_500, "completion_tokens": 50, "total_tokens": 1_550},
    }
    body = json.dumps(said).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


ANSWER = answer_of(TEXT)

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """One connection: a request, its reply, the next request."""

    def __init__(self) -> None:
        self._data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer as soon as the request is whole."""
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._data, 0, end)
        if len(self._data) >= end + 4 + int(length[1] if length else 0):
            answer = self.answer(self._data[end + 4 :])
            self._data.clear()
            asyncio.get_running_loop().call_later(CALL_S, self._transport.write, answer)

    def answer(self, body: bytes) -> bytes:
        """The answer to the body of a request."""
        return ANSWER


async def serve(connection: type[Connection] = Connection) -> None:
    """Serve until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
