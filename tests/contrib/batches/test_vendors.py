"""What batches of every vendor have in common; their servers refuse requests of another form."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pearl import Pearl
from pearl.contrib.batches import Batches, batches_of
from pearl.contrib.batches.batching import FOLDER
from pearl.contrib.batches.executor import BatchProgress, run
from pearl.errors import BudgetError, ModelError
from pearl.llm import Completion, Request, declared
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.openai import servers
from pearl.llm.middleware.budget import Budget
from pearl.llm.prices import Price
from pearl.runs.executors import Outcome, Task
from pearl.runs.store import Store
from tests.batch_server import BatchServer, Job, answered
from tests.contrib.batches.batch_tasks import PACE, tasks_of
from tests.contrib.batches.other_servers import VENDORS, settings_of
from tests.llm.backends import asking
from tests.server import Canned, error

LIST = '1. a = FIND(CTX, "the boats") : find\n2. n = COUNT(a) : count'


LISTED = '{"entries": [{"entry": "one", "quote": ""}, {"entry": "two", "quote": ""}]}'


def digest(prompt: str) -> str:
    return sha256(prompt.encode()).hexdigest()


@pytest.fixture(params=VENDORS)
def vendor(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(vendor: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchServer]:
    """A server whose replies are digests of the prompts."""
    monkeypatch.setenv("PEARL_API_KEY", "none-1")
    server = VENDORS[vendor]()
    server.on(".", lambda seen: json.dumps({"answer": digest(seen.prompt), "quotes": []}))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def execute(vendor: str, server: BatchServer) -> Callable[..., list[Outcome[Task]]]:
    """Runs tasks in batches."""

    def execute(
        tasks: list[Task], *, budget: Budget | None = None, settings: Any = (), **options: Any
    ) -> list[Outcome[Task]]:
        model, url = settings_of(vendor, server)
        options = {"pace": PACE, "batch_threshold": 0, **options}

        async def main() -> list[Outcome[Task]]:
            async with Pearl(model, base_url=url, budget=budget, **dict(settings)) as pearl:
                return [outcome async for outcome in run(pearl, tasks, **options)]

        return asyncio.run(main())

    return execute


def texts(outcomes: list[Outcome[Task]]) -> list[str]:
    return [o.result.text if o.result else repr(o.error) for o in outcomes]


def lists_of(n: int) -> list[Task]:
    """Tasks whose replies have a form."""
    return [Task(t.id, t.document, plan=LIST) for t in tasks_of(n, 1)]


def cause(outcome: Outcome[Task]) -> BaseException:
    assert outcome.error is not None
    return outcome.error.__cause__ or outcome.error


def test_answers_come_in_one_batch_a_level(server: BatchServer, execute: Any) -> None:
    found = execute(tasks_of(8, 2))
    assert [len(job.rows) for job in server.jobs] == [8, 8]
    assert not server.requests
    assert [len(text) for text in texts(found)] == [64] * 8
    usage = found[0].result.usage
    assert (usage.n_input_tokens, usage.n_cached_tokens > 0) == (200, True)


def test_the_form_of_a_reply_is_constrained_in_the_batch(server: BatchServer, execute: Any) -> None:
    server.always(LISTED)
    assert texts(execute(lists_of(4))) == ["2"] * 4
    assert [len(job.rows) for job in server.jobs] == [4]
    assert all('"entries"' in json.dumps(row) for row in server.jobs[0].rows)
    assert not server.requests


def test_the_models_of_all_roles_are_asked_in_batches(
    server: BatchServer, execute: Any, vendor: str
) -> None:
    server._rules.clear()
    server.on("New actions", '1. a = FIND_EVENT(CTX, "the boat") : find it')
    tasks = [Task(t.id, t.document, question="Why?") for t in tasks_of(3, 1)]
    settings = {"planner_model": f"{vendor}:planner", "constrain": "off"}
    assert texts(execute(tasks, settings=settings)) == ["ok"] * 3
    assert [len(job.rows) for job in server.jobs] == [1, 3]
    assert not server.requests


COMPOSED = """\
1. a = FIND_REASON(CTX, "the boat") : Find why
2. b = FIND_EVENT(CTX, "the boat") : Find what
3. c = ANSWER("Why?", a, b) : Answer"""


def test_answers_are_checked_in_a_batch(server: BatchServer, execute: Any) -> None:
    server._rules.clear()
    server.on("Compare each claim", '{"verdicts": [{"id": 1, "verdict": "supported"}]}')
    server.on("End every sentence", "It sank [1].")
    server.on(".", '{"answer": "It sank.", "quotes": []}')
    tasks = [Task(t.id, t.document, plan=COMPOSED) for t in tasks_of(3, 1)]
    assert texts(execute(tasks)) == ["It sank."] * 3
    assert len(server.jobs) == 3  # steps, answers, their check
    assert not server.requests


def test_a_server_that_ignores_the_form_is_read_as_directly(
    server: BatchServer, execute: Any
) -> None:
    server.always("- This is number\n- is number\n- It is short")
    assert texts(execute(lists_of(3))) == ["3"] * 3
    assert [len(job.rows) for job in server.jobs] == [3]


def test_claude_since_opus_4_7_gets_no_temperature() -> None:
    def is_sent(name: str) -> bool:
        model: Any = create_model(f"anthropic:{name}", ModelSettings("http://127.0.0.1:9/v1"))
        return b'"temperature"' in batches_of(model).line(bytes(32), asking.REQUEST)

    before = ("claude-opus-4-6", "claude-opus-4-20250514", "claude-3-5-haiku-20241022")
    assert all(map(is_sent, before))
    assert not any(map(is_sent, ("claude-opus-4-7", "claude-sonnet-5-5", "claude-fable-5")))


def test_a_line_has_the_parameters_by_the_names_of_its_vendor(vendor: str) -> None:
    model: Any = create_model(f"{vendor}:m", ModelSettings("http://127.0.0.1:9/v1"))
    asked = dict.fromkeys(declared(Request), 1) | {"max_output_tokens": 70}
    row = json.loads(batches_of(model).line(bytes(32), replace(asking.REQUEST, **asked)))
    body = row.get("body") or row.get("params") or row["request"]["generationConfig"]
    form = {"openai": "chat", "anthropic": "messages"}.get(vendor, vendor)
    wire = {each["wire"][form]: asked[name] for name, each in declared(Request).items()}
    assert {name: value for name, value in body.items() if name in wire} == {
        name: value for name, value in wire.items() if name is not None
    }


def test_a_reply_of_a_batch_tells_what_was_not_sent() -> None:
    model: Any = create_model("anthropic:m", ModelSettings("http://127.0.0.1:9/v1"))
    message = {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
    row = {"custom_id": bytes(32).hex(), "result": {"type": "succeeded", "message": message}}
    asked = {bytes(32): replace(asking.REQUEST, seed=3)}
    ((_, reply),) = batches_of(model)._read(json.dumps(row).encode(), asked)
    assert isinstance(reply, Completion)
    assert reply.left_out == ("seed",)


def test_a_line_has_the_fields_of_its_provider(vendor: str) -> None:
    """They are part of the identity of replies."""
    model: Any = create_model(f"{vendor}:m", ModelSettings("http://127.0.0.1:9/v1"))
    server = model.server or servers.load(servers.UNKNOWN)
    model.server = replace(server, fields={"odd": "low"}, batches=vendor)
    row = json.loads(batches_of(model).line(bytes(32), asking.REQUEST))
    assert (row.get("body") or row.get("params") or row["request"])["odd"] == "low"


TOLD: dict[str, dict[str, Any]] = {
    "openai": {"id": "b", "status": "in_progress", "request_counts": {"completed": 2, "failed": 1}},
    "anthropic": {
        "id": "b", "processing_status": "in_progress",
        "request_counts": {"processing": 4, "succeeded": 2, "errored": 1},
    },
    "gemini": {
        "name": "batches/b",
        "metadata": {"batchStats": {"successfulRequestCount": "2", "failedRequestCount": "1"}},
    },
}  # fmt: skip


def test_failed_requests_of_a_batch_under_way_are_done(vendor: str) -> None:
    model: Any = create_model(f"{vendor}:m", ModelSettings("http://127.0.0.1:9/v1"))
    assert batches_of(model)._batch(json.dumps(TOLD[vendor]).encode()).n_done == 3


@pytest.mark.parametrize(("code", "is_too_much"), [(8, True), (9, False)])
def test_gemini_refuses_a_batch_while_too_many_tokens_wait(code: int, is_too_much: bool) -> None:
    model: Any = create_model("gemini:m", ModelSettings("http://127.0.0.1:9/v1"))
    state = {"state": "BATCH_STATE_FAILED"}
    told = {"name": "batches/b", "metadata": state, "error": {"code": code, "message": "no"}}
    assert batches_of(model)._batch(json.dumps(told).encode()).is_too_much is is_too_much


def mixed(name: str) -> Callable[[list[Any]], list[Any]]:
    """Results in another order, twice, among lines that are none and one of somebody else."""

    def edit(rows: list[Any]) -> list[Any]:
        junk = [
            b"\n",
            b"{\n",
            b"[]\n",
            b"\xff\xfe\n",
            f'{{"{name}": 5}}\n'.encode(),
            b"[" * 5_000 + b"\n",
        ]
        foreign = [{**rows[0], name: "00" * 32}, {**rows[0], name: "no hex"}]
        doubled = [*rows, *rows]
        random.Random(1).shuffle(doubled)
        return [*foreign, *junk, *doubled]

    return edit


def test_foreign_doubled_and_unreadable_lines_change_nothing(
    server: BatchServer, execute: Any, tmp_path: Path
) -> None:
    expected = texts(execute(tasks_of(6, 1)))
    server.edit = mixed(server.ID)
    with Store.open(tmp_path) as store:
        assert texts(execute(tasks_of(6, 1), replies=store)) == expected
        assert asyncio.run(store.reply(bytes(32))) is None, "a line of somebody else"
    assert [len(job.rows) for job in server.jobs] == [6, 6]


@pytest.mark.parametrize("end", ["expired", "cancelled"])
def test_results_of_a_batch_that_ended_early_are_kept(
    server: BatchServer, execute: Any, tmp_path: Path, end: str
) -> None:
    server.ends.append(end)
    server.n_served = 5
    budget = Budget(max_calls=8)
    with Store.open(tmp_path) as store:
        found = execute(tasks_of(8, 1), replies=store, folder=tmp_path, budget=budget)
        if end == "cancelled":
            served = json.dumps(server.jobs[0].rows[:5])  # tasks are collected in any order
            has_reply = [f"This is number {o.unit.id[1:]}. " in served for o in found]
            assert [o.error is None for o in found] == has_reply
            assert has_reply.count(True) == 5
            assert len(server.jobs) == 1
            assert budget.spent.n_calls == 5
            found = execute(tasks_of(8, 1), replies=store, folder=tmp_path)
    assert all(o.result for o in found)
    assert [len(job.rows) for job in server.jobs] == [8, 3]


BAD: dict[str, dict[str, Any]] = {
    "openai": answered(error("no such thing"), 400),
    "anthropic": {
        "type": "errored",
        "error": {"type": "error", "request_id": "r", "error": {"type": "invalid_request_error", "message": "no such thing"}},
    },
    "gemini": {"error": {"code": 3, "message": "no such thing"}},
}  # fmt: skip
BUSY: dict[str, dict[str, Any]] = {
    "openai": answered(error("busy"), 503),
    "anthropic": {
        "type": "errored",
        "error": {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    },
    "gemini": {"error": {"code": 14, "message": "busy"}},
}


def test_a_refused_request_fails_and_a_busy_one_is_repeated(
    server: BatchServer, execute: Any, vendor: str
) -> None:
    def line(row: dict[str, Any]) -> dict[str, Any] | None:
        text = json.dumps(row)
        is_first = len(server.jobs) == 1
        return BAD[vendor] if "number 0." in text else BUSY[vendor] if is_first else None

    server.line = line
    found = execute(tasks_of(3, 1))
    assert [o.error is None for o in found] == [False, True, True]
    bad = cause(found[0])
    assert isinstance(bad, ModelError)
    assert (bad.kind, "no such thing" in bad.message) == ("bad_request", True)
    assert [len(job.rows) for job in server.jobs] == [3, 2]


def test_no_batch_is_submitted_twice_whose_answer_got_lost(
    server: BatchServer, execute: Any, tmp_path: Path, vendor: str
) -> None:
    """A batch of another user of the key has as many requests; one of another size, or from before, is not asked for."""
    other = [{server.ID: f"other-{i}", "url": "", "params": {}} for i in range(4)]
    server.line = lambda row: BAD[vendor] if row[server.ID].startswith("other") else None
    at = "batches/" * (vendor == "gemini")
    sizes = {"few": 2, "many": 4, "old": 3, "theirs": 3}
    server.jobs += [Job(at + name, name, other[:n], "completed") for name, n in sizes.items()]
    server.drops_answers = 1
    found = execute(tasks_of(3, 1), folder=tmp_path)
    assert all(o.result for o in found), texts(found)
    assert [job.n_looks for job in server.jobs[:3]] == [0, 0, 0]
    assert len(server.jobs) == 5


PAGES: dict[str, tuple[dict[str, Any], str]] = {
    "openai": ({"data": [{"id": "x", "status": "failed"}], "has_more": True}, "limit=100&after=x"),
    "anthropic": ({"data": [], "has_more": True, "last_id": "x"}, "limit=100&after_id=x"),
    "gemini": ({"nextPageToken": "x"}, "pageSize=100&pageToken=x"),
}


def test_a_batch_is_looked_for_on_ten_pages(
    server: BatchServer, execute: Any, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, query = PAGES[vendor]
    answer, paths = server._answer, []

    async def noting(seen: Any, writer: Any) -> None:
        paths.append(seen.path)
        await answer(seen, writer)

    monkeypatch.setattr(server, "_answer", noting)
    server.drops_answers = 1
    server.fail("GET /batches", *[Canned(page)] * 9)
    assert all(o.result for o in execute(tasks_of(3, 1)))
    assert len(server.jobs) == 1
    assert [path.partition("?")[2] for path in paths].count(query) == 9


def test_the_same_command_reads_what_a_stopped_run_submitted(
    server: BatchServer, execute: Any, tmp_path: Path
) -> None:
    server.is_held = True
    told: list[BatchProgress] = []
    with Store.open(tmp_path) as store:
        options: dict[str, Any] = {"replies": store, "folder": tmp_path}
        assert not execute(
            tasks_of(6, 1), is_stopping=lambda: bool(told), on_progress=told.append, **options
        )
        assert str(told[-1]).endswith("run the same command again to read the replies")
        assert len(list((tmp_path / FOLDER).iterdir())) == 1
        server.is_held = False
        assert all(o.result for o in execute(tasks_of(4, 1), **options))
        assert all(o.result for o in execute(tasks_of(6, 1), **options))
        assert not list((tmp_path / FOLDER).iterdir())
    assert [len(job.rows) for job in server.jobs] == [6]


def test_a_batch_that_is_listed_late_is_not_submitted_twice(
    server: BatchServer, execute: Any, vendor: str, tmp_path: Path
) -> None:
    """The record is that of a process which was killed during the creation."""
    server.is_held = True
    execute(tasks_of(3, 1), folder=tmp_path, is_stopping=lambda: bool(server.jobs))
    (record,) = (tmp_path / FOLDER).iterdir()
    record.write_text(json.dumps({**json.loads(record.read_text()), "batch_id": None}))
    server.is_held = False
    server.fail(
        "GET /batches", Canned({**PAGES[vendor][0], "has_more": False, "nextPageToken": ""})
    )
    assert all(o.result for o in execute(tasks_of(3, 1), folder=tmp_path))
    assert len(server.jobs) == 1


def test_constrained_replies_that_nobody_awaits_are_read_later(
    server: BatchServer, execute: Any, tmp_path: Path
) -> None:
    server.always(LISTED)
    tasks = lists_of(6)
    server.is_held = True
    with Store.open(tmp_path) as store:
        options: dict[str, Any] = {"replies": store, "folder": tmp_path}
        execute(tasks, is_stopping=lambda: bool(server.jobs), **options)
        server.is_held = False
        assert texts(execute(tasks[:2], **options)) == ["2"] * 2
        assert texts(execute(tasks, **options)) == ["2"] * 6
    assert [len(job.rows) for job in server.jobs] == [6]


def test_a_refused_batch_ends_its_calls_with_the_words_of_the_server(
    server: BatchServer, execute: Any, vendor: str
) -> None:
    if vendor == "anthropic":  # refuses at once
        server.fail("POST /batches", "404")
    else:
        server.ends.append("failed:model_not_found")
    found = execute(tasks_of(3, 1))
    assert {o.error is None for o in found} == {False}
    assert len(str(cause(found[0])).splitlines()) <= 3
    said = "no Batch API" if vendor == "anthropic" else "refused the batch: model_not_found it is"
    assert said in str(cause(found[0]))


PRICE = Price.read("input=1000,output=10000,batch=0.5")


def test_the_worst_case_at_the_price_of_batches_is_reserved(
    server: BatchServer, execute: Any
) -> None:
    """As many requests as the budget has room for go first; what they leave admits others."""
    settings = {"max_output_tokens": 100}
    free = Budget(price=PRICE)
    execute(tasks_of(1, 1), budget=free, settings=settings)
    assert free.cost_usd == pytest.approx(PRICE.cost_usd(free.spent.usage) / 2)
    server.jobs.clear()
    budget = Budget(price=PRICE, max_cost_usd=3.0)
    found = execute(tasks_of(12, 1), budget=budget, settings=settings)
    sizes = [len(job.rows) for job in server.jobs]
    assert len(sizes) > 1
    assert 3 <= sizes[0] <= 5, "two at the full price"
    assert budget.cost_usd is not None
    assert budget.cost_usd <= 3.0
    refused = [o for o in found if o.error is not None]
    assert sum(sizes) == 12 - len(refused)
    assert {type(cause(o)) for o in refused} <= {BudgetError}


def test_the_schema_of_a_reply_is_reserved_too(
    server: BatchServer, execute: Any, tmp_path: Path
) -> None:
    """Vendors bill it as input."""
    server.is_held = True
    tasks = lists_of(3)
    budget = Budget(max_tokens=100_000)
    execute(tasks, budget=budget, is_stopping=lambda: bool(server.jobs), folder=tmp_path)
    n_sent = len(json.dumps(server.jobs[0].rows))
    assert 1 < 4 * budget.spent.usage.n_input_tokens / n_sent < 1.5


def test_the_rest_waits_for_a_first_batch_that_succeeds(
    server: BatchServer, execute: Any, vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Batches, "n_probe", 10)
    assert all(o.result for o in execute(tasks_of(13, 2)))
    first, rest, *others = [len(job.rows) for job in server.jobs]
    assert (first, rest, sum(others)) == (10, 3, 13)
    server.jobs.clear()
    server.line, server.is_held = lambda row: BAD[vendor], True
    options: dict[str, Any] = {"folder": tmp_path}
    execute(tasks_of(13, 1), is_stopping=lambda: bool(server.jobs), **options)
    server.is_held = False
    found = execute(tasks_of(13, 1), **options)
    assert not any(o.result for o in found)
    assert [len(job.rows) for job in server.jobs] == [10]
    told = [str(o.error) for o in found]  # whichever requests came last
    assert sum("the other 3 of this round were not submitted" in each for each in told) == 3


PROGRAM = """
import asyncio, sys
from pathlib import Path
from pearl import Pearl
from pearl.contrib.batches.executor import run
from pearl.runs.store import Store
from tests.contrib.batches.batch_tasks import PACE, tasks_of
async def main(model, url, folder):
    with Store.open(folder) as store:
        async with Pearl(model, base_url=url) as pearl:
            work = run(pearl, tasks_of(3, 1), replies=store, folder=folder, pace=PACE, batch_threshold=0)
            print(len([o async for o in work if o.result]))
