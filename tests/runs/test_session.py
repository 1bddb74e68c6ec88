"""`Session`: runs of many tasks from Python, with a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pearl
from pearl import cli
from pearl.errors import BudgetError, DataError, StoreError, UsageError
from pearl.llm import ChooseTask, Message, Request
from pearl.llm.prices import Price
from pearl.runs.executors import Resources, Task, Unit
from pearl.runs.session import Shard, Watcher
from pearl.runs.store import Store
from tests.server import Server

PLAN = """\
New actions:
- None

1. why = FIND(CTX, "why she leaves") : Find why
2. ans = FIND(CTX, why) : Find what came of it
"""
N = 8
PRICE = Price(input_usd=2, output_usd=8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for i in range(N):
        Path(f"d{i}.txt").write_text(f"She left on day {i}. It rained.\n")
    return tmp_path


@pytest.fixture
def asked(openai_server: Server) -> Iterator[pearl.Pearl]:
    openai_server.on("", "it rained")
    made = pearl.Pearl("openai:test-model", base_url=openai_server.url, concurrency=2)
    yield made
    pearl.run(made.aclose())


def tasks() -> list[Task]:
    return pearl.over_files([f"d{i}.txt" for i in range(N)], plan=PLAN)


def test_forecast_run_and_resume(folder: Path, asked: pearl.Pearl, openai_server: Server) -> None:
    session = pearl.Session(asked, store="kept", price=PRICE)
    before = session.forecast(tasks())
    assert (before.n_tasks, before.n_known) == (N, 0)
    assert before.total.calls.least == before.total.calls.most == 2 * N
    assert openai_server.requests == []

    done = pearl.run(session.run(tasks()))
    assert (done.status, done.n_done, done.n_known, done.n_rows) == ("done", N, 0, N)
    assert len(openai_server.requests) == 2 * N
    assert [row["id"] for row in session.rows(done.id)] == [task.id for task in tasks()]
    assert session.budget is not None
    assert session.budget.spent.n_calls == 2 * N

    left = session.forecast(tasks())
    assert (left.n_tasks, left.n_known) == (0, N)
    again = pearl.run(session.run(iter(tasks())))
    assert (again.id, again.n_done, again.n_known) == (done.id, 0, N)
    assert len(openai_server.requests) == 2 * N


def test_a_retry_repeats_the_rows_that_are_named(
    folder: Path, asked: pearl.Pearl, openai_server: Server
) -> None:
    session = pearl.Session(asked, store="kept")
    run = pearl.run(session.run(tasks()))
    openai_server.requests.clear()
    first = tasks()[0].id
    done = pearl.run(session.retry(run.id, tasks(), states=["answered"], rows=[first]))
    assert (done.id, done.n_done, done.n_rows) == (run.id, 1, N)
    assert len(openai_server.requests) == 2
    assert (
        pearl.run(session.retry(run.id, tasks())).n_done == 0
    )  # none is undecided, failed or degraded
    with pytest.raises(StoreError, match="has no row 'other'"):
        session.retry(run.id, tasks(), rows=["other"])


def test_only_changed_documents_are_run_again(
    folder: Path, asked: pearl.Pearl, openai_server: Server
) -> None:
    session = pearl.Session(asked, store="kept")
    first = pearl.run(session.run(tasks()))
    Path("d3.txt").write_text("She never left.\n")
    second = pearl.run(session.run(tasks()))
    assert (second.id, second.n_done, second.n_known) == (first.id, 1, N - 1)
    other = pearl.run(session.run(pearl.over_files(["d3.txt"], plan=PLAN)))
    assert other.id != first.id
    fresh = pearl.run(pearl.Session(asked, store="kept", is_fresh=True).run(tasks()))
    assert fresh.id not in (first.id, other.id)
    assert len(openai_server.requests) == 2 * (N + 1 + N)
    unnamed = [Task("a", lambda: pearl.Document("She left. It rained."), plan=PLAN)]
    assert [pearl.run(session.run(unnamed)).n_done for _ in range(2)] == [1, 1], (
        "it may have changed"
    )


@pytest.mark.parametrize(
    ("limit", "n_calls"),
    [({"max_calls": 6}, 6), ({"max_tokens": 10}, 0), ({"max_cost_usd": 1e-6, "price": PRICE}, 0)],
)
def test_limit_stops_the_run_which_is_resumed_by_its_id(
    folder: Path, asked: pearl.Pearl, openai_server: Server, limit: dict[str, Any], n_calls: int
) -> None:
    session = pearl.Session(asked, store="kept", **limit)
    stopped = pearl.run(session.run(tasks()))
    assert stopped.status == "stopped"
    assert isinstance(stopped.error, pearl.PearlError)
    assert stopped.n_unfinished > 0
    assert stopped.n_failed == 0
    assert len(openai_server.requests) == n_calls
    with Store.open(folder / "kept", read_only=True) as store:
        assert store.run(stopped.id).status == "stopped"
    # The session has spent what it may; another one has not.
    assert pearl.run(session.resume(stopped.id, tasks())).status == "stopped"
    assert len(openai_server.requests) == n_calls
    done = pearl.run(pearl.Session(asked, store="kept").resume(stopped.id, tasks()))
    assert (done.id, done.status, done.n_rows) == (stopped.id, "done", N)
    assert len(openai_server.requests) == 2 * N


def test_run_of_the_command_line_is_resumed_from_python(
    folder: Path, asked: pearl.Pearl, openai_server: Server
) -> None:
    Path("why.plan").write_text(PLAN)
    names = [task.id for task in tasks()]
    args = ["--out", "rows.jsonl", "--store", "kept", "--model", "openai:test-model"]
    args += ["--base-url", openai_server.url, "--max-calls", "6", "--concurrency", "1"]
    assert cli.run(["execute", "why.plan", *names, *args]) == BudgetError.exit_code
    session = pearl.Session(asked, store="kept")
    with Store.open(folder / "kept", read_only=True) as store:
        (info,) = store.runs()
    done = pearl.run(session.resume(info.id, pearl.over_files(names, plan=PLAN)))
    assert (done.id, done.n_known, done.n_rows) == (info.id, 3, N)
    assert len(openai_server.requests) == 2 * N


def test_command_line_shows_but_does_not_resume_a_run_of_python(
    folder: Path, asked: pearl.Pearl, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = pearl.run(pearl.Session(asked, store="kept", max_calls=6).run(tasks()))
    assert cli.run(["runs", "export", stopped.id, "--store", "kept"]) == 0
    assert cli.run(["runs", "resume", stopped.id, "--store", "kept"]) == StoreError.exit_code
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == stopped.n_rows > 0
    assert f"pearl.Session(...).resume('{stopped.id}', tasks)" in said.err


def test_outcomes_are_on_disk_when_yielded(folder: Path, asked: pearl.Pearl) -> None:
    begun: list[str] = []

    async def some() -> list[str]:
        found = []
        watcher = Watcher(on_begun=lambda run: begun.append(run.id))
        async with aclosing(session.run(tasks(), watcher=watcher)) as run:
            async for outcome in run:
                found.append(outcome.unit.id)
                with Store.open(folder / "kept", read_only=True) as store:
                    kept = {row["id"] for row in store.rows(begun[0])}
                assert kept.issuperset(found)
                if len(found) == 3:
                    break
        return found

    session = pearl.Session(asked, store="kept")
    assert pearl.run(some()) == ["d0.txt", "d1.txt", "d2.txt"]
    done = pearl.run(session.run(tasks()))
    assert done.id == begun[0]
    assert done.n_known >= 3
    assert done.status == "done"


def test_resume_with_other_settings_is_refused(folder: Path, asked: pearl.Pearl) -> None:
    session = pearl.Session(asked, store="kept")
    done = pearl.run(session.run(tasks()))
    other = pearl.Session(pearl.Pearl("extractive"), store="kept")
    with pytest.raises(StoreError, match="other settings"):
        pearl.run(other.resume(done.id, tasks()))
    with pytest.raises(StoreError, match="no run 'nope'"):
        session.resume("nope", tasks())
    with pytest.raises(UsageError, match="no store"):
        pearl.Session(asked).resume(done.id, tasks())


@dataclass(frozen=True)
class Greeting(Unit):
    """Work of another kind than a question or a plan over a document."""

    id: str
    document: None = None
    source: str = "none"
    depends_on: tuple[str, ...] = ()  # type: ignore[misc]

    async def perform(self, resources: Resources, trace: pearl.Trace) -> str:
        prompt = (Message("user", f"Greet {self.id}."),)
        task = ChooseTask("Which?", ("a", "b"))
        return (await resources.pearl.calls(trace).complete(Request(prompt, task))).text

    def row(self, result: str | None, error: Exception | None) -> dict[str, str | None]:
        return {"id": self.id, "status": "failed" if error else "answered", "answer": result}


def test_other_units_are_forecast_limited_and_resumed(
    folder: Path, asked: pearl.Pearl, openai_server: Server
) -> None:
    units = [Greeting(name) for name in ("Ada", "Ben", "Cleo")]
    session = pearl.Session(asked, store="kept", max_calls=2)
    assert session.forecast(units).n_tasks == 3
    stopped = pearl.run(session.run(units))
    assert (stopped.status, stopped.n_unfinished) == ("stopped", 1)
    assert stopped.statuses == {"answered": 2, "failed": 1}
    done = pearl.run(pearl.Session(asked, store="kept").run(units))
    assert (done.id, done.n_known, done.n_rows) == (stopped.id, 2, 3)
    assert len(openai_server.requests) == 3


def test_limits_need_a_price_and_a_suitable_executor(
    asked: pearl.Pearl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="the price of 'openai:test-model' is unknown"):
        pearl.Session(asked, max_cost_usd=1)
    monkeypatch.setattr("pearl.runs.executors.local.KEEPS_LIMITS", False)  # as one of a plug-in may
    with pytest.raises(UsageError, match="does not enforce limits"):
        pearl.run(pearl.Session(asked, max_calls=1).run([]))


def test_extra_that_is_not_json_is_refused_before_any_call(
    folder: Path, asked: pearl.Pearl, openai_server: Server
) -> None:
    task = Task("a", lambda: pearl.Document("x"), "Why?", extra={"path": Path("a")})
    with pytest.raises(UsageError, match="extra of task 'a' is not JSON data"):
        pearl.run(pearl.Session(asked, store="kept").run([task]))
    assert openai_server.requests == []


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("max_cost_usd", float("nan")),
        ("max_tokens", float("inf")),
        ("max_calls", -1),
        ("max_minutes", "5"),
    ],
)
def test_invalid_limits_are_refused(asked: pearl.Pearl, name: str, limit: Any) -> None:
    with pytest.raises(UsageError, match="is not a limit"):
        pearl.Session(asked, price=PRICE, **{name: limit})


@pytest.mark.parametrize(("most", "status", "least"), [(2, "stopped", 3), (40, "done", 40)])
def test_too_many_failures_end_the_run(
    folder: Path, asked: pearl.Pearl, most: int, status: str, least: int
) -> None:
    bad = [Task(str(i), problem=DataError("no row")) for i in range(40)]
    done = pearl.run(pearl.Session(asked, max_errors=most).run([*bad, *tasks()]))
    assert (done.status, done.n_failed < 40) == (status, status == "stopped")
    assert done.n_failed >= least


def test_path_and_price_of_the_wrong_type(asked: pearl.Pearl) -> None:
    with pytest.raises(UsageError, match="is a single path"):
        pearl.over_files("d0.txt", question="Why?")
    with pytest.raises(UsageError, match="is not a price"):
        pearl.Session(asked, price="2/3")
    assert pearl.Session(asked, price="input=2,output=3").price == Price(input_usd=2, output_usd=3)


@given(id=st.text("aé\ud800 7"), n=st.integers(1, 20))
def test_a_task_is_in_one_shard(id: str, n: int) -> None:
    assert sum(Shard(i, n).takes(id) for i in range(1, n + 1)) == 1


def test_the_shard_of_a_task_is_stable() -> None:
    """By the bytes of SHA-256: other versions of Python, other machines and other pearls agree."""
    ids = ("q17", "été", "a\ud800", "")
    assert [next(i for i in range(1, 8) if Shard(i, 7).takes(id)) for id in ids] == [7, 5, 3, 2]


def test_shards_are_runs_of_their_own_that_together_do_all(
    folder: Path, asked: pearl.Pearl
) -> None:
    done = [
        pearl.run(pearl.Session(asked, store="kept", shard=f"{i} / 3").run(tasks()))
        for i in (1, 2, 3, 2)
    ]
    assert done[1].id == done[3].id != done[0].id
    assert (sum(each.n_done for each in done), done[3].n_known) == (N, done[1].n_done)
    rows = [
        row["id"] for i in range(3) for row in pearl.Session(asked, store="kept").rows(done[i].id)
    ]
    assert sorted(rows) == [task.id for task in tasks()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "is not a shard") for text in ("", "3", "1/2/3", "a/b", "-1/2", "1.0/2", "²/3", "٣/4", "9" * 5_000 + "/1")),
        ("0/3", "shard 0 of 3 does not exist"), ("4/3", "shard 4 of 3 does not exist"), ("1/0", "shard 1 of 0 does not exist"),
    ],
)  # fmt: skip
def test_an_invalid_shard_has_a_short_error(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        pearl.Session(pearl.Pearl(), shard=text)
    assert len(str(caught.value)) < 200
    assert str(caught.value).count("\n") < 3
