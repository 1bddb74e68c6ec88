"""Holding servers to constraints: recognised, probed once, and never trusted unasked."""

from __future__ import annotations

from dataclasses import replace

import lark
import pytest

from pearl.dsl.decoding.constraint import Constraint, validate
from pearl.dsl.decoding.forms import steps_constraint
from pearl.errors import ModelErrorKind, UsageError
from pearl.llm import Model, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import constraining
from tests.llm.backends.openai.constrained import (
    ASKED,
    JSON,
    KEY,
    LISTED,
    ask,
    be,
    fails,
    model_of,
    renderings,
    run,
)
from tests.llm.backends.openai.kinds import CONSTRAINT, PLAN, SENTENCE, Fake
from tests.server import Canned, Server, completion, error, tool_call


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


# ---------------------------------------------------------------------------------------------
# The probe's language


def test_the_probe_admits_its_sentence_and_no_other() -> None:
    validate(constraining.PROBE.lark)
    parser = lark.Lark(constraining.PROBE.lark, parser="lalr")
    assert constraining.SENTENCE == SENTENCE
    assert parser.parse(SENTENCE)
    with pytest.raises(lark.exceptions.LarkError):
        parser.parse("Hello!")
    assert constraining.PROBE.gbnf == (
        'root ::= t-count " umbrellas " verb " in quartz"\nverb ::= "hum"\nt-count ::= ( [S] "e" "v" "e" "n" )\n'
    )


# ---------------------------------------------------------------------------------------------
# Which kind


@pytest.mark.parametrize("kind", LISTED)
def test_a_server_is_recognised_by_its_listing(kind: str, openai_server: Server) -> None:
    model = model_of(be(openai_server, kind))
    assert model.constrains.by == {"grammar", "json"}

    async def twice(model: Model) -> list[str]:
        return [(await model.complete(ASKED)).text for _ in range(2)]

    assert run(model, twice) == [PLAN, PLAN]
    assert openai_server.n_listings == 1


def test_the_listing_of_the_model_itself_counts_most(openai_server: Server) -> None:
    openai_server.models = ["other", "test-model"]
    assert ask(model_of(be(openai_server, "vllm"))).text == PLAN


@pytest.mark.parametrize("kind", ["ollama", "generic"])
def test_some_kinds_take_no_grammar(kind: str, openai_server: Server) -> None:
    model = model_of(be(openai_server, kind), kind)
    assert model.constrains.by == {"json"}
    assert "takes no grammar" in fails(model)
    assert openai_server.requests == []


@pytest.mark.parametrize("request_", [ASKED, JSON], ids=["grammar", "json"])
@pytest.mark.parametrize("owned_by", [None, "openai", "someone"])
def test_an_unknown_server_is_not_probed(
    owned_by: str | None, request_: Request, openai_server: Server
) -> None:
    be(openai_server, "vllm").owned_by = owned_by
    model = model_of(openai_server)
    for _ in range(2):
        assert "--server vllm" in fails(model, request_)
    assert openai_server.requests == []
    assert openai_server.n_listings == 1


def test_a_server_without_a_listing_is_unknown(openai_server: Server) -> None:
    be(openai_server, "vllm").models = None
    assert "--server vllm" in fails(model_of(openai_server))


def test_a_server_that_is_not_there_is_not_an_unknown_one() -> None:
    model = create_model("openai:test-model", ModelSettings("http://127.0.0.1:9/v1", 5.0))
    assert "no server at" in fails(model, kind="transport")


def test_an_unknown_kind_is_a_usage_error(openai_server: Server) -> None:
    with pytest.raises(UsageError, match="did you mean 'vllm'"):
        model_of(openai_server, "vlm")
    with pytest.raises(UsageError, match=r"servers: .*llamacpp, .*vllm"):
        model_of(openai_server, "")


def test_a_refusal_of_the_probe_in_any_words_is_one_of_the_form(openai_server: Server) -> None:
    be(openai_server, "vllm").next(Canned(error("unexpected token"), 400))
    assert ask(model_of(openai_server)).text == PLAN
    assert renderings(openai_server) == ["lark", "gbnf", "gbnf"]


def test_an_unknown_model_is_not_an_unconstrained_one(openai_server: Server) -> None:
    be(openai_server, "vllm").next(Canned(error("no such", code="model_not_found"), 404))
    model = create_model("openai:tset-model", ModelSettings(openai_server.url))
    assert "did you mean 'openai:test-model'?" in fails(model, kind="bad_request")


