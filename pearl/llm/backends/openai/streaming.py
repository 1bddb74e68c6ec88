"""A streamed reply of llama.cpp in our child process → the body of one without streaming; reports progress, and stops repetition."""

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

    total: int = 0
    processed: int = 0
    cache: int = 0


class _Chunk(BaseModel):
    choices: list[_StreamedChoice] = []
    usage: dict[str, Any] | None = None
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    prompt_progress: _Prompt | None = None


async def post(wire: Wire, path: str, body: dict[str, Any], endpoint: Endpoint) -> bytes:
    """Post a body with streaming; returns the body of the same reply without streaming."""
    body = {
        **body,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    reply = _StreamedReply(endpoint.model)
    try:
        async with aclosing(wire.stream(path, body)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, dict) and chunk.get("error"):
                    raise faults.reported(chunk["error"], endpoint)
                reply.add(_Chunk.model_validate(chunk))
    except (ValidationError, ValueError, RecursionError):
        reply.finish_reason = None
    if reply.finish_reason is None:
        raise ModelError(f"the stream of {endpoint.shown} ends early", kind="transport")
    return reply.body()


class _StreamedReply:
    """An incomplete reply."""

    def __init__(self, model: str) -> None:
        self.finish_reason: str | None = None
        self._requested_model = model
        self._model: str | None = None
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._tail = ""
        self._usage: dict[str, Any] | None = None
        self._tier: str | None = None
        self._fingerprint: str | None = None
        self._prompt = _Prompt()
        self._watch = Watch()

    def add(self, chunk: _Chunk) -> None:
        """Append a chunk; raises `ModelError` if the reply repeats itself."""
        self._usage = chunk.usage or self._usage
        self._model = chunk.model or self._model
        self._tier = chunk.service_tier or self._tier
        self._fingerprint = chunk.system_fingerprint or self._fingerprint
        if chunk.prompt_progress is not None:
            self._prompt = prompt = chunk.prompt_progress
            report(CallProgress("reading", prompt.processed, prompt.total))
        for choice in chunk.choices[:1]:
            self.finish_reason = choice.finish_reason or self.finish_reason
            text, reasoning = choice.delta.content or "", choice.delta.reasoning_content or ""
            if text or reasoning:
                self._write(text, reasoning)

    def _write(self, text: str, reasoning: str) -> None:
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
        reply = {
            "model": self._model, "choices": [choice], "usage": self._usage, "service_tier": self._tier,
            "system_fingerprint": self._fingerprint,
        }  # fmt: skip
        return json.dumps(reply).encode()
