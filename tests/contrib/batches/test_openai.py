"""The wire side of batches: files up, files down, and what comes in place of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from pearl.contrib.batches import Batch, Batches, Submission, batches_of
from pearl.errors import ModelError
from pearl.llm import Completion, Message, Request
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.openai import create
from tests.batch_server import BatchServer, answered, serving_batches
from tests.llm.backends import asking
from tests.server import completion, error

Result = TypeVar("Result")

REQUEST = replace(asking.REQUEST, messages=(Message("user", "Who?"),))
KEY = bytes(range(32))


@pytest.fixture
def server() -> Iterator[BatchServer]:
    """A server with a Batch API."""
    with serving_batches() as server:
        yield server


def using(
    server: BatchServer, work: Callable[[Batches], Awaitable[Result]], timeout_s: float = 30.0
) -> Result:
    model = create("test-model", ModelSettings(server.url, timeout_s=timeout_s))
    return asking.used(model, lambda model: work(batches_of(model)))


def submission(file_id: str) -> Submission:
    return Submission(file_id=file_id, keys=frozenset())


async def carried_out(
    batches: Batches, *keys: bytes, asked: Mapping[bytes, Request] = {}
) -> dict[bytes, Completion | ModelError]:
    lines = [batches.line(key, REQUEST) for key in keys]
    batch = await batches.create(submission(await batches.upload(lines)), lines)
    while not batch.is_over:
        batch = await batches.retrieve(batch.id) or batch
    return await batches.results(batch, asked) or {}


def test_a_line_holds_a_request(server: BatchServer) -> None:
    using(server, lambda batches: carried_out(batches, KEY))
    (row,) = server.jobs[0].rows
    assert row == {
        "custom_id": KEY.hex(),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": "test-model",
            "messages": [{"role": "user", "content": "Who?"}],
            "temperature": 0.0,
        },
    }


def test_refused_line_that_quotes_its_request_keeps_the_temperature(server: BatchServer) -> None:
    refused = error("the prompt is too long", input={"temperature": 0.0})
    server.line = lambda row: answered(refused, 400)

    async def work(batches: Batches) -> tuple[Completion | ModelError, bytes]:
        return (await carried_out(batches, KEY))[KEY], batches.line(KEY, REQUEST)

    result, line = using(server, work)
    assert getattr(result, "kind", None) == "bad_request"
    assert b'"temperature"' in line


CALLS: dict[str, Callable[[Batches], Awaitable[Any]]] = {
    "POST /files": lambda batches: batches.upload([b"{}"]),
    "POST /batches": lambda batches: batches.create(submission("file-0"), []),
    "GET /batches/": lambda batches: batches.retrieve("batch_0"),
    "GET /batches": lambda batches: batches.find(submission("file-0")),
    "GET /files/": lambda batches: batches.results(
        Batch("batch_0", "completed", "completed", places=("file-0",)), {}
    ),
}
UNREADABLE = ("half JSON", "page as JSON", "null", "list", "number", "deep", "no body", "error")


async def failure(batches: Batches, call: str) -> ModelError:
    with pytest.raises(ModelError) as failed:
        await CALLS[call](batches)
    assert len(str(failed.value).splitlines()) <= 3
    return failed.value


@pytest.mark.parametrize("call", CALLS)
def test_every_fault_is_an_error_of_three_lines(server: BatchServer, call: str) -> None:
    kinds = {
        "401": "auth", "429": "rate_limited", "500": "transport", "502": "transport",
        "quota": "quota",
    }  # fmt: skip
    if call.startswith("POST"):  # aiohttp repeats a GET whose connection has ended
        kinds["reset"] = "transport"
    server.fail(call, *kinds)

    async def work(batches: Batches) -> list[str]:
        return [(await failure(batches, call)).kind for _ in kinds]

    assert using(server, work) == list(kinds.values())
    server.fail(call, "hang")
    hanging = using(server, lambda batches: failure(batches, call), timeout_s=0.2)
    assert hanging.kind == "deadline"


@pytest.mark.parametrize("call", [call for call in CALLS if call != "GET /files/"])
def test_an_invalid_description_is_malformed(server: BatchServer, call: str) -> None:
    server.fail(call, *UNREADABLE)

    async def work(batches: Batches) -> set[str]:
        return {(await failure(batches, call)).kind for _ in UNREADABLE}

    assert using(server, work) == {"malformed"}


@pytest.mark.slow
def test_a_large_output_is_read(server: BatchServer) -> None:
    text = " ".join(f"reply {i * i}" for i in range(5_000))
    server.line = lambda row: answered(completion(text))
    keys = [i.to_bytes(32, "big") for i in range(300)]
    found = using(server, lambda batches: carried_out(batches, *keys))
    assert [r.text for r in found.values() if isinstance(r, Completion)] == [text] * 300
