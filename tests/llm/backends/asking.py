"""Requests to a model, which is closed after them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from msgspec.structs import replace

from pearl.errors import ModelError, ModelErrorKind
from pearl.llm import Completion, Message, Model, Request
from tests.models import answer_task

M = TypeVar("M", bound=Model)
T = TypeVar("T")

REQUEST = Request(
    (Message("system", "Be brief."), Message("user", "Who?")), answer_task("Who?", "")
)


READ = Request(
    (
        Message("system", "Be brief."),
        Message("user", "<text>\nAda\ud83d\ude00 sold it.\n</text>\n\nWho?"),
    ),
    replace(answer_task("Who?", ""), document="Ada\ud83d\ude00 sold it."),
    n_later=lambda: 1,
)
"""A request whose prefix is a document."""


def used(model: M, use: Callable[[M], Awaitable[T]]) -> T:
    """The result of a use of a model in an event loop of its own."""

    async def main() -> T:
        try:
            return await use(model)
        finally:
            await model.aclose()

    return asyncio.run(main())


def complete(model: Model, request: Request = REQUEST) -> Completion:
    """The reply to one request."""
    return used(model, lambda model: model.complete(request))


def failure(model: Model, kind: ModelErrorKind, request: Request = REQUEST) -> ModelError:
    """The error of one request, which is of a kind and has three lines at most."""
    with pytest.raises(ModelError) as caught:
        complete(model, request)
    assert caught.value.kind == kind, caught.value
    assert len(str(caught.value).splitlines()) <= 3
    return caught.value
