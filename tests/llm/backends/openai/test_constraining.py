"""Constrained requests: servers are recognised, probed once, and never trusted unasked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lark
import pytest

from pearl.arguments import with_arguments
from pearl.dsl.decoding.constraint import Constraint, validate
from pearl.errors import ModelErrorKind, UsageError
from pearl.llm import Completion, ConstrainBy, Model, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import constraining, servers
from tests.llm.backends.asking import complete, failure, used
from tests.llm.backends.openai.kinds import (
    ASKED,
    CONSTRAINT,
    JSON,
    KINDS,
    PLAN,
    SENTENCE,
    Fake,
    Manner,
)
from tests.server import FAULTS, Canned, Seen, Server, completion, error

KEY = "sk-very-secret-0123456789"

LISTED = ("vllm", "sglang", "llamacpp")
"""Kinds that take grammars and are recognised by their listings."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, openai_server: Server) -> None:
    openai_server.sees_probes = True
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def vllm(openai_server: Server) -> Server:
    """A server that obeys constraints, and whose listing tells its kind."""
    openai_server.owned_by, openai_server.answer = "vllm", Fake("vllm")
    return openai_server


def model_of(server: Server, kind: str | None = None, timeout_s: float = 20.0) -> Model:
    return create_model("openai:test-model", ModelSettings(server.url, timeout_s, server=kind))


def refusal(model: Model, request: Request = ASKED, kind: ModelErrorKind = "unconstrained") -> str:
    text = str(failure(model, kind, request))
    assert KEY not in text
    return text


def renderings(server: Server) -> list[str]:
    """Notations that a server was asked in, one a request."""
    ways = {"%llguidance": "llguidance", "::=": "gbnf", "start: ": "lark"}
    texts = [seen.data.decode() for seen in server.requests]
    return [next(name for mark, name in ways.items() if mark in text) for text in texts]


def test_the_probe_admits_its_sentence_and_no_other() -> None:
    validate(constraining.PROBE.lark)
    parser = lark.Lark(constraining.PROBE.lark, parser="lalr")
    assert parser.parse(SENTENCE)
    with pytest.raises(lark.exceptions.LarkError):
        parser.parse("Hello!")
    assert constraining.PROBE.gbnf.startswith('root ::= t-count " umbrellas " verb " in quartz"\n')


# ---------------------------------------------------------------------------------------------
# Which kind


@pytest.mark.parametrize("kind", LISTED)
def test_a_server_is_recognised_by_its_listing(kind: str, openai_server: Server) -> None:
    openai_server.owned_by, openai_server.answer = KINDS[kind].owned_by, Fake(kind)
    model = model_of(openai_server)
    assert model.constrains.by == {"grammar", "json"}
    assert [complete(model, ASKED).text for _ in range(2)] == [PLAN, PLAN]
    assert openai_server.n_listings == 1


def test_some_kinds_take_no_grammar(openai_server: Server) -> None:
    model = model_of(openai_server, "ollama")
    assert model.constrains.by == {"json"}
    assert "takes no grammar" in refusal(model)
    assert openai_server.requests == []


@pytest.mark.parametrize("request_", [ASKED, JSON], ids=["grammar", "json"])
@pytest.mark.parametrize("owned_by", [None, "openai", "unlisted"])
@pytest.mark.parametrize("kind", LISTED)
def test_an_unknown_server_is_probed_once(
    kind: str, owned_by: str | None, request_: Request, openai_server: Server
) -> None:
    openai_server.owned_by, openai_server.answer = owned_by, Fake(kind, json='{"plan": "a"}')
    if owned_by == "unlisted":
        openai_server.models = None
    if kind == "vllm" and request_ is JSON:  # vLLM takes `response_format`, too
        openai_server.answer = Fake("generic", json='{"plan": "a"}')
    model = model_of(openai_server)
    texts = [complete(model, request_).text for _ in range(2)]
    assert texts == ["a" if request_ is JSON else PLAN] * 2
    assert len(openai_server.requests) == 3
    assert openai_server.n_listings == 1


