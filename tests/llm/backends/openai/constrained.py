"""Requests that are to be held to a constraint, and servers of every kind that take one or do not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from pearl.errors import ModelError, ModelErrorKind
from pearl.llm import Completion, Message, Model, Request
from pearl.llm.backends import ModelSettings, create_model
from tests.llm.backends.openai.kinds import CONSTRAINT, KINDS, Fake, Manner
from tests.models import answer_task
from tests.server import Server

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
# The probe


def renderings(server: Server) -> list[str]:
    """Notations that a server was asked in, one a request."""
    notations = []
    for seen in server.requests:
        text = seen.data.decode()
        ways = {"%llguidance": "llguidance", "::=": "gbnf", "start: ": "lark"}
        notations.append(next(name for mark, name in ways.items() if mark in text))
    return notations
