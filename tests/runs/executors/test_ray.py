"""A cluster of Ray: the same outcomes as here, whatever of it is killed; leases; what travels."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import Document, Pearl
from pearl.errors import DataError, ModelError, PlanError, UsageError
from pearl.llm import ChooseTask, Message, Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.client import Client, ClientSettings
from pearl.runs.executors import Outcome, Task, local
from pearl.runs.executors import ray as on_ray
from pearl.runs.executors.ray import leasing
from pearl.runs.executors.ray.leasing import Leased
from pearl.runs.executors.ray.limiter import EPISODE_S, LEASE_S, CallLease, Limiter, fair_shares
from pearl.runs.executors.ray.wire import packed_outcome, unpacked_outcome
from pearl.runs.executors.ray.worker import RayWorker, WorkerConfig
from pearl.runs.identity import version
from tests.clock import computed
from tests.models import Acting
from tests.runs.executors.clustered import ROOT
from tests.skips import needs_ray

REQUEST = Request((Message("user", "who?"),), ChooseTask("who?", ("I", "you")))
PLAN = '1. hero = FIND(CTX, "the hero") : Who\n2. why = FIND(CTX, hero) : Why'
REPORT = {"n_wanted": 0, "n_places": 0, "n_running": 0, "n_sent": 0, "n_refused": 0,
          "retry_after_s": None}  # fmt: skip


# --- the cluster


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of 200 documents on three nodes; in a process of its own, as Ray changes its."""
    folder = tmp_path_factory.mktemp("cluster")
    done = subprocess.run(
        [sys.executable, "-m", "tests.runs.executors.clustered", "all", str(folder), "200", "3"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["ray", "worker_killed", "limiter_killed", "node_killed", "driver_killed"]
)
def test_every_outcome_is_that_of_local_and_there_once(
    clustered: dict[str, Any], name: str
) -> None:
    found = clustered[name]
    assert (found["lost"], found["twice"], found["failed"]) == (0, 0, 0)
    assert found["identical"]


@needs_ray
@pytest.mark.slow
def test_a_new_driver_does_only_what_is_not_recorded(clustered: dict[str, Any]) -> None:
    first, second, third = clustered["driver_killed"]["said"]
    assert (first, second) == (50, 1)
    assert third <= 200 - first - second


@needs_ray
@pytest.mark.slow
def test_workers_were_killed_indeed(clustered: dict[str, Any]) -> None:
    assert clustered["worker_killed"]["kills"] == 2


@needs_ray
@pytest.mark.slow
def test_a_worker_of_another_version_is_refused(clustered: dict[str, Any]) -> None:
    assert "this is pearl 0.0.1" in clustered["skew"]
    assert clustered["skew"].count("\n") < 3


@pytest.mark.slow
def test_importing_the_executor_does_not_import_ray() -> None:
    code = "import sys, pearl.runs.executors.ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_a_model_that_is_an_object_is_refused() -> None:
    pearl = Pearl(Scripted(str))

    async def main() -> None:
        await anext(on_ray.run(pearl, []))

    with pytest.raises(UsageError, match="by its name"):
        asyncio.run(main())


# --- what travels


def outcome_of(task: Task, model: Any) -> Outcome[Task]:
    async def main() -> Outcome[Task]:
        return await anext(local.run(Pearl(model), [task]))

    return asyncio.run(main())


def refused(request: Request) -> str:
    raise ModelError("no more today", kind="bad_request", help="tomorrow")


def unreadable() -> Document:
    raise DataError("not there", path="a.txt", line=3)


def broken() -> Document:
    raise ZeroDivisionError("once")


DOCUMENT = Document('Ada "left the boat" to é \U0001f600. It was late.', "a")


@pytest.mark.parametrize(
    ("task", "reply"),
    [
        (Task("a", lambda: DOCUMENT, "Who?", PLAN), lambda _: '"left the boat"'),
        (Task("b", lambda: DOCUMENT, "Who?", PLAN), refused),
        (Task("c", lambda: DOCUMENT, plan="1. nonsense"), str),
        (Task("d", lambda: DOCUMENT, "Who?"), lambda _: "no plan"),
        (Task("e", unreadable, plan=PLAN), str),
        (Task("f", broken, plan=PLAN), str),
    ],
    ids=list("abcdef"),
)
def test_an_outcome_travels(task: Task, reply: Callable[[Request], str]) -> None:
    outcome = outcome_of(task, Scripted(reply))
    data = pickle.loads(pickle.dumps(packed_outcome(outcome)))
    found = unpacked_outcome(outcome.unit, data)
    assert found.to_json() == outcome.to_json()
    assert found.trace.to_jsonl() == outcome.trace.to_jsonl()
    assert type(found.error).__name__ == type(outcome.error).__name__
    if outcome.result is not None:
        assert found.result == outcome.result


def test_an_error_keeps_what_is_asked_of_it() -> None:
    failed = outcome_of(Task("e", unreadable, plan=PLAN), Scripted(str))
    found = unpacked_outcome(failed.unit, packed_outcome(failed)).error
    assert isinstance(found, DataError)
    assert (found.line, found.path, found.exit_code) == (3, "a.txt", 3)
    bad = outcome_of(Task("c", lambda: DOCUMENT, plan="1. nonsense"), Scripted(str))
    told = unpacked_outcome(bad.unit, packed_outcome(bad)).error
    assert isinstance(told, PlanError)
    assert told.diagnostics == ()


def test_the_calls_of_a_worker_go_through_what_those_of_python_do() -> None:
    here = Client(ClientSettings("openai:m", base_url="http://127.0.0.1:9/v1", concurrency=3))
    setup = WorkerConfig("w", version(), {}, here.settings, CallLease(1), ".")

    async def there() -> Client:
        worker = RayWorker(setup, "nobody")
        client = worker._ready(version()).pearl.client
        assert worker._renewing is not None
        worker._renewing.cancel()
        return client

    client = asyncio.run(there())
    assert [type(layer) for layer in client.layers] == [type(layer) for layer in here.layers]
    assert isinstance(client.model, Leased)
    assert client.identity == here.identity


def test_a_worker_says_why_it_can_run_nothing() -> None:
    def said(driver: str, model: str = "extractive") -> dict[str, Any]:
        setup = WorkerConfig("w", driver, {}, ClientSettings(model), CallLease(1), ".")
        worker = RayWorker(setup, "nobody")
        return asyncio.run(worker.work(Task("a", lambda: DOCUMENT, plan=PLAN), driver))["refused"]  # type: ignore[no-any-return]

    assert said(version(), model="scripted:")["type"] == "UsageError"
    skew = said("pearl 9")
    assert (skew["type"], "this is pearl 9" in skew["text"]) == ("UsageError", True)


# --- leases


@given(wanted=st.lists(st.integers(0, 100), min_size=1, max_size=8), total=st.integers(8, 64))
def test_shares_are_all_there_is_and_fair(wanted: list[int], total: int) -> None:
    shares = fair_shares(wanted, total)
    assert sum(shares) == total
    assert all(share >= 1 for share in shares)
    for want, share in zip(wanted, shares, strict=True):
        if share < want:
            assert share >= total // len(wanted)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.floats(0.0, 3.0)), max_size=60),
)
def test_leases_never_add_up_to_more_than_there_is(
    steps: list[tuple[int, int, float]],
) -> None:
    limiter, now = Limiter(16, 4, None, 0.0), 0.0
    held: dict[str, tuple[int, float]] = {f"w{i}": (4, LEASE_S) for i in range(4)}
    for i, wanted, later in steps:
        now += later
        name = f"w{i}"
        mine = held[name][0] if held[name][1] > now else 0
        report = {**REPORT, "n_wanted": wanted, "n_places": mine}
        lease = limiter.report(name, report, now)
        held[name] = (lease.n_places, now + LEASE_S)
        assert sum(n for n, ends_at in held.values() if ends_at > now) <= 16


