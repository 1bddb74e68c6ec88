"""Calls that wait for each other: who is asked, who joins, who goes directly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pearl.contrib.batches import batches_of
from pearl.contrib.batches.batching import Batched, BatchProgress, Pace, PendingBatches
from pearl.dsl.decoding.constraint import Constraint
from pearl.errors import PausedError
from pearl.llm import Message, Request
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.openai import create
from tests.batch_server import BatchServer, serving_batches
from tests.models import answer_task

PACE = Pace(quiet_s=0.05, poll_s=0.01, longest_poll_s=0.02)


@pytest.fixture
def server() -> Iterator[BatchServer]:
    """A server with a Batch API."""
    with serving_batches() as server:
        yield server


def asking(question: str) -> Request:
    return Request((Message("user", question),), answer_task(question, "Ada."))


def using(server: BatchServer, work: Callable[[Batched], Awaitable[Any]], **options: Any) -> None:
    async def main() -> None:
        model = create("test-model", ModelSettings(server.url, server="vllm"))
        batched = Batched(model, batches_of(model), **{"pace": PACE, **options})
        try:
            await work(batched)
        finally:
            await batched.aclose()
            await model.aclose()

    asyncio.run(main())


async def submitted(server: BatchServer) -> None:
    while not server.jobs:  # noqa: ASYNC110 - the server is in another thread
        await asyncio.sleep(0.01)


def test_a_cancelled_call_is_not_submitted(server: BatchServer) -> None:
    async def work(batched: Batched) -> None:
        first, second = (asyncio.create_task(batched.complete(asking(q))) for q in ("a?", "b?"))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).text == "ok"

    using(server, work)
    (row,) = server.jobs[0].rows
    assert row["body"]["messages"][0]["content"] == "b?"


def test_cancelling_one_of_two_equal_calls_keeps_the_other(server: BatchServer) -> None:
    async def work(batched: Batched) -> None:
        first, second = (asyncio.create_task(batched.complete(asking("a?"))) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await asyncio.wait_for(second, 60)).text == "ok"

    using(server, work)
    assert len(server.submitted) == 1


def test_new_batch_is_asked_for_after_a_while(server: BatchServer) -> None:
    """Right after its creation some servers do not find it, and it would be submitted again."""

    async def work(batched: Batched) -> None:
        call = asyncio.create_task(batched.complete(asking("a?")))
        await submitted(server)
        await asyncio.sleep(0.2)
        call.cancel()

    using(server, work, pace=replace(PACE, poll_s=3600.0))
    assert [job.n_looks for job in server.jobs] == [0]


@pytest.mark.parametrize(("address", "name"), [("s", "other"), ("other", "m")])
def test_a_record_is_that_of_one_model_at_one_server(
    tmp_path: Path, address: str, name: str
) -> None:
    record = PendingBatches(tmp_path, "s", "m").add("file-0", {b"k" * 32: asking("a?")})
    assert not PendingBatches(tmp_path, address, name).take(record.keys)
    assert PendingBatches(tmp_path, "s", "m").take(record.keys) == [record]


def test_an_equal_call_joins_a_submitted_one(server: BatchServer) -> None:
    async def work(batched: Batched) -> None:
        server.is_held = True
        first = asyncio.create_task(batched.complete(asking("a?")))
        await submitted(server)
        first.cancel()
        again = asyncio.create_task(batched.complete(asking("a?")))
        await asyncio.sleep(0.2)
        server.is_held = False
        assert (await again).text == "ok"

    using(server, work)
    assert len(server.submitted) == 1


def test_a_later_call_joins_the_batch_of_an_earlier_process(
    server: BatchServer, tmp_path: Path
) -> None:
    async def ask(batched: Batched, *questions: str) -> list[asyncio.Task[Any]]:
        calls = [asyncio.create_task(batched.complete(asking(q))) for q in questions]
        await submitted(server)
        await asyncio.sleep(0.2)
        return calls

    async def first(batched: Batched) -> None:
        server.is_held = True
        for call in await ask(batched, "a?", "b?"):
            call.cancel()

    async def second(batched: Batched) -> None:
        calls = [*await ask(batched, "a?"), *await ask(batched, "b?")]
        server.is_held = False
        assert [(await call).text for call in calls] == ["ok", "ok"]

    using(server, first, folder=tmp_path)
    using(server, second, folder=tmp_path)
    assert [len(job.rows) for job in server.jobs] == [2]


def test_a_constraint_goes_directly(server: BatchServer) -> None:
    server.takes_constraints = True
    request = replace(asking("a?"), constraint=Constraint("yes", 'start: "ok"\n'))

    async def work(batched: Batched) -> None:
        assert (await batched.complete(request)).text == "ok"

    using(server, work)
    assert not server.jobs
    assert server.requests


def test_leaving_ends_what_waits_and_what_comes(server: BatchServer) -> None:
    async def work(batched: Batched) -> None:
        server.is_held = True
        waiting = asyncio.create_task(batched.complete(asking("a?")))
        await submitted(server)
        await asyncio.sleep(0.1)
        batched.abandon()
        with pytest.raises(PausedError, match="1 batch still running"):
            await waiting
        with pytest.raises(PausedError):
            await batched.complete(asking("b?"))

    told: list[BatchProgress] = []
    using(server, work, on_progress=told.append)
    assert len(server.jobs) == 1
    assert [(progress.n_batches, progress.is_left) for progress in told] == [(1, False), (1, True)]