def test_an_unknown_server_without_constraints_is_asked_without_after_two_probes(
    openai_server: Server,
) -> None:
    openai_server.answer = Fake("vllm", "ignore")
    model = model_of(openai_server)
    for request in (ASKED, JSON, ASKED, JSON):
        assert "replied 'Hello!" in refusal(model, request)
    assert len(openai_server.requests) == 2


@pytest.mark.parametrize("fault", ["429", "503", "hang"])
def test_a_listing_that_fails_for_now_is_asked_for_again(
    fault: str, vllm: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pearl.llm.backends.openai.sessions.TIMEOUT_S", 0.2)
    vllm.listing = FAULTS[fault]
    model = model_of(vllm)
    refusal(model)
    vllm.listing = None
    monkeypatch.undo()
    assert complete(model, ASKED).text == PLAN


def test_an_unreachable_server_is_not_an_unknown_kind() -> None:
    model = create_model("openai:test-model", ModelSettings("http://127.0.0.1:9/v1", 5.0))
    assert "no server at" in refusal(model, kind="transport")


def test_an_unknown_kind_is_a_usage_error(openai_server: Server) -> None:
    with pytest.raises(UsageError, match="did you mean 'vllm'"):
        model_of(openai_server, "vlm")
    with pytest.raises(UsageError, match=r"servers: .*llamacpp, .*vllm"):
        model_of(openai_server, "")


# ---------------------------------------------------------------------------------------------
# The probe


@pytest.mark.parametrize(
    ("kind", "manner", "notations"),
    [
        ("vllm", "refuse lark", ["lark", "gbnf", "gbnf", "gbnf"]),
        ("sglang", "refuse lark", ["lark", "gbnf", "gbnf", "gbnf"]),
        ("llamacpp", "obey", ["gbnf", "gbnf", "gbnf"]),  # other notations crash it
    ],
)
def test_the_first_rendering_that_is_obeyed_is_kept(
    kind: str, manner: Manner, notations: list[str], openai_server: Server
) -> None:
    openai_server.answer = Fake(kind, manner)
    model = model_of(openai_server, kind)
    assert [complete(model, ASKED).text for _ in range(2)] == [PLAN, PLAN]
    assert renderings(openai_server) == notations


def test_the_probe_is_short_and_harmless(vllm: Server) -> None:
    complete(model_of(vllm), replace(ASKED, temperature=0.7))
    probe, asked = (seen.body for seen in vllm.requests)
    assert probe == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "Please say hello."}],
        "max_tokens": 512,
        "temperature": 0.0,
        "structured_outputs": {"grammar": constraining.PROBE.lark},
    }
    assert (asked["temperature"], asked["seed"], asked["max_tokens"]) == (0.7, 5, 900)


@pytest.mark.parametrize("by", ["grammar", "json"])
def test_twenty_first_requests_make_one_probe(by: ConstrainBy, vllm: Server) -> None:
    vllm.delay_s = 0.05

    async def many(model: Model) -> list[Completion]:
        request = replace(ASKED, constrain_by=by)
        return await asyncio.gather(*(model.complete(request) for _ in range(20)))

    assert len(used(model_of(vllm), many)) == 20
    assert len(vllm.requests) == 21
    assert vllm.n_listings == 1


def test_a_probe_continues_when_its_first_caller_is_cancelled(vllm: Server) -> None:
    vllm.delay_s = 0.3

    async def main(model: Model) -> Completion:
        first = asyncio.create_task(model.complete(ASKED))
        while not vllm.requests:  # noqa: ASYNC110  the server is in another thread
            await asyncio.sleep(0.01)
        second = asyncio.create_task(model.complete(ASKED))
        await asyncio.sleep(0.01)
        first.cancel()
        return await second

    assert used(model_of(vllm), main).text == PLAN
    assert len(vllm.requests) == 2


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("429", "rate_limited"), ("503", "transport"), ("reset", "transport"), ("page", "malformed")],
)
def test_a_fault_in_the_probe_is_no_verdict(fault: str, kind: ModelErrorKind, vllm: Server) -> None:
    model = model_of(vllm)
    vllm.next(fault)
    refusal(model, kind=kind)
    assert complete(model, ASKED).text == PLAN
    assert len(vllm.requests) == 3


