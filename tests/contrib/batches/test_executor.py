"""The batch executor: outcomes equal those of `local`, whatever the server does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pearl import Pearl, cli
from pearl.contrib.batches import executor
from pearl.contrib.batches.batching import FOLDER
from pearl.contrib.batches.executor import BatchProgress, Pace, run
from pearl.contrib.batches.openai import VendorBatches
from pearl.errors import DataError, ModelError, PearlError, UsageError
from pearl.llm.backends.scripted import Scripted
from pearl.llm.middleware.budget import Budget
from pearl.llm.prices import Price
from pearl.runs.executors import Outcome, Task, local
from tests.batch_server import BatchServer, answered, serving_batches
from tests.contrib.batches.batch_tasks import PACE, tasks_of
from tests.server import Canned, Seen, completion, error


def digest(seen: Seen) -> str:
    return json.dumps({"answer": sha256(seen.prompt.encode()).hexdigest(), "quotes": []})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    """A server whose replies are digests of the prompts."""
    monkeypatch.setenv("OPENAI_API_KEY", "none-1")
    with serving_batches() as server:
        server.on(".", digest)
        yield server


def pearl_of(server: BatchServer, **options: Any) -> Pearl:
    return Pearl("openai:test-model", base_url=server.url, **options)


def outcomes(
    server: BatchServer,
    tasks: list[Task],
    *,
    budget: Budget | None = None,
    **options: Any,
) -> list[Outcome[Task]]:
    async def main() -> list[Outcome[Task]]:
        async with pearl_of(server, budget=budget) as pearl:
            return [
                o
                async for o in run(pearl, tasks, **{"pace": PACE, "batch_threshold": 0, **options})
            ]

    return asyncio.run(main())


def locally(server: BatchServer, tasks: list[Task]) -> list[Outcome[Task]]:
    async def main() -> list[Outcome[Task]]:
        async with pearl_of(server) as pearl:
            return [outcome async for outcome in local.run(pearl, tasks)]

    return asyncio.run(main())


def texts(found: list[Outcome[Task]]) -> list[tuple[str, str]]:
    return [(o.unit.id, o.result.text if o.result else repr(o.error)) for o in found]


def cause(outcome: Outcome) -> ModelError:
    assert outcome.error is not None
    assert isinstance(outcome.error.__cause__, ModelError)
    assert len(str(outcome.error).splitlines()) <= 3
    return outcome.error.__cause__


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_one_batch_per_level_with_the_answers_of_local(server: BatchServer, depth: int) -> None:
    tasks = tasks_of(20, depth, width=2)
    told: list[BatchProgress] = []
    found = outcomes(server, tasks, on_progress=told.append)
    assert len(server.jobs) == depth
    assert not server.requests
    assert texts(found) == texts(locally(server, tasks))
    assert {len(job.rows) for job in server.jobs} == {40}
    assert str(told[-1]) == f"round {depth}: 40 requests in 1 batch, 40 done"


def test_failing_server_gives_one_notice(server: BatchServer) -> None:
    server.fail("POST /files", "reset", "500", "reset")
    server.fail("POST /batches", "503")
    told: list[str] = []
    found = outcomes(server, tasks_of(2, 1), on_trouble=lambda error, _: told.append(error.message))
    assert all(outcome.result for outcome in found)
    assert len(told) == 2
    assert "closed the connection" in told[0]


def test_large_round_is_several_batches(
    server: BatchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = tasks_of(10, 1)
    monkeypatch.setattr(VendorBatches, "max_requests", 4)
    assert all(o.result for o in outcomes(server, tasks))
    assert [len(job.rows) for job in server.jobs] == [4, 4, 2]
    size = max(map(len, next(iter(server.files.values())).splitlines()))
    monkeypatch.setattr(VendorBatches, "max_bytes", 3 * size + 10)
    server.jobs.clear()
    assert all(o.result for o in outcomes(server, tasks))
    assert [len(job.rows) for job in server.jobs] == [3, 3, 3, 1]


def asked_directly(server: BatchServer, budget: Budget) -> list[Outcome[Task]]:
    async def main() -> list[Outcome[Task]]:
        async with pearl_of(server, budget=budget, max_output_tokens=100) as pearl:
            return [o async for o in run(pearl, tasks_of(4, 1), pace=PACE, batch_threshold=5)]

    return asyncio.run(main())


def test_small_round_is_sent_directly_if_the_full_price_is_allowed(server: BatchServer) -> None:
    server._rules.clear()
    price = Price.read("input=0,output=10000,batch=0.5")  # a dollar a reply at most
    assert all(o.result for o in asked_directly(server, Budget(price=price, max_cost_usd=9)))
    assert (len(server.requests), len(server.jobs)) == (4, 0)
    server.forget()
    assert all(o.result for o in asked_directly(server, Budget(price=price, max_cost_usd=0.7)))
    assert not server.requests
    assert sum(len(job.rows) for job in server.jobs) == 4


def two_replies(rows: list[Any]) -> list[Any]:
    other = answered(completion('{"answer": "Another reply.", "quotes": []}'))
    return [*rows, *({**row, **other} for row in rows), *rows]


UNREADABLE: dict[str, Callable[[list[Any]], list[Any]]] = {
    "no line": lambda rows: [],
    "two replies": two_replies,
    "an array": lambda rows: [[row] for row in rows],
    "an array as the response": lambda rows: [{**row, "response": [200]} for row in rows],
    "no status": lambda rows: [{**r, "response": {"body": r["response"]["body"]}} for r in rows],
}


@pytest.mark.parametrize("edit", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_reply_is_retried_once(
    server: BatchServer, edit: Callable[[list[Any]], list[Any]]
) -> None:
    server.edit = lambda rows: edit(rows[:1]) + rows[1:] if len(server.jobs) == 1 else rows
    assert all(o.result for o in outcomes(server, tasks_of(3, 1)))
    assert [len(job.rows) for job in server.jobs] == [3, 1]
    server.jobs.clear()
    server.edit = edit
    (outcome,) = outcomes(server, tasks_of(1, 1))
    assert "both were billed" in str(cause(outcome))
    assert len(server.jobs) == 2


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("GET /files/", "404"),
        ("GET /batches/", Canned({"id": "batch_0", "status": "completed"})),
        ("GET /batches/", Canned({"id": "batch_0", "status": "pondering"})),
    ],
)
def test_batch_without_results_is_kept_and_not_submitted_again(
    server: BatchServer, tmp_path: Path, call: str, answer: str | Canned
) -> None:
    server.fail(call, *[answer] * 1_000)
    pace = Pace(quiet_s=0.05, poll_s=0.01, longest_poll_s=0.02, patience_s=0.2)
    budget = Budget()
    found = outcomes(server, tasks_of(3, 1), folder=tmp_path, pace=pace, budget=budget)
    assert {cause(outcome).kind for outcome in found} == {"bad_request"}
    assert "batch batch_0" in cause(found[0]).message
    assert budget.spent.n_unsure_calls == 3, "the server bills it"
    server.faults.clear()
    assert all(o.result for o in outcomes(server, tasks_of(3, 1), folder=tmp_path))
    assert len(server.jobs) == 1
    assert not list((tmp_path / FOLDER).iterdir())


def test_beginning_of_a_twice_truncated_reply_is_kept(server: BatchServer) -> None:
    reply = "<think>Whole of it.</think>Half of it. And"
    server.line = lambda row: answered(completion(reply, finish_reason="length"))
    (found,) = outcomes(server, tasks_of(1, 1))
    assert (found.result.status, found.result.text) == ("degraded", "Half of it.")
    assert [len(job.rows) for job in server.jobs] == [1, 1], "asked again with more room, once"


def test_reasoning_is_removed_and_refusals_are_retried_once(
    server: BatchServer,
) -> None:
    server.line = lambda row: answered(completion('<think>Hm.</think>{"answer": "Half of it."}'))
    (found,) = outcomes(server, tasks_of(1, 1))
    assert (found.result.status, found.result.text) == ("degraded", "Half of it.")
    refusal = completion(None, refusal="I'm sorry, but I can't help with that.")
    server.line = lambda row: answered(refusal)
    (found,) = outcomes(server, tasks_of(1, 1))
    assert (found.result.status, "sorry" in found.result.text) == ("refused", False)
    assert [len(job.rows) for job in server.jobs] == [1, 1, 1]


def without_temperature(row: dict[str, Any]) -> dict[str, Any] | None:
    is_refused = "temperature" in row["body"]
    return answered(error("Unsupported value", param="temperature"), 400) if is_refused else None


TROUBLES: dict[str, tuple[Callable[[BatchServer], object], int, int, list[int]]] = {
    "no temperature": (lambda s: setattr(s, "line", without_temperature), 3, 2, [3, 3, 3]),
    "no temperature in a trial": (
        lambda s: setattr(s, "line", without_temperature), 130, 1, [100, 100, 30],
    ),
    "a status in capitals": (lambda s: s.ends.append("COMPLETED"), 1, 1, [1]),
    "faults while polling": (
        lambda s: [
            s.fail("GET /batches/", "500", "reset", "502", "half JSON", "429"),
            s.fail("POST /files", "500"), s.fail("GET /files/", "503", "reset"),
        ], 3, 1, [3],
    ),
    "a batch that is only listed": (lambda s: s.fail("GET /batches/", "404", "404"), 3, 1, [3]),
}  # fmt: skip


@pytest.mark.parametrize("name", TROUBLES)
def test_troubles_that_pass(server: BatchServer, name: str) -> None:
    prepare, n, depth, sizes = TROUBLES[name]
    prepare(server)
    tasks = tasks_of(n, depth)
    found = outcomes(server, tasks)
    assert [len(job.rows) for job in server.jobs] == sizes
    server.line = lambda row: None
    assert texts(found) == texts(locally(server, tasks))


@pytest.mark.parametrize("most", [1, 3])
def test_batch_with_too_many_tokens_is_halved(server: BatchServer, most: int) -> None:
    server.most = most
    tasks = tasks_of(10, 1)
    assert all(o.result for o in outcomes(server, tasks))
    done = [len(job.rows) for job in server.jobs if job.end == "completed"]
    assert sum(done) == 10
    assert max(done) <= most


@pytest.mark.parametrize("fault", ["quota", "401"])
def test_no_credit_and_no_key_end_the_run(
    server: BatchServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "WINDOW", 4)
    server.fail("POST /batches", fault)
    found = outcomes(server, tasks_of(8, 1))
    assert all(o.error for o in found)
    assert not server.jobs


def test_models_without_batches_are_refused() -> None:
    async def main() -> None:
        async for _ in run(Pearl(Scripted(lambda request: "x")), []):
            pass

    with pytest.raises(UsageError, match="no Batch API"):
        asyncio.run(main())


def test_a_task_that_fails_by_itself_is_told_while_the_run_stops(server: BatchServer) -> None:
    server.is_held = True
    wrong = Task("wrong", problem=DataError("no document"))
    found = outcomes(server, [*tasks_of(2, 1), wrong], is_stopping=lambda: bool(server.jobs))
    assert [o.unit.id for o in found] == ["wrong"]


def test_batch_unknown_to_the_server_is_submitted_again(
    server: BatchServer, tmp_path: Path
) -> None:
    server.is_held = True
    tasks = tasks_of(3, 1)
    outcomes(server, tasks, folder=tmp_path, is_stopping=lambda: bool(server.jobs))
    server.jobs.clear()
    server.is_held = False
    assert all(o.result for o in outcomes(server, tasks, folder=tmp_path))
    assert len(server.jobs) == 1


def test_server_that_forgets_every_batch_is_an_error(server: BatchServer) -> None:
    nothing = Canned({"object": "list", "data": [], "has_more": False})
    server.fail("GET /batches/", *["404"] * 100)
    server.fail("GET /batches", *[nothing] * 100)
    found = outcomes(server, tasks_of(3, 1))
    assert {o.error is not None for o in found} == {True}
    assert "does not know a batch" in cause(found[0]).message
    assert [len(job.rows) for job in server.jobs] == [3, 3]


def test_damaged_record_of_a_batch_is_an_error(server: BatchServer, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "x.json").write_text("{")
    with pytest.raises(PearlError, match="not a record of a batch"):
        outcomes(server, tasks_of(1, 1), folder=tmp_path)


def test_mining_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("questions.jsonl").write_text('{"question": "Why?"}\n', encoding="utf-8")
    assert (
        cli.run(["mine", "--data", "questions.jsonl", "--out", "m.jsonl", "--executor", "batch"])
        == 2
    )
    assert "runs only questions and plans over documents" in capsys.readouterr().err
