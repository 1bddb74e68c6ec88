"""What spans say: the attributes of calls, searches and steps."""

from __future__ import annotations

import asyncio
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from pearl.dsl.nodes import Argument, ListLiteral, Reference
from pearl.errors import ModelError
from pearl.llm import Usage
from pearl.telemetry.content import prompt_json, reply_json, system_json
from pearl.telemetry.conventions import AttributeValue, Conventions, provider_of
from pearl.trace import ModelAttempted, Retrieved, StepFinished

_COMPUTES = "extractive"
"""The backend that computes replies: it is sent nothing."""

_ON_DISK = ("llamacpp", "transformers")
"""Backends whose models may be named by a path."""


def openinference(kind: str) -> dict[str, AttributeValue]:
    """OpenInference's kind of a span."""
    return {"openinference.span.kind": kind}


def is_computed(model: str) -> bool:
    """Whether the replies of a model are computed, so that there are no calls."""
    return model.partition(":")[0] == _COMPUTES


def call_attributes(
    names: Conventions, model: str, replied_by: str, usage: Usage
) -> tuple[str, dict[str, Any]]:
    """The name of a model, and the attributes of a call of it."""
    backend, _, name = model.partition(":")
    name = (PurePath(name).name if backend in _ON_DISK else name) or backend
    reported = _without_folder(replied_by.removeprefix(f"{backend}:"))
    has_usage = usage != Usage()
    told = names.attributes(
        operation="chat",
        provider=provider_of(backend) or None,
        request_model=name or None,
        response_model=reported or None,
        input_tokens=usage.n_input_tokens if has_usage else None,
        output_tokens=usage.n_output_tokens if has_usage else None,
        cached_tokens=usage.n_cached_tokens or None,
    )
    return name or reported, {**told, **openinference("LLM")}


def attempt_attributes(
    names: Conventions, event: ModelAttempted, *, has_content: bool
) -> dict[str, Any]:
    """What is known of an attempt beyond the call: parameters, server, prompt and reply."""
    server = urlsplit(event.server)
    told = names.attributes(
        temperature=event.temperature,
        seed=event.seed,
        max_tokens=event.max_output_tokens,
        finish_reasons=[event.finish_reason] if event.finish_reason else None,
        resend_count=event.number or None,
        server_address=server.hostname,
        server_port=server.port or {"http": 80, "https": 443}.get(server.scheme),
    )
    if not has_content:
        return told
    return told | names.attributes(
        system_instructions=system_json(event.messages),
        input_messages=prompt_json(event.messages),
        output_messages=reply_json(event.reply, event.finish_reason or event.error or ""),
    )


def search_attributes(names: Conventions, event: Retrieved) -> dict[str, Any]:
    """How passages were searched, and how many were found."""
    return {
        **names.attributes(operation="retrieval"),
        **openinference("RETRIEVER"),
        "pearl.retrieval.method": event.method,
        "pearl.retrieval.k": event.k,
        "pearl.retrieval.hits": event.n_hits,
    }


def result_attributes(event: StepFinished, n_sent: int, n_kept: int) -> dict[str, Any]:
    """How a step ended."""
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
    """The kind of an error, never its message: that of the model's error behind it, or its class."""
    if error is None:
        return None
    if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
        return "cancelled"
    behind = error if isinstance(error, ModelError) else error.__cause__
    return behind.kind if isinstance(behind, ModelError) else type(error).__name__


def argument_data(argument: Argument) -> Any:
    """An argument of a step as JSON data: outputs and the document by their names."""
    if isinstance(argument, ListLiteral):
        return [argument_data(each) for each in argument.items]
    return argument.name if isinstance(argument, Reference) else argument.value


def _without_folder(model: str) -> str:
    """The name of a model as its server reports it, of a file without its folder."""
    is_file = model.startswith(("/", "\\", "~", ".")) or model.endswith(".gguf")
    return PurePath(model).name if is_file else model