def test_all_waiting_callers_get_a_copy_of_the_error(vllm: Server) -> None:
    vllm.delay_s = 0.2
    vllm.next(Canned(error("slow down"), 429, {"retry-after": "7"}))

    async def many(model: Model) -> list[object]:
        asked = (model.complete(ASKED) for _ in range(5))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    errors = used(model_of(vllm), many)
    assert [getattr(error, "retry_after_s", None) for error in errors] == [7.0] * 5
    assert len({id(error) for error in errors}) == 5
    assert len(vllm.requests) == 1


def test_a_probe_has_a_time_limit(vllm: Server) -> None:
    vllm.next("hang")
    refusal(model_of(vllm, "vllm", timeout_s=0.3), kind="deadline")


@pytest.mark.parametrize("by", ["grammar", "json"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_ignored_constraint_is_detected(
    kind: str, by: ConstrainBy, openai_server: Server
) -> None:
    if by not in servers.load(kind).by:
        return
    openai_server.answer = Fake(kind, "ignore")
    model = model_of(openai_server, kind)
    text = refusal(model, replace(ASKED, constrain_by=by))
    assert "Hello! How can I help you?" in text
    assert with_arguments(servers.load(kind).help) in text
    n_requests = len(openai_server.requests)
    assert refusal(model, replace(ASKED, constrain_by=by)) == text
    assert len(openai_server.requests) == n_requests


@pytest.mark.parametrize("kind", LISTED)
def test_a_refused_constraint_is_quoted(kind: str, openai_server: Server) -> None:
    openai_server.answer = Fake(kind, "refuse")
    text = refusal(model_of(openai_server, kind))
    assert "answered 400: The grammar is too complex" in text
    assert len(openai_server.requests) == len(servers.load(kind).renderings)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (completion("Hello! " * 9, finish_reason="length"), 200),
        (completion(""), 200),
        (completion(None, refusal="I'd rather not"), 200),
        (completion(f"{SENTENCE}, and so do I"), 200),
        (error("unexpected token"), 400),
    ],
)
def test_a_reply_other_than_the_sentence_rules_out_the_form(
    answer: dict[str, object], status: int, vllm: Server
) -> None:
    vllm.next(Canned(answer, status))
    assert complete(model_of(vllm), ASKED).text == PLAN
    assert renderings(vllm) == ["lark", "gbnf", "gbnf"]


def test_an_unknown_model_is_no_failure_of_the_constraint(vllm: Server) -> None:
    vllm.next(Canned(error("no such", code="model_not_found"), 404))
    model = create_model("openai:tset-model", ModelSettings(vllm.url))
    assert "did you mean 'openai:test-model'?" in refusal(model, kind="bad_request")


def test_a_server_that_refuses_the_temperature_is_probed_without(openai_server: Server) -> None:
    openai_server.answer = Fake("vllm")
    openai_server.next(Canned(error("no", param="temperature"), 400))
    assert complete(model_of(openai_server, "vllm"), ASKED).text == PLAN
    assert ["temperature" in seen.body for seen in openai_server.requests] == [True, False, False]


# ---------------------------------------------------------------------------------------------
# After the probe


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (400, error("The grammar is too complex"), "unconstrained"),
        (400, error("no", param="response_format"), "unconstrained"),
        (422, {"detail": [{"loc": ["structured_outputs"], "msg": "?"}]}, "unconstrained"),
        (500, error("failed to parse grammar"), "unconstrained"),
        (400, error("your information is wrong"), "bad_request"),
        (400, error("grammar", code="context_length_exceeded"), "bad_request"),
        (400, error("grammar", code="content_filter"), "filtered"),
        (413, error("too complex"), "bad_request"),
        (429, error("too many grammars"), "rate_limited"),
        (500, error("internal"), "transport"),
    ],
)
def test_a_refusal_of_one_constraint(
    status: int, answer: dict[str, object], kind: ModelErrorKind, vllm: Server
) -> None:
    model = model_of(vllm)
    complete(model, ASKED)
    vllm.next(Canned(answer, status))
    assert f"answered {status}" in refusal(model, kind=kind)
    assert complete(model, ASKED).text == PLAN  # it is no verdict of the form


