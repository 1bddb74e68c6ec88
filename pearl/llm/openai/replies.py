"""Body of a reply with status 200 → `Completion`, or the `ModelError` that it really is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError

from pearl.errors import ModelError
from pearl.llm import Completion, Usage
from pearl.llm.openai.endpoint import Endpoint, scrubbed
from pearl.llm.openai.faults import reported

__all__ = [
    "Listed",
    "Text",
    "billed",
    "blank",
    "filtered",
    "not_by_tool",
    "read_as",
    "read_completion",
    "read_models",
    "read_tool_call",
    "refusal",
    "truncated",
]

Text = Annotated[
    str, BeforeValidator(lambda text: scrubbed(text) if isinstance(text, str) else text)
]
"""What a server wrote, without lone surrogates."""


class _Message(BaseModel):
    content: Text | None = None
    refusal: Text | None = None
    tool_calls: Any = None  # checked where a tool was to be called


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
    model: Text | None = None


class _Custom(BaseModel):
    input: Text


class _ToolCall(BaseModel):
    custom: _Custom


_ToolCalls = TypeAdapter(list[_ToolCall])


class Listed(BaseModel):
    """One model of a listing.

    Attributes:
        id: Its name.
        owned_by: Whose it is; servers of one kind say the same.
    """

    id: str
    owned_by: Any = None


class _Listing(BaseModel):
    data: list[Listed]


def read_completion(body: bytes, endpoint: Endpoint) -> Completion:
    """The completion in a body.

    Raises:
        ModelError: It holds none that is of use.

    Example:
        >>> body = b'{"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}'
        >>> read_completion(body, Endpoint("http://localhost/v1", "llama3", "")).text
        'Hello'
    """
    reply = read_as(_Reply, body, endpoint)
    usage = _counted(reply.usage)
    with billed(usage, _said(reply)):
        message = _message(reply, usage, endpoint)
        return _completion(message.content or "", reply, usage, endpoint)


def read_tool_call(body: bytes, endpoint: Endpoint) -> Completion:
    """The text in a body with which a custom tool is called.

    Raises:
        ModelError: It holds none that is of use; of the kind `unconstrained` where the model
            replies in words instead.
    """
    reply = read_as(_Reply, body, endpoint)
    usage = _counted(reply.usage)
    with billed(usage):
        message = _message(reply, usage, endpoint)
        said = message.content or ""
        try:
            calls = _ToolCalls.validate_python(message.tool_calls or [])
        except ValidationError as error:
            raise _wrong(error, endpoint, "call of a custom tool") from None
        if not calls and said.strip():
            raise not_by_tool(said, endpoint)
        return _completion(calls[0].custom.input if calls else "", reply, usage, endpoint)


def read_models(body: bytes) -> list[Listed]:
    """The models of a listing.

    Raises:
        ValueError: It is no listing.
    """
    return _Listing.model_validate_json(body).data


_Model = TypeVar("_Model", bound=BaseModel)


def read_as(
    model: type[_Model], body: bytes, endpoint: Endpoint, what: str = "chat completion"
) -> _Model:
    """A body that is of one shape.

    Args:
        model: The shape.
        body: With status 200.
        endpoint: Whose it is.
        what: What messages call the shape.

    Raises:
        ModelError: It is of another shape, or an error.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise _not_json(body, endpoint) from None
    if isinstance(data, dict) and data.get("error"):
        raise reported(data["error"], endpoint)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _wrong(error, endpoint, what) from None


def refusal(said: str, endpoint: Endpoint) -> ModelError:
    """The error for a model that will not."""
    return ModelError(f"{endpoint.model} refuses: {endpoint.quote(said)}", kind="refused")


def filtered(endpoint: Endpoint) -> ModelError:
    """The error for a reply that a filter stopped."""
    return ModelError(f"the content filter of {endpoint.shown} stopped the reply", kind="filtered")


def truncated(usage: Usage, endpoint: Endpoint) -> ModelError:
    """The error for a reply that came to its limit."""
    return ModelError(
        f"the reply of {endpoint.model} was cut off after {usage.n_output_tokens:,} tokens",
        kind="truncated",
        help="allow more with --max-output-tokens, or use a model with a larger window",
    )


def blank(endpoint: Endpoint) -> ModelError:
    """The error for a reply without a text."""
    return ModelError(f"the reply of {endpoint.model} is blank", kind="empty")


def not_by_tool(said: str, endpoint: Endpoint) -> ModelError:
    """The error for a reply in words of a model that was to call a tool."""
    return ModelError(
        f"{endpoint.model} replies without the tool it has to call: {endpoint.quote(said)}",
        kind="unconstrained",
    )


@contextmanager
def billed(usage: Usage, said: str = "") -> Iterator[None]:
    """Errors that a reply turns out to be cost what it took, and show what it said."""
    try:
        yield
    except ModelError as error:
        error.usage = None if usage == Usage() else usage
        error.reply = said
        raise


def _said(reply: _Reply) -> str:
    """What a reply says, be it of use or not."""
    message = reply.choices[0].message if reply.choices else None
    return (message.content if message else None) or ""


def _message(reply: _Reply, usage: Usage, endpoint: Endpoint) -> _Message:
    """The first choice. Why it ends comes first: a cut reply may be blank, too."""
    if not reply.choices:
        raise ModelError(f"{endpoint.shown} sent a reply without choices", kind="empty")
    choice = reply.choices[0]
    if choice.message.refusal:
        raise refusal(choice.message.refusal, endpoint)
    if choice.finish_reason == "content_filter":
        raise filtered(endpoint)
    if choice.finish_reason == "length":
        raise truncated(usage, endpoint)
    return choice.message


def _completion(text: str, reply: _Reply, usage: Usage, endpoint: Endpoint) -> Completion:
    if not text.strip():
        raise blank(endpoint)
    return Completion(text, reply.model or endpoint.model, usage)


def _counted(usage: _Usage | None) -> Usage:
    usage = usage or _Usage()
    details = usage.prompt_tokens_details or _Details()
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, details.cached_tokens or 0)


_HELP = "is the address right? It mostly ends in /v1"


def _not_json(body: bytes, endpoint: Endpoint) -> ModelError:
    # Cut a second time when keys are hidden, lest half a key is left at the end.
    excerpt = endpoint.quote(body[:2_000].decode(errors="replace"))[:120]
    message = (
        f"the reply of {endpoint.shown} is not JSON, or breaks off: {excerpt or 'it is empty'}"
    )
    return ModelError(message, kind="malformed", help=_HELP)


def _wrong(error: ValidationError, endpoint: Endpoint, what: str) -> ModelError:
    place = ".".join(map(str, error.errors()[0]["loc"]))
    wrong = f"its '{place}' is missing or of the wrong type" if place else "it is no JSON object"
    message = f"the reply of {endpoint.shown} is no {what}: {wrong}"
    return ModelError(message, kind="malformed", help=_HELP)
