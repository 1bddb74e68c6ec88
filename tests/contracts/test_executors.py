"""Every file of `pearl/runs/executors/` is an executor, tomorrow's file included."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pearl import plugins
from pearl.documents.digest import text_sha256
from pearl.documents.document import from_text
from pearl.errors import PearlError
from pearl.runs.executors import Execute, Outcome, Task, load_executor
from pearl.trace import Event
from tests.root import ROOT
from tests.runs.executors.scripted import PLAN, pearl_in
from tests.skips import needs_ray

NAMES = plugins.names("pearl.runs.executors")

CLUSTER = """
import pathlib, ray, sys
from tests.contracts.test_executors import CHECKS
ray.init(object_store_memory=80 * 2**20, include_dashboard=False, log_to_driver=False)
for i, check in enumerate(CHECKS):
    folder = pathlib.Path(sys.argv[1], str(i))
    folder.mkdir()
    check("ray", folder)
"""

HERE = [name for name in NAMES if name not in ("batch", "ray")]
"""Those that need neither a cluster nor a server."""


def execute(name: str) -> Execute:
    return load_executor(name).run


def story(i: int) -> Task:
    text = f"This is d{i}, a story. It is short, says d{i}."
    load = partial(from_text, text, f"d{i}")
    return Task(f"t{i}", load, plan=PLAN, source=text_sha256(text), extra={"gold": i})


def work() -> list[Task]:
    """Good tasks with bad ones between them, and two that are alike."""
    return [
        story(0),
        Task("none", problem=PearlError("no task at all")),
        story(1),
        Task("no-plan", story(2).document, plan="1. nonsense"),
        Task("no-document", partial(from_text, "", "empty"), plan=PLAN),
        story(1),
        *(story(i) for i in range(3, 12)),
    ]


async def outcomes(name: str, folder: Path, tasks: Any, **options: Any) -> list[Outcome[Task]]:
    async with aclosing(execute(name)(pearl_in(folder, 2), tasks, **options)) as found:
        return [outcome async for outcome in found]


def run(name: str, folder: Path, tasks: Any, **options: Any) -> list[Outcome[Task]]:
    return asyncio.run(outcomes(name, folder, tasks, **options))


def rows(found: list[Outcome[Task]]) -> list[str]:
    kept = [outcome.to_dict() for outcome in found]
    for row in kept:
        row.pop("duration_s", None)
    return [json.dumps(row) for row in kept]


@pytest.mark.parametrize("name", NAMES)
def test_it_has_the_signature_of_every_executor(name: str) -> None:
    said = inspect.signature(execute(name)).parameters
    positional = [p.name for p in said.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == ["pearl", "units"]
    named = {p.name: p for p in said.values() if p.kind is p.KEYWORD_ONLY}
    assert {"listener", "is_stopping"} <= set(named)
    assert all(p.default is not p.empty for p in named.values())
    assert inspect.isasyncgenfunction(execute(name))
    assert load_executor(name).DESCRIPTION.strip()
    assert "\n" not in load_executor(name).DESCRIPTION


@pytest.mark.parametrize("name", HERE)
def test_outcomes_are_in_the_order_of_tasks_failures_included(name: str, tmp_path: Path) -> None:
    tasks = work()
    found = run(name, tmp_path, tasks)
    assert [outcome.unit for outcome in found] == tasks
    failed = [outcome.unit.id for outcome in found if outcome.error is not None]
    assert failed == ["none", "no-plan", "no-document"]
    assert all((outcome.result is None) == (outcome.error is not None) for outcome in found)
    assert all(outcome.trace.id == outcome.unit.id for outcome in found)


@pytest.mark.parametrize("name", HERE)
def test_the_rows_equal_those_of_local(name: str, tmp_path: Path) -> None:
    assert rows(run(name, tmp_path, work())) == rows(run("local", tmp_path, work()))


@pytest.mark.parametrize("name", HERE)
def test_the_listener_gets_every_event(name: str, tmp_path: Path) -> None:
    told: list[tuple[str, Event]] = []
    tasks = [story(i) for i in range(4)]
    found = run(name, tmp_path, tasks, listener=lambda id, event: told.append((id, event)))
    for outcome in found:
        heard = [event for id, event in told if id == outcome.unit.id]
        # How far a call is, and its attempts, are told and not kept.
        kept = [event for event in heard if event.is_recorded]
        assert kept == list(outcome.trace)
        assert len(outcome.trace) > 0


@pytest.mark.parametrize("name", HERE)
def test_tasks_are_read_lazily(name: str, tmp_path: Path) -> None:
    n_taken = n_given = 0
    ahead = 0

    def tasks() -> Iterator[Task]:
        nonlocal n_taken
        for i in range(200):
            n_taken += 1
            yield story(i)

    async def main() -> None:
        nonlocal n_given, ahead
        async with aclosing(execute(name)(pearl_in(tmp_path, 2), tasks())) as found:
            async for _ in found:
                ahead = max(ahead, n_taken - n_given)
                n_given += 1

    asyncio.run(main())
    assert (n_taken, n_given) == (200, 200)
    assert ahead <= 40


@pytest.mark.parametrize("name", HERE)
def test_started_tasks_are_finished_after_a_stop(name: str, tmp_path: Path) -> None:
    found: list[Outcome[Task]] = []

    async def main() -> None:
        stopping: AsyncIterator[Outcome[Task]] = execute(name)(
            pearl_in(tmp_path, 1), [story(i) for i in range(40)], is_stopping=lambda: len(found) > 3
        )
        async for outcome in stopping:
            found.append(outcome)

    asyncio.run(main())
    assert 3 < len(found) < 40
    assert all(outcome.error is None for outcome in found)


@pytest.mark.parametrize("name", HERE)
def test_closing_ends_the_work(name: str, tmp_path: Path) -> None:
    async def main() -> int:
        found = execute(name)(pearl_in(tmp_path, 2), [story(i) for i in range(40)])
        await anext(found)
        await found.aclose()
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize("name", HERE)
def test_no_tasks_give_no_outcomes(name: str, tmp_path: Path) -> None:
    assert run(name, tmp_path, []) == []


CHECKS = (
    test_outcomes_are_in_the_order_of_tasks_failures_included,
    test_the_rows_equal_those_of_local,
    test_the_listener_gets_every_event,
    test_tasks_are_read_lazily,
    test_started_tasks_are_finished_after_a_stop,
    test_closing_ends_the_work,
    test_no_tasks_give_no_outcomes,
)


@pytest.mark.slow
@needs_ray
def test_ray_passes_the_same_checks(tmp_path: Path) -> None:
    """In a process of its own, with one cluster for all: it takes its time to start."""
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, str(tmp_path)],
        capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
