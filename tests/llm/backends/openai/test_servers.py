"""What goes over the wire to every kind of server, key by key, and what comes back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import llguidance
import pytest

from pearl.dsl.decoding.constraint import Constraint
from pearl.llm import Completion, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import servers
from tests.llm.backends.asking import complete
from tests.llm.backends.openai.kinds import ASKED, CONSTRAINT, JSON, KINDS, PLAN, SCHEMA, Fake
from tests.server import Server

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]

CHAT = {
    "model": "test-model",
    "messages": MESSAGES,
    "max_tokens": 900,
    "temperature": 0.0,
    "seed": 5,
}

RESPONSE = {
    "model": "test-model",
    "input": MESSAGES,
    "max_output_tokens": 900,
    "temperature": 0.0,
    "store": False,
}

FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
}

GRAMMARS: dict[str, dict[str, Any]] = {
    "openai": {
        **CHAT,
        "tools": [
            {
                "type": "custom",
                "custom": {
                    "name": "reply",
                    "description": "Takes your whole reply.",
                    "format": {
                        "type": "grammar",
                        "grammar": {"syntax": "lark", "definition": CONSTRAINT.lark},
                    },
                },
            }
        ],
        "tool_choice": {"type": "custom", "custom": {"name": "reply"}},
    },
    "responses": {
        **RESPONSE,
        "tools": [
            {
                "type": "custom",
                "name": "reply",
                "description": "Takes your whole reply.",
                "format": {"type": "grammar", "syntax": "lark", "definition": CONSTRAINT.lark},
            }
        ],
        "tool_choice": {"type": "custom", "name": "reply"},
    },
    "vllm": {**CHAT, "structured_outputs": {"grammar": CONSTRAINT.lark}},
    "generic": {
        **CHAT,
        "grammar": CONSTRAINT.gbnf,
        "ebnf": CONSTRAINT.gbnf,
        "structured_outputs": {"grammar": CONSTRAINT.gbnf},
    },
    "sglang": {**CHAT, "ebnf": CONSTRAINT.lark},
    "llamacpp": {**CHAT, "grammar": CONSTRAINT.gbnf},
    "llguidance": {**CHAT, "grammar": "%llguidance {}\n" + CONSTRAINT.lark},
}

SCHEMAS: dict[str, dict[str, Any]] = {
    **{kind: {**CHAT, "response_format": FORMAT} for kind in KINDS},
    "responses": {
        **RESPONSE,
        "text": {
            "format": {"type": "json_schema", "name": "reply", "strict": True, "schema": SCHEMA}
        },
    },
    "vllm": {**CHAT, "structured_outputs": {"json": SCHEMA}},
}


@pytest.fixture(autouse=True)
def _probes(openai_server: Server) -> None:
    openai_server.sees_probes = True


def ask(server: Server, kind: str, request: Request = ASKED) -> Completion:
    model = create_model("openai:test-model", ModelSettings(server.url, 20.0, server=kind))
    return complete(model, request)


def test_the_tables_have_every_kind() -> None:
    assert set(SCHEMAS) == set(servers.names()) - {"anthropic"}  # test_anthropic.py
    assert set(GRAMMARS) == {name for name in SCHEMAS if servers.load(name).renderings}


@pytest.mark.parametrize(
    ("kind", "by"),
    [*((kind, "grammar") for kind in GRAMMARS), *((kind, "json") for kind in SCHEMAS)],
)
def test_the_body_of_a_constrained_request(kind: str, by: str, openai_server: Server) -> None:
    openai_server.answer = Fake(kind)
    request, text = (ASKED, PLAN) if by == "grammar" else (JSON, "the plan")
    assert ask(openai_server, kind, request).text == text
    seen = openai_server.requests[-1]
    assert seen.body == (GRAMMARS if by == "grammar" else SCHEMAS)[kind]
    assert seen.path == ("/v1/responses" if kind == "responses" else "/v1/chat/completions")


def test_lark_for_vllm_has_no_mark_of_gbnf(openai_server: Server) -> None:
    openai_server.answer = Fake("vllm")
    odd = Constraint("odd", 'start: "a ::= " B\nB: /[::=]+/\n')
    ask(openai_server, "vllm", replace(ASKED, constraint=odd))
    sent = openai_server.requests[-1].body["structured_outputs"]["grammar"]
    assert sent == 'start: "a :\\u003a= " B\nB: /[:\\u003a=]+/\n'
    assert llguidance.LLMatcher.validate_grammar_with_warnings(sent)[0] is False


def test_a_limit_that_is_not_set_is_not_sent(openai_server: Server) -> None:
    openai_server.answer = Fake("responses")
    bare = replace(ASKED, max_output_tokens=None, temperature=None)
    ask(openai_server, "responses", bare)
    assert not {"max_output_tokens", "temperature"} & set(openai_server.requests[-1].body)
