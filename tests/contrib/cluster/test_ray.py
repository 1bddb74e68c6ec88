"""The Ray executor: outcomes equal those of `local`, whatever is killed; pickled outcomes."""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from pearl import Document, Pearl
from pearl.contrib.cluster import ray as on_ray
from pearl.contrib.cluster.ledger import Terms
from pearl.contrib.cluster.ray import RayWorker
from pearl.errors import DataError, ModelError, UsageError
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.client import Client, ClientSettings
from pearl.runs.executors import Outcome, Resources, Task, local
from pearl.runs.identity import version
from tests.contrib.cluster.clustered import ROOT
from tests.skips import needs_ray

TERMS = Terms.of(Pearl().clients)
PLAN = '1. hero = FIND(CTX, "the hero") : Who\n2. why = FIND(CTX, hero) : Why'


# --- the cluster


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of 200 documents on three nodes; in a process of its own, as Ray changes its."""
    folder = tmp_path_factory.mktemp("cluster")
    done = subprocess.run(
        [sys.executable, "-m", "tests.contrib.cluster.clustered", "all", str(folder), "200", "3"],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ray", "worker_killed", "node_killed"])
def test_every_outcome_is_that_of_local(clustered: dict[str, Any], name: str) -> None:
    found = clustered[name]
    assert (found["lost"], found["twice"], found["failed"]) == (0, 0, 0)
    assert found["identical"]
    assert found.get("kills") == (2 if name == "worker_killed" else None)


@needs_ray
@pytest.mark.slow
def test_nodes_without_pearl_end_the_run(clustered: dict[str, Any]) -> None:
    assert "no worker starts on the cluster: ModuleNotFoundError" in clustered["missing"]


def test_a_model_that_is_an_object_is_refused() -> None:
    pearl = Pearl(Scripted(str))

    async def main() -> None:
        await anext(on_ray.run(pearl, []))

    with pytest.raises(UsageError, match="pass its name"):
        asyncio.run(main())


# --- what travels


def travelled(
    task: Task, reply: Callable[[Request], str] = str
) -> tuple[Outcome[Task], Outcome[Task]]:
    """The outcome of a task here, and as it comes from a worker."""

    async def main() -> tuple[Outcome[Task], Outcome[Task]]:
        pearl = Pearl(Scripted(reply))
        here = await anext(local.run(pearl, [task]))
        worker = RayWorker({}, TERMS, ".")
        worker._resources = Resources(pearl)
        found, halted = pickle.loads(pickle.dumps(await worker.work(task, version())))
        assert halted is None
        return here, replace(found, unit=task)

    return asyncio.run(main())


def refused(request: Request) -> str:
    raise ModelError("no more today", kind="bad_request", help="tomorrow")


def unreadable() -> Document:
    raise DataError("not there", path="a.txt", line=3)


class OddError(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__("odd")


def broken() -> Document:
    raise ZeroDivisionError("once")


def odd() -> Document:
    raise OddError(1, 2)


DOCUMENT = Document('Ada "left the boat" to é \U0001f600. It was late.', "a")


def without_times(outcome: Outcome[Task]) -> tuple[Any, list[Any]]:
    events = [{**asdict(event), "t_s": 0, "duration_s": 0} for event in outcome.trace]
    return {**outcome.to_dict(), "duration_s": 0}, events


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
def test_outcome_of_a_worker_equals_the_local_one(
    task: Task, reply: Callable[[Request], str]
) -> None:
    here, found = travelled(task, reply)
    assert without_times(found) == without_times(here)
    assert type(found.error) is type(here.error)


def test_an_error_that_cannot_be_pickled_keeps_its_text() -> None:
    _, found = travelled(Task("g", odd, plan=PLAN))
    assert str(found.error) == "OddError: odd"


def test_calls_of_a_worker_pass_the_same_middleware_as_calls_of_python() -> None:
    settings = {"base_url": "http://127.0.0.1:9/v1", "planner_model": "openai:p"}
    own = Pearl("openai:m", concurrency=3, **settings)
    worker = RayWorker(own.settings, Terms.of(own.clients), ".")._ready(version()).pearl
    assert {role: c.name for role, c in worker.clients.items()} == {
        role: c.name for role, c in own.clients.items()
    }
    client = worker.client
    # The ledger keeps replies, maybe for other workers only; it has the limits.
    here = Client(own.client.settings, replies=client.replies, limiter=client.limiter)
    assert [type(layer) for layer in client.layers] == [type(layer) for layer in here.layers]
    assert client.settings == here.settings
    assert client.identity == here.identity


@pytest.mark.parametrize(
    ("driver", "model", "said"),
    [(None, "scripted:", "scripted"), ("pearl 9", "extractive", "the driver pearl 9")],
)
def test_worker_reports_why_it_cannot_run(driver: str | None, model: str, said: str) -> None:
    terms = replace(TERMS, clients=dict.fromkeys(TERMS.clients, ClientSettings(model)))
    worker = RayWorker({}, terms, ".")
    task = Task("a", lambda: DOCUMENT, plan=PLAN)
    outcome, error = asyncio.run(worker.work(task, driver or version()))
    assert outcome is None
    assert isinstance(error, UsageError)
    assert said in str(error)


@needs_ray
@pytest.mark.parametrize("address", ["127.0.0.1:{}", "ray://127.0.0.1:{}", "127.0.0.1:99999"])
def test_a_cluster_that_is_not_there_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", address.format(unused.getsockname()[1]))
        with (
            pytest.raises(UsageError, match=r"no Ray cluster at .*127\.0\.0\.1"),
            on_ray._cluster(),
        ):
            pass
