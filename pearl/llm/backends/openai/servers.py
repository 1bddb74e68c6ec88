"""Kinds of servers (`PLUGINS`, and modules with `SERVER`): how each is recognised, and how requests and replies contain constraints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from pydantic import BaseModel

from pearl import plugins
from pearl.dsl.decoding.constraint import Constraint, Form
from pearl.errors.patterns import lazy_pattern
from pearl.llm import Completion, ConstrainBy, PrefixCaching
from pearl.llm.backends.openai import replies
from pearl.llm.backends.openai.endpoint import Endpoint, KeyHeaders, bearer
from pearl.llm.backends.openai.replies import Listed, read_completion

Body = dict[str, Any]  # A request as JSON; never modified in place

Schema = Mapping[str, Any]  # A JSON Schema

Reader = Callable[[bytes, Endpoint], Completion]
"""The body of a reply with status 200 → its completion; raises `ModelError` for an unusable one."""

NAME = "reply"  # of schemas


def response_format(body: Body, schema: Schema) -> Body:
    """A request for JSON of a schema, by Chat Completions."""
    named = {"name": NAME, "strict": True, "schema": schema}
    return {**body, "response_format": {"type": "json_schema", "json_schema": named}}


@dataclass(frozen=True)
class Server:
    """One kind of server.

    Attributes:
        title: Name in messages.
        help: Advice if it rejects a constraint.
        owner: The `owned_by` of the models that it lists; "" if not specific.
        is_at: Whether an address is that of such a server.
        renderings: Supported forms of a grammar, the best first.
        with_grammar: Body of Chat Completions and grammar in one of those forms → body to send.
        with_schema: Body of Chat Completions and JSON Schema → body to send.
        read: Reads the body of a reply, JSON as text.
        path: Path of constrained requests, from the base URL.
        with_nothing: Body of Chat Completions → body of an unconstrained request to `path`, whose reply
            `read` reads; None if unconstrained requests are Chat Completions.
        key_headers: The headers that carry the key.
        page: Query of a listing of its models, for a server that otherwise lists only some.
        caching: Name of a model → how requests control its prefix cache; None if they cannot.
        tokenizes: Name of the text in a request to `/tokenize`; "" without that path.
        is_of_any_name: Whether a server with one model accepts any name for it.
        tells_props: Whether it reports its window at `/props`.
        batches: Name of the module of `pearl.llm.batches` with its Batch API.
    """

    title: str
    help: str
    owner: str = ""
    is_at: Callable[[Endpoint], bool] = lambda endpoint: False  # self-hosted
    renderings: tuple[Form, ...] = ()
    with_grammar: Callable[[Body, str], Body] | None = None
    with_schema: Callable[[Body, Schema], Body] = response_format
    read: Reader = read_completion
    path: str = "/chat/completions"
    with_nothing: Callable[[Body], Body] | None = None
    key_headers: KeyHeaders = bearer
    page: Mapping[str, int] | None = None
    caching: Callable[[str], PrefixCaching | None] = lambda model: None
    tokenizes: Literal["", "prompt", "content"] = ""
    is_of_any_name: bool = False
    tells_props: bool = False
    batches: str = "openai"

    @property
    def by(self) -> frozenset[ConstrainBy]:
        """The supported forms of constraints."""
        return frozenset({"grammar", "json"} if self.renderings else {"json"})

    def forms(self, by: ConstrainBy) -> tuple[Form, ...]:
        """The renderings to try, the best first."""
        return ("json-schema",) if by == "json" else self.renderings

    def held(self, body: Body, constraint: Constraint, form: Form) -> Body:
        """The body of a constrained request, from that without the constraint."""
        if form == "json-schema":
            assert constraint.json_form
            return self.with_schema(body, constraint.json_form.schema)
        assert self.with_grammar
        return self.with_grammar(body, constraint.rendered(form))


class ServerModule(Protocol):
    """The interface of a plug-in."""

    SERVER: Server


CONTRACT = ServerModule


# --- Prefix caches that write what a request marks

_GPT = lazy_pattern(r"gpt-(\d+)(?:\.(\d+))?(?!\d)")


def _openai_caching(model: str) -> PrefixCaching | None:
    # GPT-5.6 and later write the whole of each prompt, at a price, unless requests say what to write, and
    # read only what ends at a mark. Older models cache without marks, and reject them.
    version = _GPT.match(model)
    if version is None or (int(version[1]), int(version[2] or 0)) < (5, 6):
        return None
    return PrefixCaching(
        (1_800.0,),
        min_tokens=1_024,
        mark=lambda kept_s: {"prompt_cache_breakpoint": {"mode": "explicit"}},
        fields={"prompt_cache_options": {"mode": "explicit"}},
        has_key=True,
    )


_ANTHROPIC_CACHED_S = {300.0: "5m", 3_600.0: "1h"}
# Minimum tokens of a cached prefix, by the name of the model; 1,024 for all others
_ANTHROPIC_LEAST = {
    r"claude-(?:opus|fable|mythos)-5": 512,
    r"claude-(?:opus-4-7|3-5-haiku|3-haiku|haiku-3)": 2_048,
    r"claude-(?:opus-4-[56]|haiku-4-5)": 4_096,
}


def _anthropic_caching(model: str) -> PrefixCaching:
    fits = (n for name, n in _ANTHROPIC_LEAST.items() if re.match(name, model))
    return PrefixCaching(
        tuple(_ANTHROPIC_CACHED_S),
        min_tokens=next(fits, 1_024),
        mark=lambda kept_s: {
            "cache_control": {"type": "ephemeral", "ttl": _ANTHROPIC_CACHED_S[kept_s]}
        },
    )


# --- Anthropic's Messages API

# Not 2026-10-21, which rejects `temperature` for all models: those up to 4.6 use it. `Parameters` learns
# which others reject it. All other fields are the same in both versions.
ANTHROPIC_VERSION = "2023-06-01"
MESSAGES_TOKENS = 8_192  # a limit is required


class _Content(BaseModel):
    type: replies.Text
    text: replies.Text | None = None
    thinking: replies.Text | None = None


class _StopDetails(BaseModel):
    explanation: replies.Text | None = None


class _MessagesReply(BaseModel):
    content: list[_Content]
    stop_reason: replies.Text | None = None
    stop_details: _StopDetails | None = None
    usage: Any = None
    model: replies.Text | None = None


def _messages_body(body: Body, **more: Any) -> Body:
    """A request of Chat Completions as one of Messages, which has no `seed`."""
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or MESSAGES_TOKENS
    kept: Body = {name: body[name] for name in ("model", "temperature") if name in body}
    turns = [message for message in body["messages"] if message["role"] != "system"]
    told = {"system": "\n\n".join(system)} if system else {}
    return {**kept, **told, "max_tokens": limit, "messages": turns, **more}


# Keywords that structured outputs reject
_REJECTED = frozenset({"maxItems", "minItems", "maxLength", "pattern", "minimum", "maximum"})


def _accepted(schema: Schema) -> dict[str, Any]:
    """A schema with its rejected keywords in the description, where the official client puts them."""
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
        told = ", ".join(f"{name}: {value}" for name, value in rejected.items())
        about = kept.get("description")
        kept["description"] = f"{about}\n\n{{{told}}}" if about else f"{{{told}}}"
    return kept


def _read_messages(body: bytes, endpoint: Endpoint) -> Completion:
    """A reply of Messages, read as a chat completion."""
    reply = replies.read_as(_MessagesReply, body, endpoint, "message")
    text = "".join(part.text or "" for part in reply.content if part.type == "text")
    details = reply.stop_details
    message = replies.ChatMessage(
        content=text,
        refusal=None if details is None else details.explanation,
        reasoning="".join(part.thinking or "" for part in reply.content) or None,
    )
    choice = replies.ChatChoice(message=message, finish_reason=reply.stop_reason)
    chat = replies.ChatReply(choices=[choice], model=reply.model)
    # The usage of Messages: `input_tokens` counts neither what was read from the cache nor what was written
    reported = reply.usage
    if isinstance(reported, dict):
        parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        try:
            reported = {**reported, "input_tokens": sum(reported.get(name) or 0 for name in parts)}
        except TypeError:  # a count that is no number: the usage is implausible
            reported = {**reported, "input_tokens": "unreadable"}
    usage = replies.read_usage(reported, "input_tokens", "output_tokens")
    return replies.completion_of(chat, usage, endpoint)


def _host(endpoint: Endpoint) -> str:
    return urlsplit(endpoint.shown).hostname or ""


def _with_vllm_grammar(body: Body, grammar: str) -> Body:
    # vLLM detects the notation by a "::=" anywhere, even in a string.
    if not re.match(r"[\w-]+ ::=", grammar):
        grammar = grammar.replace("::=", r":\u003a=")
    return {**body, "structured_outputs": {"grammar": grammar}}


_BLANKS = {
    "x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
}
"""Otherwise a model may write blanks up to the limit."""

_LLAMACPP = Server(
    # Without llguidance: grammars that begin with `%llguidance` crash such a build.
    title="llama.cpp",
    help="use a newer llama-server, or --constrain off",
    owner="llamacpp",
    renderings=("gbnf",),
    with_grammar=lambda body, grammar: {**body, "grammar": grammar},
    tokenizes="content",
    is_of_any_name=True,
    tells_props=True,
)

UNKNOWN = "generic"  # The kind of a server whose listing does not tell it

PLUGINS = {
    "anthropic": Server(
        title="Anthropic",
        help="use a model with structured outputs, or --constrain off",
        is_at=lambda endpoint: _host(endpoint) == "api.anthropic.com",
        with_schema=lambda body, schema: _messages_body(
            body, output_config={"format": {"type": "json_schema", "schema": _accepted(schema)}}
        ),
        read=_read_messages,
        path="/messages",
        with_nothing=_messages_body,
        key_headers=lambda key: {"x-api-key": key, "anthropic-version": ANTHROPIC_VERSION},
        page={"limit": 1_000},
        caching=_anthropic_caching,
        batches="anthropic",
    ),
    # Any other server. It may be one of the kinds below behind a proxy that does not tell.
    UNKNOWN: Server(
        title="a server of another kind",
        help="name the kind of the server (--server), or use --constrain off",
        renderings=("gbnf",),
        with_grammar=lambda body, grammar: {
            **_with_vllm_grammar(body, grammar),
            "grammar": grammar,
            "ebnf": grammar,
        },
    ),
    "gemini": Server(
        title="Google Gemini",
        help="use a model with structured outputs, or --constrain off",
        is_at=lambda endpoint: _host(endpoint) == "generativelanguage.googleapis.com",
        batches="gemini",
    ),
    "llamacpp": _LLAMACPP,
    # Cannot be detected; selected by the user only.
    "llguidance": replace(
        _LLAMACPP,
        title="llama.cpp with llguidance",
        help="build llama.cpp with -DLLAMA_LLGUIDANCE=ON, or name its kind: --server llamacpp",
        owner="",
        renderings=("llguidance", "gbnf"),
        # By `response_format` llama.cpp turns a schema into GBNF, which the schema of plans is too large for.
        with_schema=lambda body, schema: {
            **body,
            "grammar": f"%llguidance {{}}\nstart: %json {json.dumps({**_BLANKS, **schema})}",
        },
    ),
    # JSON of a schema (0.5 and newer), no grammars; cloud models accept the schema and ignore it.
    "ollama": Server(
        title="Ollama",
        help="run a local model in Ollama 0.5 or newer, or use --constrain off",
        owner="library",  # models of the official registry; others have their publisher's name
    ),
    "openai": Server(
        title="OpenAI",
        help="use a model with structured outputs, such as gpt-4o, or --constrain off",
        is_at=lambda endpoint: endpoint.is_openai,
        caching=_openai_caching,
    ),
    # `ebnf` takes Lark with the llguidance backend, GBNF with its default, xgrammar. Lark goes
    # first: llguidance reads GBNF as well, but mistakes some of its escapes.
    "sglang": Server(
        title="SGLang",
        help="launch SGLang with --grammar-backend llguidance, or use --constrain off",
        owner="sglang",
        renderings=("lark", "gbnf"),
        with_grammar=lambda body, grammar: {**body, "ebnf": grammar},
        tokenizes="prompt",
    ),
    # 0.12 and newer; older ones ignore `structured_outputs`, which the probe detects. Lark works
    # with the guidance backend and newer xgrammar backends, GBNF with older ones.
    "vllm": Server(
        title="vLLM",
        help="start vLLM, 0.12 or newer, with --structured-outputs-config.backend guidance, "
        "or use --constrain off",
        owner="vllm",
        renderings=("lark", "gbnf"),
        with_grammar=_with_vllm_grammar,
        tokenizes="prompt",
        with_schema=lambda body, schema: {**body, "structured_outputs": {"json": schema}},
    ),
}


def names() -> tuple[str, ...]:
    """The names of all kinds, sorted."""
    return plugins.names(__name__)


@cache
def load(name: str) -> Server:
    """The kind of a name."""
    plugin: Server | ServerModule = plugins.load(__name__, name, "server")
    return plugin if isinstance(plugin, Server) else plugin.SERVER


def by_address(endpoint: Endpoint) -> Server | None:
    """The kind of a server by its address; None if unknown."""
    return next((server for server in map(load, names()) if server.is_at(endpoint)), None)


def by_listing(listed: Sequence[Listed], model: str) -> Server | None:
    """The kind of a server by the owner of its model, or of all its models; None if ambiguous."""
    own = [each for each in listed if each.id == model]
    owners = {str(each.owned_by) for each in own or listed}
    kinds = [server for server in map(load, names()) if server.owner and server.owner in owners]
    return kinds[0] if len(kinds) == 1 else None
