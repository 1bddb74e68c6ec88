"""A model whose calls end when the test says so, and calls of it that are started together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from pearl.errors import ModelError
from pearl.llm import Completion, Message, Request, Usage
from pearl.llm.middleware.rate import Limited
from pearl.llm.middleware.retry import Retrying
from tests.models import answer_task


def within_a_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """A test that runs in an event loop of its own."""

    @wraps(test)
    def run(*args: Any, **options: Any) -> None:
        asyncio.run(test(*args, **options))

    return run


def request(text: str = "who?") -> Request:
    return Request((Message("user", text),), answer_task(text, ""))


class Gated:
    """A model whose calls end when the test says so."""

    name = identity = "gated"
    window = None
    notice = ""
    reads_prompts = True

    def __init__(self) -> None:
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Future[Completion]] = {}

    async def complete(self, request: Request) -> Completion:
        self.begun.append(request.prompt)
        end = self._ends[request.prompt] = asyncio.get_running_loop().create_future()
        return await end

    def answer(self, prompt: str) -> None:
        self._ends[prompt].set_result(Completion("ok", self.name, Usage(100, 20)))

    def fail(self, prompt: str, error: ModelError) -> None:
        self._ends[prompt].set_exception(error)

    async def aclose(self) -> None:
        """Nothing to let go of."""


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def start(limited: Limited | Retrying, *prompts: str) -> list[asyncio.Task[Completion]]:
    return [asyncio.create_task(limited.complete(request(prompt))) for prompt in prompts]
