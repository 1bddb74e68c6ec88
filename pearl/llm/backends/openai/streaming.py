"""A streamed reply → its body as without streaming, which `replies` validates.

Meanwhile progress is reported, and a repetitive reply is stopped by closing the connection.

Only llama.cpp in our own child process is streamed: servers and gateways differ in how they end a
stream and report errors, and some omit the usage, which budgets need.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from pearl.errors import ModelError
from pearl.llm import Usage
from pearl.llm.backends.openai import faults
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.flaws import Watch, repeats
from pearl.llm.progress import MAX_TAIL, CallProgress, report

if TYPE_CHECKING:
    from pearl.llm.backends.openai.wire import Wire


class _Delta(BaseModel):
    content: str | None = None
    reasoning_content: str | None = None


class _StreamedChoice(BaseModel):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Prompt(BaseModel):
    """Progress on the prompt, as reported by llama.cpp."""

    total: int
    processed: int
    cache: int = 0


class _Chunk(BaseModel):
    choices: list[_StreamedChoice] = []
    usage: dict[str, Any] | None = None
    model: str | None = None
    prompt_progress: _Prompt | None = None


async def post(wire: Wire, path: str, body: dict[str, Any], endpoint: Endpoint) -> bytes:
    """Post a body with streaming; returns the body of the reply as without."""
    asked = {
        **body,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    reply = _StreamedReply(endpoint)
    try:
        async with aclosing(wire.stream(path, asked)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, dict) and chunk.get("error"):
                    raise faults.reported(chunk["error"], endpoint)
                reply.add(chunk)
    except (ValueError, RecursionError):
        raise _broken(endpoint) from None
    return reply.body()


class _StreamedReply:
    """An incomplete reply."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._said: list[str] = []
        self._hidden: list[str] = []
        self._tail = ""
        self._finish_reason: str | None = None
        self._usage: dict[str, Any] | None = None
        self._model: str | None = None
        self._prompt = _Prompt(total=0, processed=0)
        self._n_tokens = 0
        self._watch = Watch()

    def add(self, data: object) -> None:
        """Append a chunk."""
        try:
            chunk = _Chunk.model_validate(data)
        except ValidationError as error:
            raise ValueError("no chunk of a chat completion") from error
        self._usage = chunk.usage or self._usage
        self._model = chunk.model or self._model
        if chunk.prompt_progress is not None:
            self._prompt = prompt = chunk.prompt_progress
            report(CallProgress("reading", prompt.processed, prompt.total))
        for choice in chunk.choices[:1]:
            self._finish_reason = choice.finish_reason or self._finish_reason
            self._write(choice.delta.content or "", choice.delta.reasoning_content or "")

    def _write(self, shown: str, hidden: str) -> None:
        if not shown and not hidden:
            return
        self._said.append(shown)
        self._hidden.append(hidden)
        self._n_tokens += 1
        self._tail = (self._tail + shown)[-MAX_TAIL:]
        report(CallProgress("writing", self._n_tokens, text=self._tail))
        loop = self._watch.add(hidden + shown)
        if loop is not None:
            usage = Usage(self._prompt.total, self._n_tokens, self._prompt.cache)
            raise repeats(self._endpoint.model, loop, usage, "".join(self._said))

    def body(self) -> bytes:
        """The body of the whole reply."""
        if self._finish_reason is None:
            raise _broken(self._endpoint)
        message = {
            "role": "assistant",
            "content": "".join(self._said),
            "reasoning_content": "".join(self._hidden),
        }
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason}
        reply = {"model": self._model, "choices": [choice], "usage": self._usage}
        return json.dumps(reply).encode()


def _broken(endpoint: Endpoint) -> ModelError:
    return ModelError(f"the stream of {endpoint.shown} ends early", kind="transport")
