"""Kinds of servers (`PLUGINS`, and modules with `SERVER`): how each is recognised, and how it differs from others with the same API."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from pearl import plugins
from pearl.dsl.decoding.constraint import Form
from pearl.llm import ConstrainBy, PrefixCaching, Request
from pearl.llm.backends.openai import anthropic, chat
from pearl.llm.backends.openai.api import Accepted, Api, Body, Schema
from pearl.llm.backends.openai.chat import Listed
from pearl.llm.backends.openai.endpoint import Endpoint


class Server(Struct, frozen=True):
    """One kind of server.

    Attributes:
        title: Name in messages.
        help: Advice if it rejects a constraint.
        api: The API of its requests and replies.
        fields: Additional fields of every request.
        names: The server's names of parameters, by their names in the API.
        owner: The `owned_by` of the models that it lists; "" if not specific.
        is_at: Whether an address is that of such a server.
        renderings: Supported forms of a grammar, the best first.
        with_grammar: Body of a request and grammar in one of those forms → body to send.
        with_schema: Body of a request and JSON Schema → body to send.
        caching: Name of a model → how requests control its prefix cache; None if they cannot.
        tokenizes: Name of the text in a request to `/tokenize`; "" without that path.
        is_of_any_name: Whether a server with one model accepts any name for it.
        tells_props: Whether it reports its window at `/props`.
        batches: Name of its Batch API.
    """

    title: str
    help: str
    api: Api = chat.API
    fields: Mapping[str, Any] = {}
    names: Mapping[str, str] = {}
    owner: str = ""
    is_at: Callable[[Endpoint], bool] = lambda endpoint: False  # Self-hosted
    renderings: tuple[Form, ...] = ()
    with_grammar: Callable[[Body, str], Body] | None = None
    with_schema: Callable[[Body, Schema], Body] = chat.response_format
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

    def body(
        self, request: Request, model: str, accepted: Accepted, form: Form | None = None
    ) -> Body:
        """The body of a request, with its constraint in a given form."""
        body = {**self.api.body(request, model, accepted), **self.fields}
        constraint = request.constraint
        if form is None or constraint is None:
            return body
        if form == "json-schema":
            assert constraint.json_form
            return self.with_schema(body, constraint.json_form.schema)
        assert self.with_grammar
        return self.with_grammar(body, constraint.rendered(form))


class ServerModule(Protocol):
    """The interface of a plug-in."""

    SERVER: Server


CONTRACT = ServerModule


def _host(endpoint: Endpoint) -> str:
    return urlsplit(endpoint.shown).hostname or ""


def _with_vllm_grammar(body: Body, grammar: str) -> Body:
    # vLLM detects GBNF by a "::=" anywhere, even in a string.
    if not re.match(r"[\w-]+ ::=", grammar):
        grammar = grammar.replace("::=", r":\u003a=")
    return {**body, "structured_outputs": {"grammar": grammar}}


_BLANKS = {
    "x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
}
"""Without this, a model may write blanks up to the limit."""

_LLAMACPP = Server(
    # The llguidance form is left out: builds without it crash on grammars that begin with
    # `%llguidance`.
    title="llama.cpp",
    help="use a newer llama-server, or --constrain off",
    owner="llamacpp",
    renderings=("gbnf",),
    with_grammar=lambda body, grammar: {**body, "grammar": grammar},
    tokenizes="content",
    is_of_any_name=True,
    tells_props=True,
)

UNKNOWN = "generic"  # The kind of a server that its listing does not reveal

PLUGINS = {
    "anthropic": Server(
        title="Anthropic",
        help="use a model with structured outputs, or --constrain off",
        is_at=lambda endpoint: _host(endpoint) == "api.anthropic.com",
        api=anthropic.API,
        with_schema=anthropic.output_format,
        caching=anthropic.caching,
        batches="anthropic",
    ),
    # Any other server; it may be one of the kinds below behind a proxy that hides it.
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
    # A server on the Internet without differences, such as those of `providers.toml`.
    "hosted": Server(
        title="a hosted server",
        help="use a model with structured outputs, or --constrain off",
    ),
    "gemini": Server(
        title="Google Gemini",
        help="use a model with structured outputs, or --constrain off",
        is_at=lambda endpoint: _host(endpoint) == "generativelanguage.googleapis.com",
        batches="gemini",
    ),
    "llamacpp": _LLAMACPP,
    # Cannot be detected; only the user can select it.
    "llguidance": replace(
        _LLAMACPP,
        title="llama.cpp with llguidance",
        help="build llama.cpp with -DLLAMA_LLGUIDANCE=ON, or use --server llamacpp",
        owner="",
        renderings=("llguidance", "gbnf"),
        # llama.cpp turns a schema in `response_format` into GBNF, and the schema of plans is too
        # large for that.
        with_schema=lambda body, schema: {
            **body,
            "grammar": f"%llguidance {{}}\nstart: %json {json.dumps({**_BLANKS, **schema})}",
        },
    ),
    # JSON Schema (0.5 and newer), no grammars; cloud models accept the schema and ignore it.
    "ollama": Server(
        title="Ollama",
        help="run a local model in Ollama 0.5 or newer, or use --constrain off",
        owner="library",  # Models of the official registry; others have their publisher's name
    ),
    "openai": Server(
        title="OpenAI",
        help="use a model with structured outputs, such as gpt-4o, or --constrain off",
        is_at=lambda endpoint: endpoint.is_openai,
        caching=chat.openai_caching,
    ),
    # `ebnf` takes Lark with the llguidance backend, and GBNF with the default backend xgrammar.
    # Lark is tried first: llguidance also reads GBNF, but misreads some of its escapes.
    "sglang": Server(
        title="SGLang",
        help="launch SGLang with --grammar-backend llguidance, or use --constrain off",
        owner="sglang",
        renderings=("lark", "gbnf"),
        with_grammar=lambda body, grammar: {**body, "ebnf": grammar},
        tokenizes="prompt",
    ),
    # 0.12 and newer; older ones ignore `structured_outputs`, which their first reply reveals.
    # Lark works with the guidance backend and newer xgrammar backends, GBNF with older ones.
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
    """The server kind with a name."""
    plugin: Server | ServerModule = plugins.load(__name__, name, "server")
    return plugin if isinstance(plugin, Server) else plugin.SERVER


def by_address(endpoint: Endpoint) -> Server | None:
    """The server kind, judged by the address; None if unknown."""
    return next((server for server in map(load, names()) if server.is_at(endpoint)), None)


def by_listing(listed: Sequence[Listed], model: str) -> Server | None:
    """The server kind, judged by the owner of the model, or of all listed models; None if ambiguous."""
    own = [each for each in listed if each.id == model]
    owners = {str(each.owned_by) for each in own or listed}
    kinds = [server for server in map(load, names()) if server.owner and server.owner in owners]
    return kinds[0] if len(kinds) == 1 else None
