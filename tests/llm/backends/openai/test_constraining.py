"""Holding servers to constraints: recognised, probed once, and never trusted unasked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import lark
import pytest

from pearl.dsl.decoding.constraint import Constraint, validate
from pearl.dsl.decoding.forms import steps_constraint
from pearl.errors import ModelError, ModelErrorKind, UsageError
from pearl.llm import Completion, ConstrainBy, Message, Model, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import constraining, servers
from tests.llm.backends.openai.kinds import CONSTRAINT, KINDS, PLAN, SENTENCE, Fake, Manner
from tests.models import answer_task
from tests.server import Canned, Server, completion, error, tool_call

KEY = "sk-very-secret-0123456789"

ASKED = Request(
    (Message("system", "Be brief."), Message("user", "Who?")),
    answer_task("Who?", ""),
    max_output_tokens=900,
    constraint=CONSTRAINT,
)

JSON = replace(ASKED, constrain_by="json")

LISTED = ("vllm", "sglang", "llamacpp")
"""Kinds that take grammars and are recognised by their listings."""

T = TypeVar("T")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def model_of(server: Server, kind: str | None = None, timeout_s: float = 20.0) -> Model:
    return create_model("openai:test-model", ModelSettings(server.url, timeout_s, server=kind))


def run(model: Model, use: Callable[[Model], Awaitable[T]]) -> T:
    async def main() -> T:
        try:
            return await use(model)
        finally:
            await model.aclose()

    return asyncio.run(main())


def ask(model: Model, request: Request = ASKED) -> Completion:
    return run(model, lambda model: model.complete(request))


def fails(model: Model, request: Request = ASKED, kind: ModelErrorKind = "unconstrained") -> str:
    with pytest.raises(ModelError) as caught:
        ask(model, request)
    said = str(caught.value)
    assert caught.value.kind == kind, said
    assert len(said.splitlines()) <= 3
    assert KEY not in said
    return said


def be(server: Server, kind: str, manner: Manner = "obey", *, is_listed: bool = True) -> Server:
    """Make a server one of a kind."""
    server.owned_by = KINDS[kind].owned_by if is_listed else None
    server.answer = Fake(kind, manner)
    return server


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


def test_openai_is_known_by_its_address() -> None:
    model = create_model("openai:gpt-5")
    assert model.constrains.by == {"grammar", "json"}
    with pytest.raises(UsageError):  # what is given is looked at all the same
        create_model("openai:gpt-5", ModelSettings(server="opnai"))


@pytest.mark.parametrize("kind", ["openai", "responses", "llguidance", "vllm"])
def test_a_kind_that_is_given_is_not_looked_up(kind: str, openai_server: Server) -> None:
    openai_server.models = None
    assert ask(model_of(be(openai_server, kind), kind)).text == PLAN
    assert openai_server.n_listings == 0


@pytest.mark.parametrize("kind", ["ollama", "generic"])
def test_some_kinds_take_no_grammar(kind: str, openai_server: Server) -> None:
    model = model_of(be(openai_server, kind), kind)
    assert model.constrains.by == {"json"}
    assert "takes no grammar" in fails(model)
    assert openai_server.requests == []


def test_ollama_is_found_to_take_no_grammar(openai_server: Server) -> None:
    model = model_of(be(openai_server, "ollama"))
    assert "is Ollama, which takes no grammar" in fails(model)
    assert ask(model, JSON).text == "the plan"


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
    with pytest.raises(UsageError, match=r"kinds: .*llamacpp, .*vllm"):
        model_of(openai_server, "")


# ---------------------------------------------------------------------------------------------
# The probe


def renderings(server: Server) -> list[str]:
    """Notations that a server was asked in, one a request."""
    notations = []
    for seen in server.requests:
        text = seen.data.decode()
        ways = {"%llguidance": "llguidance", "::=": "gbnf", "start: ": "lark"}
        notations.append(next(name for mark, name in ways.items() if mark in text))
    return notations


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_the_first_rendering_that_is_obeyed_is_kept(kind: str, openai_server: Server) -> None:
    model = model_of(be(openai_server, kind, "refuse lark"))
    assert [ask(model).text for _ in range(2)] == [PLAN, PLAN]
    assert renderings(openai_server) == ["lark", "gbnf", "gbnf", "gbnf"]


def test_llamacpp_is_never_sent_what_it_aborts_at(openai_server: Server) -> None:
    model = model_of(be(openai_server, "llamacpp"))
    assert ask(model).text == PLAN
    assert renderings(openai_server) == ["gbnf", "gbnf"]


def test_llguidance_goes_first_where_it_is_said_to_be_there(openai_server: Server) -> None:
    model = model_of(be(openai_server, "llguidance"), "llguidance")
    assert ask(model).text == PLAN
    assert renderings(openai_server) == ["llguidance", "llguidance"]


def test_the_probe_is_short_and_harmless(openai_server: Server) -> None:
    request = replace(ASKED, temperature=0.7, seed=5)
    assert ask(model_of(be(openai_server, "vllm")), request).text == PLAN
    probe, asked = (seen.body for seen in openai_server.requests)
    assert probe == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "Please say hello."}],
        "max_tokens": 512,
        "temperature": 0.0,
        "structured_outputs": {"grammar": constraining.PROBE.lark},
    }
    assert (asked["temperature"], asked["seed"], asked["max_tokens"]) == (0.7, 5, 900)


@pytest.mark.parametrize("by", ["grammar", "json"])
def test_twenty_first_requests_make_one_probe(by: ConstrainBy, openai_server: Server) -> None:
    be(openai_server, "vllm")
    openai_server.delay_s = 0.05

    async def many(model: Model) -> list[Completion]:
        request = replace(ASKED, constrain_by=by)
        return await asyncio.gather(*(model.complete(request) for _ in range(20)))

    assert len(run(model_of(openai_server), many)) == 20
    assert len(openai_server.requests) == 21
    assert openai_server.n_listings == 1


def test_a_probe_goes_on_where_the_first_who_asked_is_cancelled(openai_server: Server) -> None:
    be(openai_server, "vllm")
    openai_server.delay_s = 0.5

    async def main(model: Model) -> Completion:
        first = asyncio.create_task(model.complete(ASKED))
        while not openai_server.requests:  # noqa: ASYNC110  the server is in another thread
            await asyncio.sleep(0.01)
        second = asyncio.create_task(model.complete(ASKED))
        await asyncio.sleep(0.01)
        first.cancel()
        return await second

    assert run(model_of(openai_server), main).text == PLAN
    assert len(openai_server.requests) == 2


def test_verdicts_hold_in_the_next_event_loop(openai_server: Server) -> None:
    model = model_of(be(openai_server, "vllm"))
    for _ in range(3):
        ask(model)
    assert len(openai_server.requests) == 4


@pytest.mark.parametrize(
    ("fault", "kind"),
    [("429", "rate_limited"), ("503", "transport"), ("reset", "transport"), ("page", "malformed")],
)
def test_a_fault_in_the_probe_is_no_verdict(
    fault: str, kind: ModelErrorKind, openai_server: Server
) -> None:
    model = model_of(be(openai_server, "vllm"))
    openai_server.next(fault)
    fails(model, kind=kind)
    assert ask(model).text == PLAN
    assert len(openai_server.requests) == 3


def test_all_who_wait_hear_of_a_fault_at_once(openai_server: Server) -> None:
    be(openai_server, "vllm")
    openai_server.delay_s = 0.2
    openai_server.next(Canned(error("slow down"), 429, {"retry-after": "7"}))

    async def many(model: Model) -> list[object]:
        asked = (model.complete(ASKED) for _ in range(5))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    errors = run(model_of(openai_server), many)
    assert [getattr(error, "retry_after_s", None) for error in errors] == [7.0] * 5
    assert len({id(error) for error in errors}) == 5
    assert len(openai_server.requests) == 1


def test_a_probe_has_to_come_in_time(openai_server: Server) -> None:
    openai_server.next("hang")
    model = model_of(be(openai_server, "vllm"), "vllm", timeout_s=0.5)
    fails(model, kind="deadline")


@pytest.mark.parametrize("by", ["grammar", "json"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_ignored_is_found_out(kind: str, by: ConstrainBy, openai_server: Server) -> None:
    if by not in servers.load(kind).by:
        return
    model = model_of(be(openai_server, kind, "ignore"), kind)
    said = fails(model, replace(ASKED, constrain_by=by))
    assert "Hello! How can I help you?" in said
    assert "--constrain off" in said or "--server llamacpp" in said
    n_requests = len(openai_server.requests)
    assert fails(model, replace(ASKED, constrain_by=by)) == said
    assert len(openai_server.requests) == n_requests


@pytest.mark.parametrize("kind", LISTED)
def test_what_is_refused_is_quoted(kind: str, openai_server: Server) -> None:
    said = fails(model_of(be(openai_server, kind, "refuse")))
    assert "answered 400: The grammar is too complex" in said
    assert len(openai_server.requests) == len(servers.load(kind).renderings)


def test_advice_names_the_flag(openai_server: Server) -> None:
    said = fails(model_of(be(openai_server, "vllm", "ignore")))
    assert "--structured-outputs-config.backend guidance" in said
    said = fails(model_of(be(openai_server, "sglang", "refuse")))
    assert "--grammar-backend llguidance" in said


@pytest.mark.parametrize(
    "answer",
    [
        completion("Hello! " * 9, finish_reason="length"),
        completion(""),
        completion(None, refusal="I'd rather not"),
        completion(f"{SENTENCE}, and so do I"),
    ],
)
def test_other_replies_than_the_sentence_are_verdicts(
    answer: dict[str, object], openai_server: Server
) -> None:
    be(openai_server, "vllm").next(Canned(answer))
    assert ask(model_of(openai_server)).text == PLAN
    assert renderings(openai_server) == ["lark", "gbnf", "gbnf"]


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
    assert "is not JSON as 'plan' asks for" in fails(
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
    assert "'plan' has no form as JSON" in fails(model_of(be(openai_server, "vllm")), request)
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
    assert "without the tool" in fails(model_of(openai_server, "openai"))


def test_without_a_constraint_nothing_changes(openai_server: Server) -> None:
    request = replace(ASKED, constraint=None)
    for kind in (None, *servers.names()):
        ask(model_of(openai_server, kind), request)
    first = {
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"},
        ],
        "max_tokens": 900,
        "temperature": 0.0,
    }  # fmt: skip
    sent = {seen.data for seen in openai_server.requests}
    assert sent == {json.dumps(first, separators=(",", ":")).encode()}
    assert {seen.path for seen in openai_server.requests} == {"/v1/chat/completions"}
    assert openai_server.n_listings == 0


def test_grammars_of_plans_go_to_every_kind(openai_server: Server) -> None:
    from pearl.actions.library import load_library

    constraint = steps_constraint(load_library("quality"), max_steps=3)
    for kind in ("openai", "responses", "llguidance", *LISTED):
        model = model_of(be(openai_server, kind), kind)
        assert ask(model, replace(ASKED, constraint=constraint)).text == PLAN
