"""Servers are probed: once, briefly, and what they said is kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pearl.errors import ModelErrorKind
from pearl.llm import Completion, ConstrainBy, Model
from pearl.llm.backends.openai import constraining, servers
from tests.llm.backends.openai.constrained import (
    ASKED,
    KEY,
    LISTED,
    ask,
    be,
    fails,
    model_of,
    renderings,
    run,
)
from tests.llm.backends.openai.kinds import KINDS, PLAN, SENTENCE
from tests.server import Canned, Server, completion, error


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_the_first_rendering_that_is_obeyed_is_kept(kind: str, openai_server: Server) -> None:
    model = model_of(be(openai_server, kind, "refuse lark"))
    assert [ask(model).text for _ in range(2)] == [PLAN, PLAN]
    assert renderings(openai_server) == ["lark", "gbnf", "gbnf", "gbnf"]


def test_llamacpp_is_never_sent_what_it_aborts_at(openai_server: Server) -> None:
    model = model_of(be(openai_server, "llamacpp"))
    assert ask(model).text == PLAN
    assert renderings(openai_server) == ["gbnf", "gbnf"]


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
