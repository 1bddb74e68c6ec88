"""Kinds of servers: how each is held to a constraint. Every other module of this folder is one.

The module has `SERVER`, a `Server`: by what it is recognised, which renderings of a grammar it
takes, how the body of a request says it, and where the text stands in the reply. Without a
constraint all kinds are asked alike, by Chat Completions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from pearl import plugins
from pearl.dsl.decoding.constraint import Constraint, Form
from pearl.llm import Completion, ConstrainBy
from pearl.llm.backends.openai.endpoint import Endpoint
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
"""A request as JSON; what is made of one is a new one."""

Schema = Mapping[str, Any]
"""A JSON Schema."""

Reader = Callable[[bytes, Endpoint], Completion]
"""The body of a reply with status 200 → its text; raises `ModelError` for what is of no use."""

TOOL = "reply"
"""What a tool or a schema is called where it has to have a name."""


def response_format(body: Body, schema: Schema) -> Body:
    """JSON of a schema, as Chat Completions asks for it."""
    named = {"name": TOOL, "strict": True, "schema": schema}
    return {**body, "response_format": {"type": "json_schema", "json_schema": named}}


def _is_anywhere(endpoint: Endpoint) -> bool:
    """For kinds that people run themselves: the address tells nothing."""
    return False


@dataclass(frozen=True)
class Server:
    """One kind of server.

    Attributes:
        title: What people call it.
        help: What to do where it cannot be held to a constraint.
        owner: The `owned_by` of the models that it lists; "" where that tells nothing.
        is_at: Whether a server is of the kind by its address.
        renderings: Forms of a grammar that it may take, the best first; none for no grammars.
        with_grammar: The body of a Chat Completions request and a grammar in one of those forms →
            the body that is sent; None where there are none.
        with_schema: The same for JSON.
        read_grammar: Reads the reply to a grammar.
        read_json: Reads the reply to a schema: the JSON as text.
        path: Where the body goes, from the base URL.
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

    @property
    def by(self) -> frozenset[ConstrainBy]:
        """What it can be asked for."""
        return frozenset({"grammar", "json"} if self.renderings else {"json"})

    def forms(self, by: ConstrainBy) -> tuple[Form, ...]:
        """The renderings to try, the best first; none where it cannot be held to a constraint so.

        Example:
            >>> load("sglang").forms("grammar")
            ('lark', 'gbnf')
        """
        return {"grammar": self.renderings, "json": ("json-schema",)}.get(by, ())

    def held(self, body: Body, constraint: Constraint, form: Form) -> Body:
        """What is sent in place of a Chat Completions body, for a reply under a constraint.

        Args:
            body: The request without the constraint.
            constraint: It has a JSON form, where that is asked for.
            form: One of the renderings.
        """
        if form == "json-schema":
            assert constraint.json_form
            return self.with_schema(body, constraint.json_form.schema)
        assert self.with_grammar
        return self.with_grammar(body, constraint.rendered(form))

    def read(self, body: bytes, endpoint: Endpoint, form: Form) -> Completion:
        """The text of a reply, JSON as it is.

        Raises:
            ModelError: The model gave no usable reply.
        """
        reader = self.read_json if form == "json-schema" else self.read_grammar
        return reader(body, endpoint)


class ServerModule(Protocol):
    """What a module of this folder looks like to its users."""

    SERVER: Server


CONTRACT = ServerModule


def names() -> tuple[str, ...]:
    """The kinds there are, sorted."""
    return plugins.names(__name__)


@cache
def load(name: str) -> Server:
    """One kind.

    Raises:
        UsageError: There is none of that name.

    Example:
        >>> load("vllm").title
        'vLLM'
    """
    server: Server = plugins.load(__name__, name, "server").SERVER
    return server


def by_address(endpoint: Endpoint) -> Server | None:
    """The kind that is known by its address; None for a server that has to be asked.

    Example:
        >>> found = by_address(Endpoint("https://api.openai.com/v1", "gpt-5", ""))
        >>> found.title if found else None
        'OpenAI'
    """
    return next((server for server in map(load, names()) if server.is_at(endpoint)), None)


def by_owner(owners: Collection[str]) -> Server | None:
    """The one kind whose models are owned so; None where that does not tell one from the others.

    Args:
        owners: The `owned_by` of one or more models.
    """
    found = [server for server in map(load, names()) if server.owner and server.owner in owners]
    return found[0] if len(found) == 1 else None