def test_the_same_refusal_without_a_constraint_is_a_bad_request(openai_server: Server) -> None:
    openai_server.next(Canned(error("The grammar is too complex"), 400))
    refusal(model_of(openai_server), replace(ASKED, constraint=None), kind="bad_request")


@pytest.mark.parametrize(
    "reply",
    ["no JSON", "[]", '{"plan": 5}', '{"plan": "cut', "[" * 100_000, '{"plan": "a", "plan": "b"}'],
)
def test_a_reply_that_is_not_of_the_schema_is_not_constrained(reply: str, vllm: Server) -> None:
    vllm.answer = Fake("vllm", json=reply)
    text = refusal(model_of(vllm), JSON, kind="unconstrained")
    assert "is not the JSON that 'plan' requires" in text


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("<think>hm</think>{json}", "the plan"),
        ("<think>hm {json}", None),
        ("I'm sorry, but I can't help with that.", None),
        ('{{"plan": " "}}', None),
        ('{{"plan": "a\\ud800b"}}', "a\ufffdb"),
    ],
)
def test_a_reply_in_json_is_read_without_its_reasoning(
    reply: str, text: str | None, vllm: Server
) -> None:
    vllm.answer = Fake("vllm", json=reply.format(json='{"plan": "the plan"}'))
    model = model_of(vllm)
    if text is not None:
        assert complete(model, JSON).text == text
        return
    kinds: dict[str, ModelErrorKind] = {"<": "truncated", "I": "unconstrained", "{": "empty"}
    refusal(model, JSON, kind=kinds[reply[0]])


def test_grammars_and_json_have_verdicts_of_their_own(openai_server: Server) -> None:
    openai_server.answer = Fake("sglang", plan="no plan at all")
    model = model_of(openai_server, "sglang")
    assert complete(model, JSON).text == "the plan"
    assert complete(model, ASKED).text == "no plan at all", "the reader checks the sentence"
    assert len(openai_server.requests) == 4


def test_a_language_without_a_json_form_is_not_asked_for_as_json(vllm: Server) -> None:
    request = replace(JSON, constraint=replace(CONSTRAINT, json_form=None))
    assert "'plan' has no JSON form" in refusal(model_of(vllm), request)
    assert vllm.requests == []


@pytest.mark.parametrize(
    "grammar", ['start: "a" b', 'start: a ~ 2 "b"', 'start: "a" | /[/\n', "start: \n\n%import x"]
)
def test_a_broken_grammar_is_not_sent(grammar: str, vllm: Server) -> None:
    model = model_of(vllm)
    complete(model, ASKED)
    text = refusal(model, replace(ASKED, constraint=Constraint("odd", grammar)))
    assert "the grammar of 'odd' is not sent" in text
    assert len(vllm.requests) == 2


def test_the_key_is_in_no_message(vllm: Server) -> None:
    for reply in (f"Hello {KEY}", "Hello " * 8 + KEY):
        vllm.next(*[Canned(completion(reply))] * 2)
        assert "very" not in refusal(model_of(vllm))
    vllm.next(*(Canned(error(f"grammar {KEY}"), 400) for _ in range(2)))
    refusal(model_of(vllm))


def _arguments(text: str) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": "reply", "arguments": text}}
    return {"tool_calls": [call]}


@pytest.mark.parametrize(
    "fields",
    [
        lambda text: {"reasoning_content": text},
        lambda text: {"reasoning": text},
        lambda text: {"thinking": text},
        _arguments,
        lambda text: {**_arguments(text), "reasoning": "They ask for a plan."},
    ],
)
@pytest.mark.parametrize(("text", "is_read"), [('{"plan": "a"}', True), ('{"other": 1}', False)])
def test_a_reply_that_conforms_is_taken_from_where_it_stands(
    fields: Callable[[str], dict[str, Any]], text: str, is_read: bool, openai_server: Server
) -> None:
    fake = Fake("generic")

    def answer(seen: Seen) -> Canned:
        reply = json.loads(fake(seen).data)["choices"][0]["message"]["content"]
        return Canned(completion(None, **fields(reply if "umbrellas" in reply else text)))

    openai_server.answer = answer
    model = model_of(openai_server, "generic")
    if is_read:
        assert complete(model, JSON).text == "a"
    else:
        assert "the server put text into" in str(failure(model, "empty", JSON))