def test_the_share_of_a_dead_worker_goes_to_the_others() -> None:
    limiter = Limiter(16, 2, None, 0.0)
    busy = {**REPORT, "n_wanted": 50, "n_places": 8}
    assert limiter.report("a", busy, 6.0).n_places == 16
    limiter.report("b", busy, 6.1)
    limiter.report("a", busy, 6.2)
    assert limiter.report("b", busy, 6.3).n_places == 8
    assert limiter.report("a", busy, 6.3 + LEASE_S + 0.1).n_places == 16


def test_a_refusal_slows_everyone_and_is_forgotten_slowly() -> None:
    limiter = Limiter(16, 2, 100.0, 0.0)
    busy = {**REPORT, "n_wanted": 50, "n_places": 8, "n_sent": 50}
    for name in "ab":
        lease = limiter.report(name, busy, 1.0)
        assert lease.rate == pytest.approx(50.0)
    told = limiter.report("a", {**busy, "n_refused": 5, "retry_after_s": 3.0}, 2.0)
    other = limiter.report("b", busy, 2.5)
    assert told.pause_s == pytest.approx(3.0)
    assert other.pause_s == pytest.approx(2.5)
    assert other.rate == pytest.approx(40.0)
    again = limiter.report("b", {**busy, "n_refused": 5}, 2.6)
    assert again.rate == pytest.approx(40.0)  # of the same episode
    later = limiter.report("b", busy, 6.0)  # a second after the pause
    assert later.rate == pytest.approx(42.0)


