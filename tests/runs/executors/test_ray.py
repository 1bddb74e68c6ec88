"""A cluster of Ray: the same outcomes as here, whatever is killed; serialisation."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pearl import Document, Pearl
from pearl.errors import DataError, ModelError, PlanError, UsageError
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.llm.client import Client, ClientSettings
from pearl.runs.executors import Outcome, Task, local
from pearl.runs.executors import ray as on_ray
from pearl.runs.executors.ray.worker import (
    RayWorker,
    WorkerConfig,
    packed_outcome,
    unpacked_outcome,
)
from pearl.runs.identity import version
from tests.runs.executors.clustered import ROOT
from tests.skips import needs_ray

PLAN = '1. hero = FIND(CTX, "the hero") : Who\n2. why = FIND(CTX, hero) : Why'


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
@pytest.mark.parametrize("name", ["ray", "worker_killed", "node_killed", "driver_killed"])
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
    assert "the driver pearl 0.0.1" in clustered["skew"]
    assert clustered["skew"].count("\n") < 3


@pytest.mark.slow
def test_importing_the_executor_does_not_import_ray() -> None:
    code = "import sys, pearl.runs.executors.ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_a_model_that_is_an_object_is_refused() -> None:
    pearl = Pearl(Scripted(str))

    async def main() -> None:
        await anext(on_ray.run(pearl, []))

    with pytest.raises(UsageError, match="pass its name"):
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
    worker = RayWorker(WorkerConfig(version(), {}, here.settings, "."))
    client = worker._ready(version()).pearl.client
    assert [type(layer) for layer in client.layers] == [type(layer) for layer in here.layers]
    assert client.settings == here.settings
    assert client.identity == here.identity


def test_a_worker_says_why_it_can_run_nothing() -> None:
    def said(driver: str, model: str = "extractive") -> dict[str, Any]:
        worker = RayWorker(WorkerConfig(driver, {}, ClientSettings(model), "."))
        return asyncio.run(worker.work(Task("a", lambda: DOCUMENT, plan=PLAN), driver))["refused"]  # type: ignore[no-any-return]

    assert said(version(), model="scripted:")["type"] == "UsageError"
    skew = said("pearl 9")
    assert (skew["type"], "the driver pearl 9" in skew["text"]) == ("UsageError", True)
