"""OpenAI's Responses API, for constrained requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Tag

from pearl.llm import Completion, Usage
from pearl.llm.backends.openai import replies
from pearl.llm.backends.openai.endings import ending
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.servers import TOOL, Body, Schema, Server
from pearl.llm.backends.openai.usage import read_usage
from pearl.llm.blank import is_blank


class _Part(BaseModel):
    type: str
    text: replies.Text | None = None
    refusal: replies.Text | None = None


class _Message(BaseModel):
    type: Literal["message"]
    content: list[_Part]
    status: replies.Text | None = None


class _ToolCall(BaseModel):
    type: Literal["custom_tool_call"]
    input: replies.Text
    status: replies.Text | None = None


class _Other(BaseModel):
    """Reasoning and unknown items."""


def _type(item: Any) -> str:
    type = item.get("type") if isinstance(item, dict) else None
    return type if type in ("message", "custom_tool_call") else "other"


_Item = Annotated[
    Annotated[_Message, Tag("message")]
    | Annotated[_ToolCall, Tag("custom_tool_call")]
    | Annotated[_Other, Tag("other")],
    Discriminator(_type),
]


class _Incomplete(BaseModel):
    reason: str | None = None


class _Response(BaseModel):
    output: list[_Item]
    status: replies.Text | None = None
    incomplete_details: _Incomplete | None = None
    usage: Any = None
    model: replies.Text | None = None


def _body(body: Body) -> Body:
    """A request of Chat Completions as one of Responses, which has no `seed`."""
    asked: Body = {"model": body["model"], "input": body["messages"]}
    for limit in ("max_completion_tokens", "max_tokens"):
        if limit in body:
            asked["max_output_tokens"] = body[limit]
    if "temperature" in body:
        asked["temperature"] = body["temperature"]
    # Responses are stored for a month by default; chat completions are not.
    return {**asked, "store": False}


def _with_grammar(body: Body, grammar: str) -> Body:
    form = {"type": "grammar", "syntax": "lark", "definition": grammar}
    tool = {"name": TOOL, "description": "Takes your whole reply.", "format": form}
    return {
        **_body(body),
        "tools": [{"type": "custom", **tool}],
        "tool_choice": {"type": "custom", "name": TOOL},
    }


def _with_schema(body: Body, schema: Schema) -> Body:
    form = {"type": "json_schema", "name": TOOL, "strict": True, "schema": schema}
    return {**_body(body), "text": {"format": form}}


def _read_grammar(body: bytes, endpoint: Endpoint) -> Completion:
    response, usage = _read(body, endpoint)
    with replies.billed(usage, _said(response)):
        _check(response, usage, endpoint)
        calls = [item.input for item in response.output if isinstance(item, _ToolCall)]
        if not calls and not is_blank(_said(response)):
            raise replies.not_by_tool(_said(response), endpoint)
        return _completion(calls[0] if calls else "", response, usage, endpoint)


def _read_json(body: bytes, endpoint: Endpoint) -> Completion:
    response, usage = _read(body, endpoint)
    with replies.billed(usage, _said(response)):
        _check(response, usage, endpoint)
        return _completion(_said(response), response, usage, endpoint)


def _read(body: bytes, endpoint: Endpoint) -> tuple[_Response, Usage]:
    response = replies.read_as(_Response, body, endpoint, "response")
    usage = read_usage(response.usage, "input_tokens", "output_tokens")
    return response, usage


def _check(response: _Response, usage: Usage, endpoint: Endpoint) -> None:
    """Raise `ModelError` unless a reply is complete and no refusal."""
    refusals = [part.refusal for part in _parts(response) if part.refusal]
    if refusals:
        raise replies.refusal(refusals[0], endpoint)
    if response.status == "incomplete":
        reason = response.incomplete_details and response.incomplete_details.reason
        # An incomplete reply is truncated, whatever the reason.
        if reason and ending(reason) != "whole":
            replies.check_ending(reason, usage, endpoint)
        raise replies.truncated(usage, endpoint)
    said = [item for item in response.output if not isinstance(item, _Other)]
    statuses = [response.status, *(item.status for item in said)]
    broken = [status for status in statuses if status not in ("completed", None)]
    if broken:
        raise replies.broken_off(broken[0], endpoint)


def _parts(response: _Response) -> list[_Part]:
    messages = [item for item in response.output if isinstance(item, _Message)]
    return [part for message in messages for part in message.content]


def _said(response: _Response) -> str:
    """The text of a reply."""
    return "".join(part.text or "" for part in _parts(response))


def _completion(text: str, response: _Response, usage: Usage, endpoint: Endpoint) -> Completion:
    if is_blank(text):
        raise replies.blank(endpoint)
    return Completion(text, response.model or endpoint.model, usage)


SERVER = Server(
    title="OpenAI's Responses",
    help="use a model that knows custom tools, such as gpt-5, or --constrain off",
    renderings=("lark",),
    with_grammar=_with_grammar,
    with_schema=_with_schema,
    read_grammar=_read_grammar,
    read_json=_read_json,
    path="/responses",
)
