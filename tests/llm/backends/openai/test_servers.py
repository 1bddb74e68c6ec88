"""What goes over the wire to every kind of server, key by key, and what comes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import llguidance
import pytest

from pearl.dsl.decoding.constraint import Constraint
from pearl.llm import Completion, Message, Request, Usage
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import servers
from tests.llm.backends.openai.kinds import CONSTRAINT, PLAN, SCHEMA, SENTENCE, Fake
from tests.models import answer_task
from tests.server import Canned, Server, called, completion, response, tool_call

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]

ASKED = Request(
    (Message("system", "Be brief."), Message("user", "Who?")),
    answer_task("Who?", ""),
    max_output_tokens=900,
    seed=5,
    constraint=CONSTRAINT,
)

JSON = replace(ASKED, constrain_by="json")

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
    "sglang": {**CHAT, "ebnf": CONSTRAINT.lark},
    "llamacpp": {**CHAT, "grammar": CONSTRAINT.gbnf},
    "llguidance": {**CHAT, "grammar": "%llguidance {}\n" + CONSTRAINT.lark},
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "openai": {**CHAT, "response_format": FORMAT},
    "responses": {
        **RESPONSE,
        "text": {
            "format": {"type": "json_schema", "name": "reply", "strict": True, "schema": SCHEMA}
        },
    },
    "vllm": {**CHAT, "structured_outputs": {"json": SCHEMA}},
    "sglang": {**CHAT, "response_format": FORMAT},
    "llamacpp": {**CHAT, "response_format": FORMAT},
    "llguidance": {**CHAT, "response_format": FORMAT},
    "ollama": {**CHAT, "response_format": FORMAT},
    "generic": {**CHAT, "response_format": FORMAT},
}


def ask(server: Server, kind: str, request: Request = ASKED) -> Completion:
    model = create_model("openai:test-model", ModelSettings(server.url, 20.0, server=kind))

    async def main() -> Completion:
        try:
            return await model.complete(request)
        finally:
            await model.aclose()

    return asyncio.run(main())


def test_every_kind_is_tried_here() -> None:
    assert set(SCHEMAS) == set(servers.names())
    assert set(GRAMMARS) == {name for name in SCHEMAS if servers.load(name).renderings}


@pytest.mark.parametrize("kind", GRAMMARS)
def test_a_grammar_over_the_wire(kind: str, openai_server: Server) -> None:
    openai_server.answer = Fake(kind)
    assert ask(openai_server, kind).text == PLAN
    seen = openai_server.requests[-1]
    assert seen.body == GRAMMARS[kind]
    assert seen.path == ("/v1/responses" if kind == "responses" else "/v1/chat/completions")


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_over_the_wire(kind: str, openai_server: Server) -> None:
    openai_server.answer = Fake(kind)
    assert ask(openai_server, kind, JSON).text == "the plan"
    seen = openai_server.requests[-1]
    assert seen.body == SCHEMAS[kind]
    assert seen.path == ("/v1/responses" if kind == "responses" else "/v1/chat/completions")


def test_vllm_finds_no_mark_of_gbnf_in_lark(openai_server: Server) -> None:
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


def test_usage_counts_alike(openai_server: Server) -> None:
    openai_server.next(Canned(response(called(SENTENCE))), Canned(response(called(PLAN))))
    expected = Completion(PLAN, "test-model-2026", Usage(100, 7, 64))
    assert ask(openai_server, "responses") == expected
    openai_server.answer = Fake("openai")
    usage = ask(openai_server, "openai").usage
    assert (usage.n_input_tokens, usage.n_cached_tokens) == (100, 64)


def test_lone_surrogates_do_not_come_in(openai_server: Server) -> None:
    openai_server.next(Canned(tool_call(SENTENCE)), Canned(tool_call("a\ud800b")))
    assert ask(openai_server, "openai").text == "a\ufffdb"
    openai_server.next(Canned(response(called(SENTENCE))), Canned(response(called("a\ud800b"))))
    assert ask(openai_server, "responses").text == "a\ufffdb"


def test_a_usual_reply_may_have_odd_tool_calls(openai_server: Server) -> None:
    openai_server.next(Canned(completion("Ada", tool_calls="odd")))
    assert ask(openai_server, "openai", replace(ASKED, constraint=None)).text == "Ada"