def test_the_rate_of_a_server_is_found_by_its_refusals() -> None:
    """A server that admits 40 a second, and two workers that send what they may."""
    limiter, names = Limiter(64, 2, None, 0.0), ("a", "b")
    rates: dict[str, float | None] = dict.fromkeys(names)
    n_admitted = n_refused = 0
    paused_until = 0.0
    for second in range(1, 121):
        sent = {name: round(min(rates[name] or 100.0, 100.0)) for name in names}
        if second < paused_until:
            sent = dict.fromkeys(names, 0)
        over = max(0, sum(sent.values()) - 40)
        for name in names:
            refused_here = over * sent[name] // max(1, sum(sent.values()))
            report = {**REPORT, "n_wanted": 100, "n_places": 32, "n_sent": sent[name],
                      "n_refused": refused_here}  # fmt: skip
            lease = limiter.report(name, report, float(second))
            rates[name] = lease.rate
            paused_until = max(paused_until, second + lease.pause_s)
            if second > 20:
                n_admitted += sent[name] - refused_here
                n_refused += refused_here
    assert n_admitted >= 0.7 * 40 * 100
    assert n_refused <= 0.05 * n_admitted
    assert EPISODE_S < LEASE_S


class Asked:
    """A limiter as a worker sees it: gives leases until it is lost."""

    def __init__(self, *leases: CallLease) -> None:
        self.reports: list[dict[str, Any]] = []
        self._leases = list(leases)

    async def __call__(self, report: dict[str, Any]) -> CallLease:
        self.reports.append(report)
        if not self._leases:
            raise ConnectionError("lost")
        return self._leases.pop(0)


Run = Callable[[Callable[[Request], Any], Asked, int, CallLease], tuple[Leased, list[Any], float]]


@pytest.fixture
def leased(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Make calls with a lease; the model, what came of them, and how many seconds they took."""

    async def main(
        act: Callable[[Request], Any], ask: Asked, n_calls: int, first: CallLease
    ) -> tuple[Leased, list[Any], float]:
        model = Leased(Acting(act), first, ask)
        renewing = asyncio.create_task(model.renew())
        found = await asyncio.gather(
            *(model.complete(REQUEST) for _ in range(n_calls)), return_exceptions=True
        )
        took_s = asyncio.get_running_loop().time()
        await asyncio.sleep(0.1)
        renewing.cancel()
        return model, found, took_s

    def run(*given: Any) -> tuple[Leased, list[Any], float]:
        with computed(monkeypatch) as runner:
            return runner.run(main(*given))

    return run


def test_a_worker_keeps_to_its_places(leased: Run) -> None:
    running = most = 0

    async def act(request: Request) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "I"

    leased(act, Asked(CallLease(3)), 12, CallLease(1))
    assert most == 3


def test_a_worker_keeps_to_its_rate(leased: Run) -> None:
    async def act(request: Request) -> str:
        return "I"

    _, _, took_s = leased(act, Asked(), 30, CallLease(20, 40.0))
    assert (30 - 20) / 40 <= took_s < 1


def test_a_refusal_is_reported_at_once(leased: Run) -> None:
    async def act(request: Request) -> str:
        await asyncio.sleep(0.02)
        raise ModelError("slow down", kind="rate_limited", retry_after_s=7.0)

    ask = Asked(CallLease(3), CallLease(3))
    leased(act, ask, 2, CallLease(3))
    assert ask.reports[1]["n_refused"] >= 1
    assert ask.reports[1]["retry_after_s"] == 7.0


def test_without_a_limiter_half_of_the_last_share_is_left(
    leased: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "LEASE_S", 0.03)
    monkeypatch.setattr(leasing, "RENEW_S", 0.02)

    async def act(request: Request) -> str:
        return "I"

    model, found, _ = leased(act, Asked(CallLease(8, 10.0)), 1, CallLease(2))
    assert not isinstance(found[0], Exception)
    assert model.lease == CallLease(4, 5.0)