def test_a_server_that_refuses_the_temperature_is_probed_without(openai_server: Server) -> None:
    openai_server.next(Canned(error("no", param="temperature"), 400))
    assert ask(model_of(be(openai_server, "openai"), "openai")).text == PLAN
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
    status: int, answer: dict[str, object], kind: ModelErrorKind, openai_server: Server
) -> None:
    model = model_of(be(openai_server, "vllm"))
    ask(model)
    openai_server.next(Canned(answer, status))
    assert f"answered {status}" in fails(model, kind=kind)
    assert ask(model).text == PLAN  # it is no verdict of the form


def test_the_same_refusal_without_a_constraint_is_a_bad_request(openai_server: Server) -> None:
    openai_server.next(Canned(error("The grammar is too complex"), 400))
    fails(model_of(openai_server), replace(ASKED, constraint=None), kind="bad_request")


def test_a_reply_outside_the_grammar_is_for_the_reader(openai_server: Server) -> None:
    openai_server.owned_by = "vllm"
    openai_server.answer = Fake("vllm", plan="no plan at all")
    assert ask(model_of(openai_server)).text == "no plan at all"


@pytest.mark.parametrize("reply", ["no JSON", "[]", '{"plan": 5}', '{"plan": "cut', "[" * 100_000])
def test_a_reply_that_is_not_of_the_schema_is_malformed(reply: str, openai_server: Server) -> None:
    openai_server.owned_by = "vllm"
    openai_server.answer = Fake("vllm", json=reply)
    assert "is not the JSON that 'plan' requires" in fails(
        model_of(openai_server), JSON, kind="malformed"
    )


@pytest.mark.parametrize("escaped", ["a\\ud800b", "\\ud800"])
def test_half_characters_do_not_come_in_by_json(escaped: str, openai_server: Server) -> None:
    openai_server.owned_by = "vllm"
    openai_server.answer = Fake("vllm", json=f'{{"plan": "{escaped}"}}')
    assert ask(model_of(openai_server), JSON).text == escaped.replace("\\ud800", "\ufffd")


def test_json_of_a_blank_sentence_is_an_empty_reply(openai_server: Server) -> None:
    openai_server.owned_by = "vllm"
    openai_server.answer = Fake("vllm", json='{"plan": " "}')
    fails(model_of(openai_server), JSON, kind="empty")


def test_json_comes_back_as_the_sentence(openai_server: Server) -> None:
    model = model_of(be(openai_server, "sglang"))
    assert ask(model, JSON).text == "the plan"
    assert ask(model).text == PLAN  # its verdict is another
    assert len(openai_server.requests) == 4


def test_a_language_without_a_json_form_is_not_asked_for_as_json(openai_server: Server) -> None:
    request = replace(JSON, constraint=replace(CONSTRAINT, json_form=None))
    assert "'plan' has no JSON form" in fails(model_of(be(openai_server, "vllm")), request)
    assert openai_server.requests == []


def test_no_server_takes_a_grammar_for_every_line(openai_server: Server) -> None:
    said = fails(model_of(be(openai_server, "vllm")), replace(ASKED, constrain_by="line"))
    assert "takes no grammar for every line" in said


@pytest.mark.parametrize(
    "grammar", ['start: "a" b', 'start: a ~ 2 "b"', 'start: "a" | /[/\n', "start: \n\n%import x"]
)
def test_a_broken_grammar_is_not_sent(grammar: str, openai_server: Server) -> None:
    model = model_of(be(openai_server, "vllm"))
    ask(model)
    n_requests = len(openai_server.requests)
    said = fails(model, replace(ASKED, constraint=Constraint("odd", grammar)))
    assert "the grammar of 'odd' is not sent" in said
    assert len(openai_server.requests) == n_requests


def test_the_key_is_in_no_message(openai_server: Server) -> None:
    for reply in (f"Hello {KEY}", "Hello " * 8 + KEY):
        be(openai_server, "vllm").next(*[Canned(completion(reply))] * 2)
        assert "very" not in fails(model_of(openai_server))
    openai_server.next(*(Canned(error(f"grammar {KEY}"), 400) for _ in range(2)))
    fails(model_of(openai_server))
    be(openai_server, "openai").next(Canned(tool_call(SENTENCE)), Canned(completion(KEY)))
    assert "without the required tool" in fails(model_of(openai_server, "openai"))


def test_grammars_of_plans_go_to_every_kind(openai_server: Server) -> None:
    from pearl.actions.library import load_library

    constraint = steps_constraint(load_library("quality"), max_steps=3)
    for kind in ("openai", "responses", "llguidance", *LISTED):
        model = model_of(be(openai_server, kind), kind)
        assert ask(model, replace(ASKED, constraint=constraint)).text == PLAN
