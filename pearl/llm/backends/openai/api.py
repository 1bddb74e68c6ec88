"""An API (`Api`): how requests are written and replies are read; and which parameters one model accepts (`Accepted`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from pearl.errors.callers import warn
from pearl.llm import Completion, PrefixCaching, Request, WireForm, declared
from pearl.llm.backends.openai.endpoint import Endpoint, scrubbed
from pearl.llm.messages import prefix_end

Body = dict[str, Any]  # A request as JSON; never modified in place

Schema = Mapping[str, Any]  # A JSON Schema
KeyHeaders = Callable[[str], Mapping[str, str]]  # A key → the headers that carry it


def bearer(key: str) -> Mapping[str, str]:
    """The header with the key for OpenAI's API and similar ones."""
    return {"authorization": f"Bearer {key}"}


class Api(Struct, frozen=True):
    """An API.

    Attributes:
        form: The wire form, which determines the names of request parameters.
        path: Path of requests, from the base URL.
        body: Request and name of a model → body; `Accepted` knows what the model rejects.
        read: Body of a reply with status 200 → its completion; raises `ModelError` for an unusable one.
        key_headers: The headers that carry the key.
        page: Query of a listing of models, for a server that otherwise lists only some.
    """

    form: WireForm
    path: str
    body: Callable[[Request, str, Accepted], Body]
    read: Callable[[bytes, Endpoint], Completion]
    key_headers: KeyHeaders = bearer
    page: Mapping[str, int] | None = None


LEAST_TOKENS = 500  # Minimum to which the limit of a reply is halved
# Names of the limit of a reply: OpenAI's newer models reject the first, other servers do not know
# the second.
_LIMIT, _NEW_LIMIT = "max_tokens", "max_completion_tokens"

# Words of rejections, in small letters: "max_output_tokens is too large", "at most 2048 completion tokens"
_LIMITS = (
    "max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens",
    "completion tokens", "output tokens",
)  # fmt: skip
# "too large: 4000", "must be less than or equal to", "the valid range is [1, 2048]"
_TOO_LARGE = (
    "too large", "too high", "too long", "too big", "at most", "exceed", "maximum", "less than",
    "no more than", "valid range",
)  # fmt: skip
# "maximum context length is 8192", "input tokens + max_tokens", "your prompt"
_WINDOWS = (
    "context length", "context_length", "context limit", "context_limit", "input tokens", "prompt",
)  # fmt: skip
# "System role not supported" (Gemma's template), "roles must alternate user/assistant" (Mistral's).
_SYSTEMS = ("system role", "system message", "system prompt", "roles must alternate")


def _has(said: str, words: Sequence[str]) -> bool:
    return any(word in said.lower() for word in words)


def _is_named(own: str, said: str, named: object) -> bool:
    """Whether a rejection is about a parameter, by its own name: as a field of it, or as a word of its text."""
    return named == own or re.search(rf"\b{re.escape(own)}\b", said) is not None


