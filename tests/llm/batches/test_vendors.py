"""What batches of every vendor have in common; their servers refuse requests of another form."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from pearl import Pearl
from pearl.errors import BudgetError, ModelError
from pearl.llm.middleware.budget import Budget
from pearl.llm.prices import Price
from pearl.runs.executors import Outcome, Task
from pearl.runs.executors.batch import BatchProgress, run
from pearl.runs.store import Store
from tests.llm.batches.openai_server import BatchServer
from tests.llm.batches.other_servers import VENDORS, settings_of
from tests.runs.executors.batch_tasks import PACE, tasks_of

LIST = '1. a = FIND(CTX, "the boats") : find\n2. n = COUNT(a) : count'


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
    server.on(".", lambda seen: digest(seen.prompt))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def execute(vendor: str, server: BatchServer) -> Callable[..., list[Outcome[Task]]]:
    """Runs tasks in batches."""

    def execute(
        tasks: list[Task], *, budget: Budget | None = None, settings: Any = {}, **options: Any
    ) -> list[Outcome[Task]]:
        model, url = settings_of(vendor, server)
        options = {"pace": PACE, "batch_threshold": 0, **options}

        async def main() -> list[Outcome[Task]]:
            async with Pearl(model, base_url=url, budget=budget, **settings) as pearl:
                return [outcome async for outcome in run(pearl, tasks, **options)]

        return asyncio.run(main())

    return execute


def texts(outcomes: list[Outcome[Task]]) -> list[str]:
    return [o.result.text if o.result else repr(o.error) for o in outcomes]


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


def test_the_form_of_a_reply_is_constrained_in_the_batch(
    server: BatchServer, execute: Any
) -> None:
    server._rules.clear()
    server.on(".", '{"value": ["one", "two"], "passages": []}')
    tasks = [Task(t.id, t.document, plan=LIST) for t in tasks_of(4, 1)]
    assert texts(execute(tasks)) == ["2"] * 4
    assert [len(job.rows) for job in server.jobs] == [4]
    assert all('"pearl_ref"' in json.dumps(row) for row in server.jobs[0].rows)
    assert not server.requests
