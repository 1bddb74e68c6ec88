"""The local executor: order of outcomes, loading of documents."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from itertools import product

import pytest

from pearl import Document, Pearl
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.runs.executors import Listener, Outcome, Task
from pearl.runs.executors.local import AHEAD, run
from pearl.trace import Event, ModelAttempted
from tests.server import Server

PLAN = '1. hero = FIND(CTX, "the hero of {}") : Who\n2. why = FIND(CTX, hero) : Why'


class Shelf:
    """Documents that are counted when they are loaded."""

    def __init__(self) -> None:
        self.loaded: list[str] = []

    def load(self, name: str) -> Document:
        self.loaded.append(name)
        return Document(f"This is {name}. It is short.", name)


def outcomes(pearl: Pearl, tasks: list[Task]) -> list[Outcome[Task]]:
    async def main() -> list[Outcome[Task]]:
        return [outcome async for outcome in run(pearl, tasks)]

    return asyncio.run(main())


def digest(request: Request) -> str:
    return sha256(request.prompt.encode()).hexdigest()


def tasks_of(shelf: Shelf, n_plans: int, names: str) -> list[Task]:
    return [
        Task(f"{i}{name}", partial(shelf.load, name), plan=PLAN.format(i))
        for i, name in product(range(n_plans), names)
    ]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_document_is_loaded_once_for_tasks_taken_in_advance(concurrency: int) -> None:
    shelf, model = Shelf(), Scripted(digest)
    tasks = tasks_of(shelf, 2, "abc")
    assert len(tasks) <= AHEAD * concurrency
    found = outcomes(Pearl(model, concurrency=concurrency), tasks)
    assert [outcome.unit.id for outcome in found] == ["0a", "0b", "0c", "1a", "1b", "1c"]
    assert all(outcome.error is None for outcome in found)
    assert sorted(shelf.loaded) == ["a", "b", "c"]


def test_unhashable_loaders_are_called_each() -> None:
    def task(name: str, load: Callable[[], Document]) -> Task:
        return Task(name, load, plan=PLAN.format(0))

    unhashable = partial(lambda parts: Document(" ".join(parts)), ["Ada", "left."])
    other = partial(lambda parts: Document(" ".join(parts)), ["Nils", "left."])
    found = outcomes(Pearl(Scripted(digest)), [task("a", unhashable), task("b", other)])
    assert found[0].result
    assert found[1].result
    assert found[0].result.text != found[1].result.text


def test_closing_does_not_wait_for_loading_documents() -> None:
    shelf, may_go_on = Shelf(), threading.Event()

    def slow() -> Document:
        may_go_on.wait()
        return shelf.load("slow")

    async def main() -> set[str]:
        tasks = [*tasks_of(shelf, 1, "a"), Task("slow", slow, plan=PLAN)]
        found = run(Pearl(Scripted(digest)), tasks)
        await anext(found)
        await found.aclose()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        may_go_on.set()  # a thread cannot be ended
        return {repr(task) for task in left}

    assert asyncio.run(main()) == set()


class Hearing:
    """A listener that says whether it hears attempts."""

    def __init__(self, hears_attempts: bool) -> None:
        self.hears_attempts = hears_attempts
        self.kinds: set[type[Event]] = set()

    def __call__(self, id: str, event: Event) -> None:
        self.kinds.add(type(event))


def test_a_listener_hears_attempts_unless_it_says_otherwise(openai_server: Server) -> None:
    openai_server.on(".", "Ada sold it.")
    willing, other, told = Hearing(True), Hearing(False), set[type[Event]]()

    async def ask(listener: Listener) -> None:
        pearl = Pearl("openai:m", base_url=openai_server.url)
        task = Task("t", lambda: Document("Ada sold it."), plan='1. a = FIND(CTX, "who") : x')
        async for _ in run(pearl, [task], listener=listener):
            pass

    for listener in (willing, other, lambda _, event: told.add(type(event))):
        asyncio.run(ask(listener))
    assert willing.kinds == told == {*other.kinds, ModelAttempted}