class Accepted:
    """The parameters that one model accepts, as learned from its rejections.

    Attributes:
        names: Names of parameters that differ from those of Chat Completions, by these.
        refused: Parameters that the server rejects.
        caching: Control of the prefix cache; None for none, or if the server rejects it.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        caching: PrefixCaching | None = None,
        names: Mapping[str, str] = {},
    ) -> None:
        self.caching = caching
        self.names = {**({_LIMIT: _NEW_LIMIT} if endpoint.is_openai else {}), **names}
        self.refused: set[str] = set()
        self.takes_system = True
        self._model = endpoint.model
        self._told: set[str] = set()  # Parameters that were told to be left out
        self._most_tokens: int | None = None
        self._sent: dict[
            str, None
        ] = {}  # Names in the wire form, in the order of their declarations

    def parameters(self, request: Request, form: WireForm) -> Body:
        """The parameters of a request that are sent, by their names in a wire form."""
        values = request.named(form)
        if self._most_tokens is not None and _LIMIT in values:
            values[_LIMIT] = min(values[_LIMIT], self._most_tokens)
        self._sent |= dict.fromkeys(values)
        return {
            self.names.get(name, name): value
            for name, value in values.items()
            if name not in self.refused
        }

    def left_out(self, request: Request, form: WireForm) -> tuple[str, ...]:
        """The parameters of a request that are not sent, because the API has no name for them or the server rejects them."""
        names = declared(type(request))
        wire = {name: names[name]["wire"][form] for name in request.parameters}
        return tuple(name for name, own in wire.items() if own is None or own in self.refused)

    def completed(self, completion: Completion, request: Request, form: WireForm) -> Completion:
        """The completion of a request with what was not sent, which is told once."""
        left_out = self.left_out(request, form)
        if not self._told.issuperset(left_out):
            self._told.update(left_out)
            warn(f"{self._model} is asked without: {', '.join(left_out)}")
        temperature = request.parameters.get("temperature")
        sent = None if "temperature" in left_out else temperature
        return replace(completion, temperature=sent, left_out=left_out)

    def turns(self, request: Request) -> list[dict[str, Any]]:
        """The messages of a request as JSON data; the prefix to keep in the cache is marked."""
        turns: list[dict[str, Any]] = [
            {"role": m.role, "content": scrubbed(m.content)} for m in request.messages
        ]
        if (head := self.kept_prefix(request)) is not None and self.caching is not None:
            rest = scrubbed(request.messages[1].content)[len(head) :]
            marked = {"type": "text", "text": head, **self.caching.mark(request.kept_s)}
            turns[1]["content"] = [marked, {"type": "text", "text": rest}]
        return turns if self.takes_system else _without_system(turns)

    def kept_prefix(self, request: Request) -> str | None:
        """The prefix in the second message that the server should keep in its cache; None for none."""
        is_kept = self.caching is not None and request.kept_s
        end = prefix_end(request) if is_kept else None
        return None if end is None else scrubbed(request.messages[1].content[:end])

    def refuse(self, said: str, named: object = None, body: Body | None = None) -> str:
        """Find the parameter named in a rejection, and omit it from later requests; return its name, "" if there is none."""
        for name in self._sent:
            own = self.names.get(name, name)
            is_named = name != _LIMIT and _is_named(own, said, named)
            if is_named and (body is None or own in body):
                self.refused.add(name)
                return own
        return ""

    def mended(self, body: Body, said: str, named: object = None) -> Body | None:
        """Repair a rejected body: drop the rejected parameter, or lower a reply limit that is too large; None if no parameter was the reason."""
        if own := self.refuse(said, named, body):
            return {key: value for key, value in body.items() if key != own}
        messages = body.get("messages")
        if self.takes_system and messages and _has(said, _SYSTEMS):
            merged = _without_system(messages)
            if merged is not messages:
                self.takes_system = False
                return {**body, "messages": merged}
        if self.caching is not None and any(n in said for n in ("prompt_cache", "cache_control")):
            self.caching = None
            return _unmarked(body)
        limit = self.names.get(_LIMIT, _LIMIT)
        if limit not in body or not (_is_named(limit, said, named) or _has(said, _LIMITS)):
            return None
        other = _LIMIT if limit == _NEW_LIMIT else _NEW_LIMIT
        if other in said and _has(said, ("unsupported", "not supported", "instead")):
            self.names[_LIMIT] = other
            return {other if key == limit else key: value for key, value in body.items()}
        lowered = body[limit] // 2
        if lowered < LEAST_TOKENS or not _has(said, _TOO_LARGE):
            return None
        if not _has(said, _WINDOWS):
            self._most_tokens = lowered
        return {**body, limit: lowered}


def _unmarked(body: Body) -> Body:
    """A body without marks for the prefix cache."""

    def joined(turn: dict[str, Any]) -> dict[str, Any]:
        parts = turn["content"]
        text = parts if isinstance(parts, str) else "".join(part["text"] for part in parts)
        return {**turn, "content": text}

    kept = {name: value for name, value in body.items() if not name.startswith("prompt_cache")}
    return {**kept, "messages": [*map(joined, body["messages"])]}


def _without_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Move the system text to the beginning of the first user message."""
    match messages:
        case [{"role": "system", "content": str(system)}, {"role": "user"} as first, *rest]:
            content = first["content"]
            if isinstance(content, str):
                joined: Any = f"{system}\n\n{content}"
            else:
                joined = [{"type": "text", "text": f"{system}\n\n"}, *content]
            return [{**first, "content": joined}, *rest]
    return messages
