"""What goes over the wire to every kind of server, key by key, and what comes back."""

from __future__ import annotations

import llguidance
import pytest
from msgspec.structs import replace

from pearl.dsl.decoding.constraint import Constraint
from pearl.llm import Completion, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import servers
from tests.llm.backends.asking import READ, complete
from tests.llm.backends.openai.kinds import ASKED, JSON, PLAN, SCHEMA, Fake
from tests.server import Canned, Server, error


@pytest.fixture(autouse=True)
def _takes_constraints(openai_server: Server) -> None:
    openai_server.takes_constraints = True


def ask(server: Server, kind: str, request: Request = ASKED) -> Completion:
    model = create_model("openai:test-model", ModelSettings(server.url, 20.0, server=kind))
    return complete(model, request)


@pytest.mark.parametrize("by", ["grammar", "json"])
@pytest.mark.parametrize("kind", sorted(set(servers.names()) - {"anthropic"}))
def test_a_constraint_stands_where_the_kind_of_server_looks_for_it(
    kind: str, by: str, openai_server: Server
) -> None:
    if by not in servers.load(kind).by:
        return
    openai_server.answer = Fake(kind)
    request, text = (ASKED, PLAN) if by == "grammar" else (JSON, "the plan")
    assert ask(openai_server, kind, request).text == text
    seen = openai_server.requests[-1]
    assert seen.path == "/v1/chat/completions"
    if by == "json" and "response_format" in seen.body:
        named = {"name": "reply", "strict": True, "schema": SCHEMA}
        assert seen.body["response_format"] == {"type": "json_schema", "json_schema": named}
    elif kind == "llguidance" and by == "json":
        assert '"whitespace_flexible": false' in seen.body["grammar"]


def test_lark_for_vllm_has_no_mark_of_gbnf(openai_server: Server) -> None:
    openai_server.answer = Fake("vllm")
    odd = Constraint("odd", 'start: "a ::= " B\nB: /[::=]+/\n')
    ask(openai_server, "vllm", replace(ASKED, constraint=odd))
    sent = openai_server.requests[-1].body["structured_outputs"]["grammar"]
    assert sent == 'start: "a :\\u003a= " B\nB: /[:\\u003a=]+/\n'
    assert llguidance.LLMatcher.validate_grammar_with_warnings(sent)[0] is False


EXPLICIT = {"prompt_cache_options": {"mode": "explicit"}}
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
TEXT = "<text>\nAda😀 sold it.\n</text>"


@pytest.mark.parametrize(
    ("kind", "name", "is_marking"),
    [("openai", "gpt-5.6", True), ("openai", "gpt-6-luna", True), ("openai", "gpt-10", True),
     ("openai", "gpt-5", False), ("openai", "gpt-5.5", False), ("openai", "gpt-4o", False), ("openai", "o3", False),
     ("vllm", "gpt-6-luna", False), ("generic", "gpt-6-luna", False)],
)  # fmt: skip
def test_only_what_is_marked_is_cached_where_writes_are_billed(
    openai_server: Server, kind: str, name: str, is_marking: bool
) -> None:
    settings = ModelSettings(openai_server.url, 20.0, server=kind)
    openai_server.answer = Fake(kind)
    for kept_s in (0.0, 1_800.0):
        request = replace(READ, kept_s=kept_s, constraint=ASKED.constraint, constrain_by="json")
        complete(create_model(f"openai:{name}", settings), request)
    *_, plain, marked = (seen.body for seen in openai_server.requests)
    assert plain["messages"][1]["content"] == f"{TEXT}\n\nWho?"
    if not is_marking:
        assert marked == plain
        return
    assert plain.items() >= EXPLICIT.items()
    assert "prompt_cache_key" not in plain
    assert marked["messages"][1]["content"] == [
        {"type": "text", "text": TEXT, **MARK}, {"type": "text", "text": "\n\nWho?"},
    ]  # fmt: skip
    assert len(marked["prompt_cache_key"]) == 32
    assert {**marked, "messages": [], "prompt_cache_key": ""} == {
        **plain,
        "messages": [],
        "prompt_cache_key": "",
    }


def test_a_server_that_rejects_marks_gets_the_request_without_them(openai_server: Server) -> None:
    refusal = error("Unknown parameter: 'prompt_cache_options'.", param="prompt_cache_options")
    openai_server.next(Canned(refusal, 400))
    model = create_model(
        "openai:gpt-6-sol", ModelSettings(openai_server.url, 20.0, server="openai")
    )
    complete(model, replace(READ, kept_s=1_800.0))
    complete(model, replace(READ, kept_s=1_800.0))
    first, *later = (seen.body for seen in openai_server.requests)
    assert first.items() >= EXPLICIT.items()
    for body in later:
        assert body["messages"][1]["content"] == f"{TEXT}\n\nWho?"
        assert not [name for name in body if name.startswith("prompt_cache")]
