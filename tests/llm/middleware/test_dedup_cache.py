"""Identical calls: made once, shared as it should be, and never an error for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.signatures import Action, Parameter
from pearl.errors import ModelError
from pearl.llm import ChooseTask, Completion, ItemsTask, Message, Request, Usage
from pearl.llm.middleware.caching import CacheWriter, DedupCache, ItemCache, request_key
from tests.llm.middleware.gated import within_a_loop
from tests.models import Acting, MemoryReplies

TASK = ChooseTask("Who?", ("I", "you"))
REQUEST = Request((Message("system", "read"), Message("user", "who?")), TASK)

ITEMS = ItemsTask(
    "colour", Action("MAP", (Parameter("ROWS"), Parameter("X"))), (("X", "its colour"),), ("an egg", "a beet"), "line"
)  # fmt: skip


class Waiting:
    """Replies when it may, and fails so many times before."""

    def __init__(self, n_failures: int = 0) -> None:
        self.may_end = asyncio.Event()
        self.n_begun = self.n_cancelled = 0
        self._n_failures = n_failures

    async def __call__(self, request: Request) -> str:
        self.n_begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        if self.n_begun <= self._n_failures:
            raise ModelError("down", kind="transport", usage=Usage(9_000, 1))
        return "yes"


async def asking(model: DedupCache, n: int) -> list[asyncio.Task[Completion]]:
    tasks = [asyncio.create_task(model.complete(REQUEST)) for _ in range(n)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


@within_a_loop
async def test_concurrent_equal_calls_are_sent_and_paid_once() -> None:
    act = Waiting()
    model = DedupCache(Acting(act))
    tasks = await asking(model, 3)
    act.may_end.set()
    found = await asyncio.gather(*tasks)
    assert act.n_begun == 1
    assert [each.text for each in found] == ["yes"] * 3
    assert [each.is_remembered for each in found] == [False, True, True]
    assert sum((each.usage for each in found), Usage()) == Usage(10, 1, 0)
    await model.complete(REQUEST)
    assert act.n_begun == 2  # nothing is kept without a place to keep it


@within_a_loop
async def test_a_stored_reply_is_not_requested_again() -> None:
    act, kept = Waiting(), MemoryReplies()
    act.may_end.set()
    first = await DedupCache(CacheWriter(Acting(act), kept), kept).complete(REQUEST)
    again = await DedupCache(CacheWriter(Acting(act), kept), kept).complete(REQUEST)
    assert act.n_begun == 1
    assert (first.is_remembered, again.is_remembered) == (False, True)
    assert again == replace(first, usage=Usage(), is_remembered=True)
    assert list(kept.replies.values()) == [first]


@within_a_loop
async def test_a_stored_reply_that_is_unusable_is_requested_again() -> None:
    act, kept = Waiting(), MemoryReplies()
    act.may_end.set()
    first = await DedupCache(CacheWriter(Acting(act), kept), kept).complete(REQUEST)
    kept.replies = {key: replace(first, text=" ") for key in kept.replies}
    again = await DedupCache(CacheWriter(Acting(act), kept), kept).complete(REQUEST)
    assert (again.text, act.n_begun) == ("yes", 2)


@within_a_loop
async def test_an_error_is_shared_by_concurrent_callers_only() -> None:
    act, kept = Waiting(n_failures=1), MemoryReplies()
    model = DedupCache(CacheWriter(Acting(act), kept), kept)
    tasks = await asking(model, 2)
    act.may_end.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert act.n_begun == 1
    # What it took is counted once, whoever waited for it.
    assert sorted(each.usage is None for each in found) == [False, True]
    assert {each.message for each in found} == {"down"}
    assert not kept.replies
    assert (await model.complete(REQUEST)).text == "yes"


@within_a_loop
async def test_cancelling_one_caller_keeps_the_call() -> None:
    act = Waiting()
    tasks = await asking(DedupCache(Acting(act)), 3)
    tasks[0].cancel()
    await asyncio.sleep(0)
    act.may_end.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert [each.is_remembered for each in found[1:]] == [False, True]  # type: ignore[union-attr]
    assert act.n_cancelled == 0


@within_a_loop
async def test_cancelling_all_callers_cancels_the_call() -> None:
    before = asyncio.all_tasks()
    act = Waiting()
    model = DedupCache(Acting(act))
    for task in await asking(model, 2):
        task.cancel()
    await asyncio.sleep(0)
    (later,) = await asking(model, 1)
    act.may_end.set()
    assert (await later).text == "yes"
    assert (act.n_begun, act.n_cancelled) == (2, 1)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    "change",
    [
        {"messages": (Message("system", "readw"), Message("user", "ho?"))},
        {"messages": (Message("user", "read"), Message("user", "who?"))},
        {"max_output_tokens": 5},
        {"top_p": 0.5},
        {"temperature": 0.5},
        {"seed": 0},
        {"constraint": Constraint("yes", 'start: "yes"')},
    ],
)
def test_the_key_covers_every_field_that_changes_the_reply(change: dict[str, Any]) -> None:
    assert request_key(replace(REQUEST, **change), "m") != request_key(REQUEST, "m")


def test_the_key_is_of_the_call_and_not_of_the_step() -> None:
    same = replace(REQUEST, task=replace(TASK, question="Which?"))
    assert request_key(same, "m") == request_key(REQUEST, "m")
    assert request_key(REQUEST, "n") != request_key(REQUEST, "m")
    held = replace(REQUEST, constraint=Constraint("yes", 'start: "yes"'))
    assert request_key(replace(held, constrain_by="line"), "m") != request_key(held, "m")


@pytest.mark.parametrize("known", [None, Completion("yes, from another process", "acting")])
def test_a_call_is_claimed_before_it_is_sent(known: Completion | None) -> None:
    claims: list[str] = []

    @asynccontextmanager
    async def claimed(key: bytes) -> AsyncIterator[Completion | None]:
        claims.append("begun")
        yield known
        claims.append("ended")

    async def reply(request: Request) -> str:
        claims.append("sent")
        return "yes"

    found = asyncio.run(DedupCache(Acting(reply), claimed=claimed).complete(REQUEST))
    assert found.text == (known.text if known else "yes")
    assert claims == ["begun", *([] if known else ["sent"]), "ended"]
    assert found.is_remembered == (known is not None)


@within_a_loop
async def test_replies_about_items_are_found_by_their_text_and_outlive_the_process() -> None:
    kept = MemoryReplies()
    one = ItemCache("model", kept)
    said = {"an egg": "white", "a beet": ""}
    await one.keep(ITEMS, said, "a document", "model")
    assert one.of_batch(ITEMS) == said
    for cache in (one, ItemCache("model", kept)):
        assert await cache.find(ITEMS, ["a beet", "a date", "an egg"], "a document") == said
        assert not await cache.find(ITEMS, ["an egg"], "another document")
    assert not ItemCache("model", kept).of_batch(ITEMS)
    # What a model says of an item alone does not depend on the others of its document.
    alone = replace(ITEMS, items=("a date",))
    await one.keep(alone, {"a date": "brown"}, "a document", "model")
    other = ItemCache("model", kept)
    assert await other.find(ITEMS, ["a date"], "another document") == {"a date": "brown"}
