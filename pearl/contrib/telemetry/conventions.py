"""Attribute names of OpenTelemetry's conventions for generative models 1.41; unstable ones are in `_NAMES`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from pearl.dsl.nodes import Argument, ListLiteral, Reference
from pearl.errors import ModelError
from pearl.errors.escaping import to_json
from pearl.errors.privacy import is_private
from pearl.llm import Usage
from pearl.trace import ModelAttempted, Retrieved, StepFinished

AttributeValue = str | bool | int | float | Sequence[str]

CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"

_NAMES: Mapping[str, str] = {
    "kind": "openinference.span.kind",
    "operation": "gen_ai.operation.name",
    "provider": "gen_ai.provider.name",
    "conversation": "gen_ai.conversation.id",
    "workflow": "gen_ai.workflow.name",
    "agent": "gen_ai.agent.name",
    "tool": "gen_ai.tool.name",
    "tool_type": "gen_ai.tool.type",
    "tool_call": "gen_ai.tool.call.id",
    "tool_arguments": "gen_ai.tool.call.arguments",
    "tool_result": "gen_ai.tool.call.result",
    "request_model": "gen_ai.request.model",
    "response_model": "gen_ai.response.model",
    "finish_reasons": "gen_ai.response.finish_reasons",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "system_instructions": "gen_ai.system_instructions",
    "input_messages": "gen_ai.input.messages",
    "output_messages": "gen_ai.output.messages",
    "error": "error.type",
    "resend_count": "http.request.resend_count",
    "server_address": "server.address",
    "server_port": "server.port",
}
"""Attributes by the name of the value."""

_PROVIDERS = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
"""Backends whose provider has another name in the conventions."""


def named(**told: AttributeValue | None) -> dict[str, AttributeValue]:
    """Attributes of a span, without values that are None."""
    return {_NAMES[what]: value for what, value in told.items() if value is not None}


def captures_content() -> bool:
    """Whether the environment asks for texts in spans (`SPAN_ONLY`, `SPAN_AND_EVENT`, `true`), and the run is not private."""
    said = os.environ.get(CONTENT_VARIABLE, "").strip().upper()
    return said in ("SPAN_ONLY", "SPAN_AND_EVENT", "TRUE") and not is_private()


MAX_CHARACTERS = 32_768
"""Maximum length of a text in a span: collectors refuse batches with whole documents."""


def text_of(text: str) -> str:
    """A text for a span: at most `MAX_CHARACTERS`, and valid Unicode."""
    more = len(text) - MAX_CHARACTERS
    if more > 0:
        text = f"{text[:MAX_CHARACTERS]}... ({more:,} more characters)"
    return text.encode("utf-8", "replace").decode()


def _parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "content": text_of(text)}]


def is_computed(model: str) -> bool:
    """Whether a model computes replies in this process, without calls."""
    return model.partition(":")[0] == "extractive"


def call_attributes(model: str, replied_by: str, usage: Usage) -> tuple[str, dict[str, Any]]:
    """The name of a model, and the attributes of a call of it."""
    backend, _, name = model.partition(":")
    name = (PurePath(name).name if backend == "llamacpp" else name) or backend
    reported = replied_by.removeprefix(f"{backend}:")
    if reported.startswith(("/", "\\", "~", ".")) or reported.endswith(".gguf"):
        reported = PurePath(reported).name  # a path may be content
    has_usage = usage != Usage()
    told = named(
        operation="chat",
        kind="LLM",
        provider=_PROVIDERS.get(backend, backend) or None,
        request_model=name or None,
        response_model=reported or None,
        input_tokens=usage.n_input_tokens if has_usage else None,
        output_tokens=usage.n_output_tokens if has_usage else None,
        cached_tokens=usage.n_cached_tokens or None,
    )
    return name or reported, told


def attempt_attributes(event: ModelAttempted, *, has_content: bool) -> dict[str, Any]:
    """Attributes of an attempt beyond the call: parameters, server, prompt and reply."""
    server = urlsplit(event.server)
    parameters = {f"gen_ai.request.{name}": value for name, value in event.parameters.items()}
    told = parameters | named(
        finish_reasons=[event.finish_reason] if event.finish_reason else None,
        resend_count=event.number or None,
        server_address=server.hostname,
        server_port=server.port or {"http": 80, "https": 443}.get(server.scheme),
    )
    if not has_content:
        return told
    system = [part for m in event.messages if m.role == "system" for part in _parts(m.content)]
    turns = [
        {"role": m.role, "parts": _parts(m.content)} for m in event.messages if m.role != "system"
    ]
    ending = event.finish_reason or event.error or ""
    reply = {"role": "assistant", "parts": _parts(event.reply), "finish_reason": ending}
    return told | named(
        system_instructions=to_json(system) if system else None,
        input_messages=to_json(turns),
        output_messages=to_json([reply]) if event.reply else None,
    )


def search_attributes(event: Retrieved) -> dict[str, Any]:
    """The search method, and the number of hits."""
    return {
        **named(operation="retrieval", kind="RETRIEVER"),
        "pearl.retrieval.method": event.method,
        "pearl.retrieval.k": event.k,
        "pearl.retrieval.hits": event.n_hits,
    }


def result_attributes(event: StepFinished, n_sent: int, n_kept: int) -> dict[str, Any]:
    """Attributes of the final state of a step."""
    told: dict[str, Any] = {
        "pearl.step.state": event.state,
        "pearl.step.context": event.context,
        "pearl.step.native": event.is_native,
        "pearl.step.truncated": bool(event.truncated),
    }
    if event.coverage is not None:
        told["pearl.step.coverage"] = event.coverage
    if n_sent + n_kept:
        told |= {"pearl.cache": "miss" if n_sent else "hit", "pearl.cache.hits": n_kept}
    return told


def error_type(error: BaseException | None) -> str | None:
    """The kind of an error without its message: the kind of the model error that caused it, or its class."""
    if error is None:
        return None
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return "cancelled"
    behind = error if isinstance(error, ModelError) else error.__cause__
    return behind.kind if isinstance(behind, ModelError) else type(error).__name__


def argument_data(argument: Argument) -> Any:
    """An argument of a step as JSON data; references become names."""
    if isinstance(argument, ListLiteral):
        return [argument_data(each) for each in argument.items]
    return argument.name if isinstance(argument, Reference) else argument.value
