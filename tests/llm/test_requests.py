"""How many requests a first question takes, of the kinds of servers that `--model` names."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pearl.actions.library import load_library
from pearl.documents.document import Document
from pearl.llm.backends import providers
from pearl.llm.backends.openai import servers
from pearl.pipeline import Pearl
from tests.server import Canned, Seen, Server, completion

LIBRARY = load_library("quality")
NAMES = [parameter.name for parameter in LIBRARY["FIND_REASON"].parameters]


def step(output: str, action: str, **arguments: Any) -> dict[str, Any]:
    return {"output": output, "action": action, "arguments": arguments, "purpose": "Find it"}


PLAN = [
    step(name, "FIND_REASON", **dict(zip(NAMES, ({"output": "CTX"}, f"the {what}"), strict=True)))
    for name, what in (("a", "boat"), ("b", "sail"))
]
TEXT = """New actions:
- None

1. a = FIND_REASON(CTX, "the boat") : Find it
2. b = FIND_REASON(CTX, "the sail") : Find it"""


def obeying(seen: Seen) -> Canned:
    """As a server that holds replies to a schema: a plan of two steps, two results, and a composed answer."""
    schema = seen.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    if "steps" in schema.get("properties", {}):
        return Canned(completion(json.dumps({"new_actions": [], "steps": PLAN})))
    return ignoring(seen)


def ignoring(seen: Seen) -> Canned:
    """The same of a server that takes a schema and does not hold to it."""
    if "Question:" in seen.prompt:
        return Canned(completion(TEXT))
    if "<text>" in seen.prompt:
        return Canned(completion('{"answer": "It leaked.", "quote": "It leaked."}'))
    return Canned(completion("It leaked [1]."))


def asked(backend: str, server: Server) -> list[int]:
    """Listings and requests of a first and a second question."""
    counts: list[int] = []

    async def main(question: str) -> None:
        settings: dict[str, Any] = {"base_url": server.url, "api_key_env": "", "check": "off"}
        document = Document(f"It leaked. Ada sold both. {question}")
        async with Pearl(f"{backend}:unheard-of", library=LIBRARY, **settings) as pearl:
            answer = await pearl.ask(question, document)
        assert "It leaked" in answer.text

    for question in ("Why were the boat and the sail sold?", "Why did Ada sell boat and sail?"):
        n_before = server.n_listings
        server.forget()
        asyncio.run(main(question))
        assert server.n_listings - n_before <= 1
        posted = [seen for seen in server.requests if seen.path.endswith("/completions")]
        counts += [server.n_listings - n_before + len(posted)]
    return counts


BY_SCHEMA = {
    each.server: name
    for name, each in providers().items()
    if each.server != "anthropic" and not servers.load(each.server).renderings
}
"""A provider for each kind of server that takes no grammar."""


@pytest.mark.parametrize("backend", sorted({*BY_SCHEMA.values(), "ollama"}))
def test_a_first_question_of_two_steps_takes_five_requests(
    backend: str, openai_server: Server
) -> None:
    """A listing at most, the plan, two steps and their composition; no probe."""
    openai_server.takes_constraints, openai_server.answer = True, obeying
    assert asked(backend, openai_server)[0] <= 5


def test_a_server_that_ignores_schemas_costs_one_request_once(openai_server: Server) -> None:
    openai_server.takes_constraints, openai_server.answer = True, ignoring
    first, second = asked("groq", openai_server)
    assert first <= 6
    assert second <= 5


def test_models_are_listed_once_where_nothing_may_be_stored(
    openai_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in private runs; the window and the kind of the server are both in its listing."""
    monkeypatch.setattr("pearl.llm.backends.openai.sessions.content_cache", lambda name: None)
    openai_server.takes_constraints, openai_server.answer = True, ignoring
    asked("openai", openai_server)
    assert openai_server.n_listings == 2  # one for each question


def misshapen(seen: Seen) -> Canned:
    """As a server that holds replies to short schemas, but not to the long one of a plan."""
    if "response_format" in seen.body and "Question:" in seen.prompt:
        return Canned(completion(json.dumps({"new_actions": [], "steps": [{"output": "a"}]})))
    return ignoring(seen)


@pytest.mark.parametrize(("answer", "is_held"), [(misshapen, True), (ignoring, False)])
def test_a_plan_outside_its_form_leaves_steps_in_theirs(
    answer: Any, is_held: bool, openai_server: Server
) -> None:
    """JSON of another shape says something of plans alone; a reply that is no JSON shows that forms are ignored."""
    openai_server.takes_constraints, openai_server.answer = True, answer
    asked("groq", openai_server)
    sent = [seen for seen in openai_server.requests if seen.path.endswith("/completions")]
    assert {"response_format" in seen.body for seen in sent if "Question:" in seen.prompt} == {
        False
    }
    assert {"response_format" in seen.body for seen in sent if "<text>" in seen.prompt} == {is_held}
