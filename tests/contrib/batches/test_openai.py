"""The wire side of batches: files up, files down, and what comes in place of them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from pearl.contrib.batches import Batch, Batches, Submission, batches_of
from pearl.errors import ModelError
from pearl.llm import Completion, Message, Request, Usage
from pearl.llm.backends import ModelSettings
from pearl.llm.backends.openai import OpenAIModel, create
from pearl.llm.backends.openai.endpoint import Endpoint
from tests.batch_server import BatchServer, answered, serving_batches
from tests.llm.backends import asking
from tests.llm.backends.openai.test_replies import Outcome, is_of
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


def test_refused_line_that_quotes_its_request_keeps_the_temperature(server: BatchServer) -> None:
    refused = error("the prompt is too long", input={"temperature": 0.0})
    server.line = lambda row: answered(refused, 400)

    async def work(batches: Batches) -> tuple[Completion | ModelError, bytes]:
        return (await carried_out(batches, KEY))[KEY], batches.line(KEY, REQUEST)

    result, line = using(server, work)
    assert getattr(result, "kind", None) == "bad_request"
    assert b'"temperature"' in line


def test_a_large_output_is_read(server: BatchServer) -> None:
    text = "reply " * 99_999 + "end"
    server.line = lambda row: answered(completion(text))
    keys = [bytes([i]) * 32 for i in range(8)]  # more than 4 MiB, the limit of a reply
    found = using(server, lambda batches: carried_out(batches, *keys))
    assert [getattr(found[key], "text", found[key]) for key in keys] == [text] * 8


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
    if call.startswith("POST"):  # a GET whose connection has ended is repeated
        kinds["reset"] = "transport"
    server.fail(call, *kinds)

    async def work(batches: Batches) -> list[str]:
        return [(await failure(batches, call)).kind for _ in kinds]

    assert using(server, work) == list(kinds.values())
    if call.startswith("POST"):
        server.fail(call, "404")
        said = using(server, lambda batches: failure(batches, call)).message
        assert "has no Batch API (404)" in said
    server.fail(call, "hang")
    hanging = using(server, lambda batches: failure(batches, call), timeout_s=0.2)
    assert hanging.kind == "deadline"


@pytest.mark.parametrize("call", [call for call in CALLS if call != "GET /files/"])
def test_an_invalid_description_is_malformed(server: BatchServer, call: str) -> None:
    server.fail(call, *UNREADABLE)

    async def work(batches: Batches) -> set[str]:
        return {(await failure(batches, call)).kind for _ in UNREADABLE}

    assert using(server, work) == {"malformed"}


def line(row: Mapping[str, Any]) -> Completion | ModelError:
    key = bytes(32)
    data = json.dumps({"custom_id": key.hex(), **row}).encode()
    batches = batches_of(OpenAIModel(Endpoint("http://localhost/v1", "m", ""), 1.0, None))
    (found,) = dict(batches._read(data, {key: REQUEST})).values()
    return found


LINES: list[tuple[str, Any, Outcome]] = [
    ("ok", answered(completion("ok")), "=ok"),
    ("400", answered(error("no"), 400), "bad_request"),
    ("429", answered(error("no"), 429), "rate_limited"),
    ("500", answered(error("no"), 500), "transport"),
    ("200 and no reply", answered(None), "malformed"),
    ("cut", answered(completion("o", finish_reason="length")), "truncated"),
    ("invisible", answered(completion("\u200b")), "empty"),
    (
        "too many tokens",
        answered({**completion("ok"), "usage": {"prompt_tokens": 10**9}}),
        Usage(0, 0, 0, 1),
    ),
    ("status null", answered(completion("ok"), None), "malformed"),
    ("status true", answered(completion("ok"), True), "malformed"),
    ("status '200'", answered(completion("ok"), "200"), "=ok"),
    ("no response", {"error": None, "response": None}, "malformed"),
    ("error beside", {**answered(completion("ok")), "error": {"code": 503}}, "transport"),
    ("expired", {"error": {"code": "batch_expired"}, "response": None}, "deadline"),
]


@pytest.mark.parametrize(("name", "row", "outcome"), LINES, ids=[case[0] for case in LINES])
def test_a_line_of_a_batch_is_read_as_a_direct_reply(name: str, row: Any, outcome: Outcome) -> None:
    found = line(row)
    assert is_of(found, outcome), found