asyncio.run(main(*sys.argv[1:3], Path(sys.argv[3])))
"""


class Nobody:
    """Takes an answer for a process that was killed."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...


@pytest.mark.slow
def test_a_kill_at_any_call_of_the_vendor_submits_nothing_twice(
    vendor: str, server: BatchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server carries out the k-th call, and the process never hears of it."""
    answer, n_calls, child = server._answer, 0, None
    kill_at = 0

    async def counted(seen: Any, writer: Any) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == kill_at and child is not None:
            await answer(seen, Nobody())  # type: ignore[arg-type]
            child.kill()
            return
        await answer(seen, writer)

    monkeypatch.setattr(server, "_answer", counted)
    while True:
        kill_at, n_calls = kill_at + 1, 0
        server.jobs.clear()
        args = [
            sys.executable,
            "-c",
            PROGRAM,
            *settings_of(vendor, server),
            str(tmp_path / str(kill_at)),
        ]
        child = subprocess.Popen(args, stdout=subprocess.PIPE, text=True)
        child.communicate(timeout=120)
        if child.returncode == 0:
            break
        child = None
        again = subprocess.run(args, capture_output=True, text=True, timeout=120, check=True)
        assert again.stdout == "3\n", again.stderr
        assert [len(job.rows) for job in server.jobs] == [3], f"killed at call {kill_at}"
    assert kill_at > 4
