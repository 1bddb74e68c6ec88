"""Constrained requests: a server is asked for a form at once; one that refuses or ignores it is found by its first reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pearl.arguments import with_arguments
from pearl.dsl.decoding.constraint import Constraint
from pearl.errors import ModelError, ModelErrorKind, UsageError
from pearl.llm import Completion, ConstrainBy, Model, Request
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import servers
from pearl.llm.client import Client, ClientSettings
from pearl.llm.fallback import Level
from tests.llm.backends.asking import complete, failure
from tests.llm.backends.openai.kinds import ASKED, CONSTRAINT, JSON, KINDS, PLAN, Fake, Manner
from tests.server import FAULTS, Canned, Server, completion, error

KEY = "sk-very-secret-0123456789"

LISTED = ("vllm", "sglang", "llamacpp")
"""Kinds that take grammars and are recognised by their listings."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, openai_server: Server) -> None:
    openai_server.takes_constraints = True
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
    return [next((name for mark, name in ways.items() if mark in text), "") for text in texts]


def asked(server: Server, kind: str | None = None, n: int = 1, **settings: Any) -> list[Any]:
    """The levels at which a command gets the replies to so many requests, or the kinds of their errors."""
    client = Client(
        ClientSettings("openai:test-model", base_url=server.url, server=kind, **settings)
    )

    def flaw(text: str) -> str | None:
        return None if text in (PLAN, "the plan") else "it is no plan"

    async def main() -> list[Any]:
        levels: list[Any] = []
        for i in range(n):

            async def ask(level: Level, i: int = i) -> Completion:
                request = replace(ASKED, constrain_by=level or "json", seed=i)
                return await client.complete(
                    request if level else replace(request, constraint=None)
                )

            try:
                levels.append((await client.plan_fallback.ask(ask, lambda *_: None, flaw))[1])
            except ModelError as error:
                levels.append(error.kind)
        await client.aclose()
        return levels

    return asyncio.run(main())


@pytest.mark.parametrize("owned_by", ["of its kind", None, "openai", "unlisted"])
@pytest.mark.parametrize("kind", LISTED)
def test_a_server_obeys_at_once_and_lists_its_models_once(
    kind: str, owned_by: str | None, openai_server: Server
) -> None:
    """One whose listing does not tell its kind gets the grammar in the fields of every kind."""
    openai_server.owned_by = KINDS[kind].owned_by if owned_by == "of its kind" else owned_by
    openai_server.models = None if owned_by == "unlisted" else ["test-model"]
    openai_server.answer = Fake(kind)
    model = model_of(openai_server)
    assert model.constrains.by == {"grammar", "json"}
    assert [complete(model, ASKED).text for _ in range(2)] == [PLAN, PLAN]
    assert openai_server.n_listings == 1
    assert len(openai_server.requests) == 2


@pytest.mark.parametrize(
    ("kind", "manner", "notations"),
    [
        ("vllm", "refuse lark", ["lark", "gbnf", "gbnf"]),
        ("sglang", "refuse lark", ["lark", "gbnf", "gbnf"]),
        ("sglang", "obey", ["lark", "lark"]),
        ("llamacpp", "obey", ["gbnf", "gbnf"]),  # other notations crash it
    ],
)
def test_the_first_rendering_that_is_taken_is_kept(
    kind: str, manner: Manner, notations: list[str], openai_server: Server
) -> None:
    openai_server.answer = Fake(kind, manner)
    model = model_of(openai_server, kind)
    assert [complete(model, ASKED).text for _ in range(2)] == [PLAN, PLAN]
    assert renderings(openai_server) == notations
    assert asked(openai_server, kind) == ["grammar"]
    openai_server.forget()
    assert asked(openai_server, kind) == ["grammar"]  # a later command
    assert renderings(openai_server) == notations[-1:]


