"""Every attempt of a call over the wire is told once it has ended, and nothing else is."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from pearl.errors import ModelError
from pearl.llm import Message, Request
from pearl.llm.client import Client, ClientSettings
from pearl.llm.progress import CallAttempt, News, listening
from tests.models import MemoryReplies, answer_task
from tests.server import Server

REQUEST = Request((Message("user", "who?"),), answer_task("who?", ""), temperature=0.5, seed=7)


def attempts(client: Client, n: int = 1) -> list[CallAttempt]:
    """What is told of the attempts of `n` equal calls, one after the other."""
    told: list[News] = []

    async def ask() -> None:
        with listening(told.append), suppress(ModelError):
            for _ in range(n):
                await client.complete(REQUEST)
        await client.aclose()

    asyncio.run(ask())
    return [each for each in told if isinstance(each, CallAttempt)]


def of(server: Server, **settings: object) -> Client:
    named = ClientSettings("openai:m", base_url=server.url, first_wait_s=0.01, **settings)  # type: ignore[arg-type]
    return Client(named, replies=MemoryReplies())


def test_retries_are_numbered_and_only_the_last_has_the_reply(openai_server: Server) -> None:
    openai_server.on("", "Ada")
    openai_server.next("500", "reset")
    found = attempts(of(openai_server))
    assert [(each.number, each.error, each.reply) for each in found] == [
        (0, "transport", ""), (1, "transport", ""), (2, None, "Ada"),
    ]  # fmt: skip
    assert len(openai_server.requests) == 3
    assert found[-1].usage.n_input_tokens == 100
    assert found[-1].completion is not None
    assert all(each.model == "openai:m" and openai_server.url in each.identity for each in found)
    assert all(each.duration_s >= 0 for each in found)


def test_a_cached_reply_is_no_attempt(openai_server: Server) -> None:
    openai_server.on("", "Ada")
    assert [each.number for each in attempts(of(openai_server), n=3)] == [0]


def test_a_call_that_is_cancelled_was_an_attempt(openai_server: Server) -> None:
    openai_server.next("hang")
    told: list[News] = []

    async def ask() -> None:
        client = of(openai_server)
        with listening(told.append):
            call = asyncio.create_task(client.complete(REQUEST))
        while not openai_server.requests:  # noqa: ASYNC110  # a thread has them
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await client.aclose()

    asyncio.run(ask())
    (attempt,) = (each for each in told if isinstance(each, CallAttempt))
    assert attempt.error == "cancelled"
