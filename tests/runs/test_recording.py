"""Rows and cached replies belong to one task, one server and one file of weights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

from pearl import Document, Pearl
from pearl.errors import DataError
from pearl.llm.backends import ModelSettings, create_model
from pearl.llm.backends.scripted import Scripted
from pearl.runs.executors import Outcome, Task
from pearl.runs.identity import fingerprint
from pearl.runs.session import run_recorded
from pearl.runs.store import RunSpec, Store
from pearl.trace import Trace
from tests.server import Server, serving

SPEC = RunSpec(("execute",), {}, {})


def of(name: str) -> Task:
    return Task("same", lambda: Document(name), plan="p", source=name, extra={"of": name})


async def last_alone(
    pearl: Pearl, tasks: Iterable[Task], **_: Any
) -> AsyncGenerator[Outcome[Task], None]:
    """Gives all tasks but the last back without an outcome, as an executor that is stopped."""
    *_, task = tasks
    yield Outcome(task, None, DataError("no"), Trace(task.id))


def test_tasks_with_the_same_id_in_a_stopped_run(tmp_path: Path) -> None:
    async def main(execute: Any) -> None:
        tasks = enumerate([of("a"), of("b")])
        async for _ in run_recorded(Pearl(), tasks, run, execute=execute):
            pass

    async def both(
        pearl: Pearl, tasks: Iterable[Task], **_: Any
    ) -> AsyncGenerator[Outcome[Task], None]:
        for task in tasks:
            yield Outcome(task, None, DataError("no"), Trace(task.id))

    with Store.open(tmp_path) as store:
        run = store.begin(SPEC)
        asyncio.run(main(last_alone))
        asyncio.run(main(both))
        assert [row["of"] for row in store.rows(run.id)] == ["a", "b"]
        asyncio.run(main(last_alone))
        assert [row["of"] for row in store.rows(run.id)] == ["a", "b"]


def test_cached_replies_belong_to_one_server(tmp_path: Path, openai_server: Server) -> None:
    async def ask(store: Store, url: str) -> None:
        model = create_model("openai:default", ModelSettings(url))
        async with Pearl(model, base_url=url, replies=store) as pearl:
            await pearl.answer("Why?", Document("It rained."))

    with serving() as other, Store.open(tmp_path) as store:
        for url in (openai_server.url, other.url, openai_server.url):
            asyncio.run(ask(store, url))
        assert [len(each.requests) for each in (openai_server, other)] == [1, 1]


def test_other_weights_in_the_same_folder_are_another_model(tmp_path: Path) -> None:
    def told() -> object:
        return fingerprint(Pearl(Scripted(lambda request: "", name=f"plugin:{tmp_path}")))

    (tmp_path / "model.safetensors").write_bytes(b"one")
    before = told()
    assert told() == before
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert told() != before