@pytest.mark.parametrize("by", ["grammar", "json"])
@pytest.mark.parametrize("manner", ["ignore", "refuse"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_server_that_does_not_obey_is_found_by_its_first_reply(
    kind: str, manner: Manner, by: ConstrainBy, openai_server: Server
) -> None:
    """And is not asked for a form again, in this command and for a day."""
    if by not in servers.load(kind).by:
        assert "takes no grammar" in refusal(model_of(openai_server, kind))
        assert openai_server.requests == []
        return
    openai_server.answer = Fake(kind, manner)
    text = (
        refusal(model_of(openai_server, kind), JSON) if by == "json" or manner == "refuse" else ""
    )
    assert not text or with_arguments(servers.load(kind).help) in text
    openai_server.forget()
    assert asked(openai_server, kind, 3)[1:] == [None, None]
    n_held = sum(
        "plan" in str(seen.body.get("grammar", seen.body)) for seen in openai_server.requests
    )
    assert n_held <= len(servers.load(kind).renderings) + 2
    openai_server.forget()
    assert asked(openai_server, kind, 2) == [None, None]
    assert len(openai_server.requests) == 2


def test_a_refusal_that_is_not_of_the_form_costs_no_form(openai_server: Server) -> None:
    """Some servers refuse a form without naming it; what is refused without it as well is another matter."""
    openai_server.next(*[Canned(error("unexpected token"), 400)] * 2)
    openai_server.answer = Fake("openai")
    assert asked(openai_server, "openai", 2) == ["bad_request", "json"]
    openai_server.answer = Fake("ollama", "ignore")  # another server at this address
    for n_held in (1, 1, 0):  # the first one takes back what was known
        openai_server.forget()
        assert asked(openai_server, "openai", 2) == [None, None]
        held = [seen for seen in openai_server.requests if "response_format" in seen.body]
        assert len(held) == n_held


def test_a_form_that_is_filled_with_blanks_is_ruled_out(openai_server: Server) -> None:
    openai_server.next(Canned(completion("")))
    openai_server.answer = Fake("openai", "ignore", PLAN)
    assert asked(openai_server, "openai", 2) == [None, None]


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


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("no JSON", "unconstrained"),
        ("[]", "unconstrained"),
        ('{"plan": 5}', "unconstrained"),
        ('{"plan": "cut', "unconstrained"),
        ("[" * 100_000, "unconstrained"),
        ('{"plan": "a", "plan": "b"}', "unconstrained"),
        ("I'm sorry, but I can't help with that.", "unconstrained"),
        ('<think>hm {"plan": "a"}', "truncated"),
        ('{"plan": " "}', "empty"),
        ('<think>hm</think>{"plan": "the plan"}', None),
        ('{"plan": "a\\ud800b"}', None),
    ],
)
def test_a_reply_in_json_is_read_without_its_reasoning(
    reply: str, text: ModelErrorKind | None, vllm: Server
) -> None:
    vllm.answer = Fake("vllm", json=reply)
    if text is not None:
        refusal(model_of(vllm), JSON, kind=text)
    else:
        assert complete(model_of(vllm), JSON).text in ("the plan", "a\ufffdb")


def test_a_language_without_a_json_form_is_not_asked_for_as_json(vllm: Server) -> None:
    request = replace(JSON, constraint=replace(CONSTRAINT, json_form=None))
    assert "'plan' has no JSON form" in refusal(model_of(vllm), request)
    assert vllm.requests == []


@pytest.mark.parametrize(
    "grammar", ['start: "a" b', 'start: a ~ 2 "b"', 'start: "a" | /[/\n', "start: \n\n%import x"]
)
def test_a_broken_grammar_is_not_sent(grammar: str, vllm: Server) -> None:
    text = refusal(model_of(vllm), replace(ASKED, constraint=Constraint("odd", grammar)))
    assert "the grammar of 'odd' is not sent" in text
    assert vllm.requests == []


def test_the_key_is_in_no_message(vllm: Server) -> None:
    for reply in (f"Hello {KEY}", "Hello " * 8 + KEY):
        vllm.next(Canned(completion(reply)))
        assert "very" not in refusal(model_of(vllm), JSON)
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
    openai_server.answer = lambda seen: Canned(completion(None, **fields(text)))
    model = model_of(openai_server, "generic")
    if is_read:
        assert complete(model, JSON).text == "a"
    else:
        assert "the server put text into" in refusal(model, JSON)
