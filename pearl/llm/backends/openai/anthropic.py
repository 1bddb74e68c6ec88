"""Anthropic's Messages API: write request bodies, read reply bodies as `Completion` or `ModelError`."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from pearl.llm import Completion, PrefixCaching, Request
from pearl.llm.backends.openai import chat
from pearl.llm.backends.openai.api import Accepted, Api, Body, Schema
from pearl.llm.backends.openai.endpoint import Endpoint

# Not 2026-10-21, which rejects `temperature` for all models, although those up to 4.6 use it;
# `Accepted` learns which others reject it. All other fields are the same in both versions.
VERSION = "2023-06-01"
MAX_TOKENS = 8_192  # For a request without a limit, because the API requires one


def body(request: Request, model: str, accepted: Accepted) -> Body:
    """The body of a request without its constraint."""
    turns = accepted.turns(request)
    system = [turn["content"] for turn in turns if turn["role"] == "system"]
    return {
        "model": model,
        **({"system": "\n\n".join(system)} if system else {}),
        "max_tokens": MAX_TOKENS,
        "messages": [turn for turn in turns if turn["role"] != "system"],
        **accepted.parameters(request, "messages"),
    }


def output_format(body: Body, schema: Schema) -> Body:
    """Add the form of the reply, a JSON Schema, to a body."""
    return {
        **body,
        "output_config": {"format": {"type": "json_schema", "schema": _accepted(schema)}},
    }


# Keywords that structured outputs reject
_REJECTED = frozenset({"maxItems", "minItems", "maxLength", "pattern", "minimum", "maximum"})


def _accepted(schema: Schema) -> dict[str, Any]:
    """Move the keywords of a schema that Anthropic rejects into its description, as the official client does."""
    kept = {name: value for name, value in schema.items() if name not in _REJECTED}
    for name in kept.keys() & {"properties", "$defs"}:
        kept[name] = {key: _accepted(part) for key, part in kept[name].items()}
    if "items" in kept:
        kept["items"] = _accepted(kept["items"])
    if "anyOf" in kept:
        kept["anyOf"] = [_accepted(part) for part in kept["anyOf"]]
    rejected = {name: value for name, value in schema.items() if name in _REJECTED}
    if rejected.get("minItems") in (0, 1):
        kept["minItems"] = rejected.pop("minItems")
    if rejected:
        limits = ", ".join(f"{name}: {value}" for name, value in rejected.items())
        about = kept.get("description")
        kept["description"] = f"{about}\n\n{{{limits}}}" if about else f"{{{limits}}}"
    return kept


_KEPT_S = {300.0: "5m", 3_600.0: "1h"}
# Minimum tokens of a cached prefix, by the name of the model; 1,024 for all others
_LEAST = {
    r"claude-(?:opus|fable|mythos)-5": 512,
    r"claude-(?:opus-4-7|3-5-haiku|3-haiku|haiku-3)": 2_048,
    r"claude-(?:opus-4-[56]|haiku-4-5)": 4_096,
}


def caching(model: str) -> PrefixCaching:
    """How requests control the prefix cache, which stores only what they mark."""
    fits = (n for name, n in _LEAST.items() if re.match(name, model))
    return PrefixCaching(
        tuple(_KEPT_S),
        min_tokens=next(fits, 1_024),
        mark=lambda kept_s: {"cache_control": {"type": "ephemeral", "ttl": _KEPT_S[kept_s]}},
    )


class _Content(Struct):
    type: str
    text: str | None = None
    thinking: str | None = None


class _StopDetails(Struct):
    explanation: str | None = None


class _Reply(Struct):
    content: list[_Content]
    stop_reason: str | None = None
    stop_details: _StopDetails | None = None
    usage: Any = None
    model: str | None = None


def read_message(data: bytes, endpoint: Endpoint) -> Completion:
    """Read the body of a reply; return it as a chat completion is returned."""
    reply = chat.read_as(_Reply, data, endpoint, "message")
    details = reply.stop_details
    message = chat.ChatMessage(
        content="".join(part.text or "" for part in reply.content if part.type == "text"),
        refusal=None if details is None else details.explanation,
        reasoning="".join(part.thinking or "" for part in reply.content) or None,
    )
    choice = chat.ChatChoice(message=message, finish_reason=reply.stop_reason)
    # `input_tokens` excludes tokens that were read from or written to the cache.
    reported = reply.usage
    if isinstance(reported, dict):
        parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        try:
            reported = {**reported, "input_tokens": sum(reported.get(name) or 0 for name in parts)}
        except TypeError:  # A count is not a number: the usage is implausible
            reported = {**reported, "input_tokens": "unreadable"}
    usage = chat.read_usage(reported, "input_tokens", "output_tokens")
    return chat.completion_of(chat.ChatReply(choices=[choice], model=reply.model), usage, endpoint)


API = Api(
    "messages",
    "/messages",
    body,
    read_message,
    key_headers=lambda key: {"x-api-key": key, "anthropic-version": VERSION},
    page={"limit": 1_000},
)
