"""Kinds of servers: how each takes a constraint. Every other module of this folder is one.

The module has `SERVER`, a `Server`: how it is recognised, which forms of a grammar it supports, and
how requests and replies contain them. Unconstrained requests are the same for all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

from pearl import plugins
from pearl.dsl.decoding.constraint import Constraint, Form
from pearl.llm import Completion, ConstrainBy
from pearl.llm.backends.openai.endpoint import Endpoint
from pearl.llm.backends.openai.likelihoods import Likelihoods
from pearl.llm.backends.openai.replies import read_completion

__all__ = [
    "CONTRACT",
    "TOOL",
    "Body",
    "Schema",
    "Server",
    "ServerModule",
    "by_address",
    "by_owner",
    "load",
    "names",
    "response_format",
]

Body = dict[str, Any]
"""A request as JSON; never modified in place."""

Schema = Mapping[str, Any]
"""A JSON Schema."""

Reader = Callable[[bytes, Endpoint], Completion]
"""The body of a reply with status 200 → its completion; raises `ModelError` for an unusable one."""

TOOL = "reply"
"""Name of tools and schemas."""


def response_format(body: Body, schema: Schema) -> Body:
    """A request for JSON of a schema, by Chat Completions."""
    named = {"name": TOOL, "strict": True, "schema": schema}
    return {**body, "response_format": {"type": "json_schema", "json_schema": named}}


def _is_anywhere(endpoint: Endpoint) -> bool:
    """For self-hosted kinds, which have no fixed address."""
    return False


@dataclass(frozen=True)
class Server:
    """One kind of server.

    Attributes:
        title: Name in messages.
        help: Advice if it rejects a constraint.
        owner: The `owned_by` of the models that it lists; "" if not specific.
        is_at: Whether an address is that of such a server.
        renderings: Supported forms of a grammar, the best first.
        with_grammar: Body of Chat Completions, grammar in one of those forms → body that is sent.
        with_schema: The same for JSON.
        read_grammar: Reads the reply to a grammar.
        read_json: Reads the reply to a schema: the JSON as text.
        path: Path of constrained requests, from the base URL.
        likelihoods: Computes the log-likelihoods of candidates; None where the server cannot.
        tokenizes: Name of the text in a request to `/tokenize`; "" without that path.
        is_of_any_name: Whether a server of one model answers to any name.
        tells_props: Whether it tells its window at `/props`.
    """

    title: str
    help: str
    owner: str = ""
    is_at: Callable[[Endpoint], bool] = _is_anywhere
    renderings: tuple[Form, ...] = ()
    with_grammar: Callable[[Body, str], Body] | None = None
    with_schema: Callable[[Body, Schema], Body] = response_format
    read_grammar: Reader = read_completion
    read_json: Reader = read_completion
    path: str = "/chat/completions"
    likelihoods: Likelihoods | None = None
    tokenizes: Literal["", "prompt", "content"] = ""
    is_of_any_name: bool = False
    tells_props: bool = False

    @property
    def by(self) -> frozenset[ConstrainBy]:
        """The supported forms of constraints."""
        return frozenset({"grammar", "json"} if self.renderings else {"json"})

    def forms(self, by: ConstrainBy) -> tuple[Form, ...]:
        """The renderings to try, the best first.

        Example:
            >>> load("sglang").forms("grammar")
            ('lark', 'gbnf')
        """
        return {"grammar": self.renderings, "json": ("json-schema",)}.get(by, ())

    def held(self, body: Body, constraint: Constraint, form: Form) -> Body:
        """The body of a constrained request.

        Args:
            body: The request without the constraint.
            constraint: With a JSON form for the form `json-schema`.
            form: One of the renderings.
        """
        if form == "json-schema":
            assert constraint.json_form
            return self.with_schema(body, constraint.json_form.schema)
        assert self.with_grammar
        return self.with_grammar(body, constraint.rendered(form))

    def read(self, body: bytes, endpoint: Endpoint, form: Form) -> Completion:
        """The completion in a reply, JSON as text.

        Raises:
            ModelError: The model gave no usable reply.
        """
        reader = self.read_json if form == "json-schema" else self.read_grammar
        return reader(body, endpoint)


class ServerModule(Protocol):
    """The interface of a module of this folder."""

    SERVER: Server


CONTRACT = ServerModule


def names() -> tuple[str, ...]:
    """The names of all kinds, sorted."""
    return plugins.names(__name__)


@cache
def load(name: str) -> Server:
    """The kind of a name.

    Raises:
        UsageError: There is none of that name.

    Example:
        >>> load("vllm").title
        'vLLM'
    """
    server: Server = plugins.load(__name__, name, "server").SERVER
    return server


def by_address(endpoint: Endpoint) -> Server | None:
    """The kind of a server by its address; None if unknown.

    Example:
        >>> found = by_address(Endpoint("https://api.openai.com/v1", "gpt-5", ""))
        >>> found.title if found else None
        'OpenAI'
    """
    return next((server for server in map(load, names()) if server.is_at(endpoint)), None)


def by_owner(owners: Collection[str]) -> Server | None:
    """The kind of a server by the `owned_by` of its models; None if ambiguous."""
    found = [server for server in map(load, names()) if server.owner and server.owner in owners]
    return found[0] if len(found) == 1 else None
