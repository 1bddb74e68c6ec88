"""Servers of every kind that are held to a constraint: they obey it, ignore it or refuse it.

Each looks for the constraint only where its kind documents it, and passes over every field that it
does not know, as such servers do. Written from the servers' documentation, not from our client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgspec.structs import replace

from pearl.dsl.decoding.constraint import Constraint, JsonForm
from tests.llm.backends.asking import REQUEST
from tests.server import Canned, Seen, completion, error

PLAN = '1. v1 = FIND_EVENT(CTX, "the boat") : find it'
"""The sentence of the grammar."""

Body = Mapping[str, Any]


def text_of(value: Any) -> str:
    """The plan in the JSON of the tests' constraint."""
    if not isinstance(value, dict) or not isinstance(value.get("plan"), str):
        raise ValueError("no 'plan'")
    return str(value["plan"])


SCHEMA = {"type": "object", "properties": {"plan": {"type": "string"}}, "required": ["plan"]}

CONSTRAINT = Constraint(
    "plan", 'start: "1. v1 = " CALL\nCALL: /[A-Z_]+\\([ -~]*/\n', JsonForm(SCHEMA, text_of, "")
)


ASKED = replace(REQUEST, max_output_tokens=900, seed=5, constraint=CONSTRAINT)
JSON = replace(ASKED, constrain_by="json")


def _response_format(body: Body) -> Any:
    return body.get("response_format", {}).get("json_schema", {}).get("schema")


@dataclass(frozen=True)
class Kind:
    """Where one kind of server looks for a constraint.

    Attributes:
        grammar: The grammar in a body, None where there is none.
        schema: The same for a JSON Schema.
        owned_by: What its listing says of models.
        takes: The notations that it knows, by how a grammar begins.
    """

    grammar: Callable[[Body], str | None]
    schema: Callable[[Body], Any] = _response_format
    owned_by: str | None = None
    takes: tuple[str, ...] = ("start:", "root ::=")


def _structured(body: Body) -> Any:
    return body.get("structured_outputs", {})


def _json_grammar(body: Body) -> str:
    """The schema in a grammar of llguidance."""
    before, _, schema = str(body.get("grammar", "")).partition("start: %json ")
    return schema if before == "%llguidance {}\n" else ""


KINDS: Mapping[str, Kind] = {
    "openai": Kind(lambda body: None),
    "vllm": Kind(
        lambda body: _structured(body).get("grammar"),
        lambda body: _structured(body).get("json"),
        "vllm",
    ),
    "sglang": Kind(lambda body: body.get("ebnf"), owned_by="sglang"),
    "llamacpp": Kind(lambda body: body.get("grammar"), owned_by="llamacpp", takes=("root ::=",)),
    "llguidance": Kind(
        lambda body: None if _json_grammar(body) else body.get("grammar"),
        lambda body: _json_grammar(body) or None,
        owned_by="llamacpp",
        takes=("%llguidance {}\nstart:", "root ::="),
    ),
    "ollama": Kind(lambda body: None, owned_by="library"),
    "gemini": Kind(lambda body: None),
    "hosted": Kind(lambda body: None),
    "generic": Kind(lambda body: body.get("grammar"), takes=("root ::=",)),
}

TOO_COMPLEX = Canned(error("The grammar is too complex", code="invalid_grammar"), 400)

Manner = Literal["obey", "ignore", "refuse", "refuse lark"]


@dataclass
class Fake:
    """A server of a kind.

    Attributes:
        kind: Its name among `KINDS`.
        manner: What it does with constraints.
        plan: Its reply to a grammar.
        json: The same as JSON.
    """

    kind: str
    manner: Manner = "obey"
    plan: str = PLAN
    json: str = '{"plan": "the plan"}'

    def __call__(self, seen: Seen) -> Canned:
        kind = KINDS[self.kind]
        grammar, schema = kind.grammar(seen.body), kind.schema(seen.body)
        if (grammar is None and schema is None) or self.manner == "ignore":
            return Canned(completion("Hello! How can I help you?"))
        if self.manner == "refuse":
            return TOO_COMPLEX
        if grammar is None:
            return Canned(completion(self.json))
        takes = [way for way in kind.takes if "start" not in way or self.manner == "obey"]
        if not grammar.startswith(tuple(takes)):
            return Canned(error("Failed to parse the grammar"), 400)
        return Canned(completion(self.plan))
