"""Read replies while they are written, to report progress and to stop repetitive ones."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from msgspec import Struct, convert

from pearl.errors import ModelError
from pearl.errors.escaping import json_bytes
from pearl.llm import Usage
from pearl.llm.backends.openai import faults
from pearl.llm.backends.openai.wire import Wire
from pearl.llm.flaws import Watch, repeats
from pearl.llm.progress import MAX_TAIL, CallProgress, report


class StreamingWire(Wire):
    """A connection that receives completions in pieces and returns the whole reply."""

    BYTES_A_TOKEN = 512  # A reply has an event for each token

    async def post(self, path: str, body: Mapping[str, Any] | bytes) -> bytes:
        """Post JSON data; return the body that the reply would have without streaming."""
        if path != "/chat/completions" or isinstance(body, bytes):
            return await super().post(path, body)
        body = {
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        reply = _StreamedReply(self._endpoint.model)
        try:
            async with aclosing(self._events(path, body)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, dict) and chunk.get("error"):
                        raise faults.reported(chunk["error"], self._endpoint)
                    reply.add(convert(chunk, _Chunk))
        except (ValueError, RecursionError):
            reply.finish_reason = None
        if reply.finish_reason is None:
            raise ModelError(f"the stream of {self._endpoint.shown} ends early", kind="transport")
        return reply.body()

    async def _events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The data of each event of a reply."""
        async with self._sent("POST", path, json_bytes(body)) as pieces:
            rest = bytearray()
            async for piece in pieces:
                rest += piece
                if b"\n" not in piece:
                    continue
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    if not line.startswith(b"data:"):
                        continue
                    data = line.removeprefix(b"data:").strip()
                    if data == b"[DONE]":
                        return
                    yield json.loads(data)


class _Delta(Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None


class _StreamedChoice(Struct, frozen=True):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Prompt(Struct, frozen=True):
    """Progress on the prompt, as reported by llama.cpp."""

    total: int = 0
    processed: int = 0
    cache: int = 0


class _Chunk(Struct, frozen=True):
    choices: list[_StreamedChoice] = []
    usage: dict[str, Any] | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    prompt_progress: _Prompt | None = None


class _StreamedReply:
    """An incomplete reply."""

    def __init__(self, model: str) -> None:
        self.finish_reason: str | None = None
        self._requested_model = model
        self._told: dict[str, Any] = {}  # the latest value of each field except the choices
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._tail = ""
        self._prompt = _Prompt()
        self._watch = Watch()

    def add(self, chunk: _Chunk) -> None:
        """Append a chunk; raises `ModelError` if the reply repeats itself."""
        for name in ("usage", "model", "system_fingerprint"):
            if value := getattr(chunk, name):
                self._told[name] = value
        if chunk.prompt_progress is not None:
            self._prompt = prompt = chunk.prompt_progress
            report(CallProgress("reading", prompt.processed, prompt.total))
        for choice in chunk.choices[:1]:
            self.finish_reason = choice.finish_reason or self.finish_reason
            text, reasoning = choice.delta.content or "", choice.delta.reasoning_content or ""
            if not (text or reasoning):
                continue
            self._texts.append(text)
            self._reasoning.append(reasoning)
            n_tokens = len(self._texts)
            self._tail = (self._tail + text)[-MAX_TAIL:]
            report(CallProgress("writing", n_tokens, text=self._tail))
            if (loop := self._watch.add(reasoning + text)) is not None:
                usage = Usage(self._prompt.total, n_tokens, self._prompt.cache)
                raise repeats(self._requested_model, loop, usage, "".join(self._texts))

    def body(self) -> bytes:
        """The body of the whole reply."""
        message = {"content": "".join(self._texts), "reasoning_content": "".join(self._reasoning)}
        choice = {"message": message, "finish_reason": self.finish_reason}
        return json.dumps({**self._told, "choices": [choice]}).encode()
