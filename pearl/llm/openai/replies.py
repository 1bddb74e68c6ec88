"""Body of a reply with status 200 → `Completion`, or the `ModelError` that it really is."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ValidationError

from pearl.errors import ModelError
from pearl.llm import Completion, Usage
from pearl.llm.openai.endpoint import Endpoint, scrubbed
from pearl.llm.openai.faults import reported

__all__ = ["read_completion", "read_models"]

_Text = Annotated[
    str, BeforeValidator(lambda text: scrubbed(text) if isinstance(text, str) else text)
]


class _Message(BaseModel):
    content: _Text | None = None
    refusal: _Text | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Details(BaseModel):
    cached_tokens: int | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Reply(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: _Text | None = None


class _Listed(BaseModel):
    id: str


class _Listing(BaseModel):
    data: list[_Listed]


def read_completion(body: bytes, endpoint: Endpoint) -> Completion:
    """The completion in a body.

    Raises:
        ModelError: It holds none that is of use.

    Example:
        >>> body = b'{"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}'
        >>> read_completion(body, Endpoint("http://localhost/v1", "llama3", "")).text
        'Hello'
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise _not_json(body, endpoint) from None
    if isinstance(data, dict) and data.get("error"):
        raise reported(data["error"], endpoint)
    try:
        reply = _Reply.model_validate(data)
    except ValidationError as error:
        raise _no_completion(error, endpoint) from None
    usage = _counted(reply.usage)
    if not reply.choices:
        raise ModelError(f"{endpoint.shown} sent a reply without choices", kind="empty")
    return Completion(
        _usable(reply.choices[0], usage, endpoint), reply.model or endpoint.model, usage
    )


def read_models(body: bytes) -> list[str]:
    """Names in a listing of models.

    Raises:
        ValueError: It is no listing.
    """
    return [model.id for model in _Listing.model_validate_json(body).data]


def _usable(choice: _Choice, usage: Usage, endpoint: Endpoint) -> str:
    """The text of a choice. Why it ends comes first: a cut reply may be blank, too."""
    text = choice.message.content or ""
    if choice.message.refusal:
        raise ModelError(
            f"{endpoint.model} refuses: {endpoint.quote(choice.message.refusal)}", kind="refused"
        )
    if choice.finish_reason == "content_filter":
        raise ModelError(
            f"the content filter of {endpoint.shown} stopped the reply", kind="filtered"
        )
    if choice.finish_reason == "length":
        raise ModelError(
            f"the reply of {endpoint.model} was cut off after {usage.n_output_tokens:,} tokens",
            kind="truncated",
            help="allow more with --max-output-tokens, or use a model with a larger window",
        )
    if not text.strip():
        raise ModelError(f"the reply of {endpoint.model} is blank", kind="empty")
    return text


def _counted(usage: _Usage | None) -> Usage:
    usage = usage or _Usage()
    details = usage.prompt_tokens_details or _Details()
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, details.cached_tokens or 0)


_HELP = "is the address right? It mostly ends in /v1"


def _not_json(body: bytes, endpoint: Endpoint) -> ModelError:
    excerpt = endpoint.quote(body[:120].decode(errors="replace"))
    message = (
        f"the reply of {endpoint.shown} is not JSON, or breaks off: {excerpt or 'it is empty'}"
    )
    return ModelError(message, kind="malformed", help=_HELP)


def _no_completion(error: ValidationError, endpoint: Endpoint) -> ModelError:
    place = ".".join(map(str, error.errors()[0]["loc"]))
    wrong = f"its '{place}' is missing or of the wrong type" if place else "it is no JSON object"
    message = f"the reply of {endpoint.shown} is no chat completion: {wrong}"
    return ModelError(message, kind="malformed", help=_HELP)
