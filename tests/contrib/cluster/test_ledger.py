"""Lines of workers to the ledger of a client, in one process: what they share, and what a lost worker leaves."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pearl.contrib.cluster.ledger import Account, Ledger, Terms, WorkerChannel, _RemoteReplies
from pearl.errors import BudgetError, ModelError
from pearl.llm import Completion
from pearl.llm.client import Client, ClientSettings
from pearl.llm.middleware.budget import Budget
from pearl.llm.prices import Price
from pearl.runs.store import Store
from tests.faults.calls import request
from tests.server import FAULTS, Canned, Server, completion


def client_of(server: Server, budget: Budget | None = None, **settings: Any) -> Client:
    server.takes_constraints = True
    settings = {
        "concurrency": 4,
        "attempts": 1,
        "prefix": "off",
        "base_url": server.url,
        **settings,
    }
    return Client(ClientSettings("openai:m", **settings), budget=budget)


class Worker:
    """A worker of a ledger; what it sends and gets is pickled, as between machines."""

    def __init__(self, ledger: Ledger, driver: Client) -> None:
        self._channel = WorkerChannel()
        terms = pickle.loads(pickle.dumps(Terms.of({"main": driver})))
        self.replies = _RemoteReplies(self._channel, has_any=True)
        self.client = self._channel.clients(terms)["main"]
        self.account = Account(ledger)
        self._asked: list[asyncio.Task[Any]] = []
        self._serving = asyncio.create_task(self.account.serve(self._receive, self._send))

    async def _receive(self) -> Any:
        return pickle.loads(pickle.dumps(await self._channel.messages()))

    async def _send(self, answers: Any) -> None:
        self._channel.take(pickle.loads(pickle.dumps(answers)))

    def ask(self, number: int) -> asyncio.Task[Any]:
        self._asked.append(asyncio.create_task(self.client.complete(request(number))))
        return self._asked[-1]

    async def lose(self) -> None:
        """End it as a machine that is switched off."""
        tasks = (self._serving, *self._asked)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.aclose()


def working(driver: Client, work: Callable[..., Awaitable[None]], n: int = 2) -> None:
    """Do something with so many workers of a driver."""

    async def main() -> None:
        ledger = Ledger({"main": driver})
        workers = [Worker(ledger, driver) for _ in range(n)]
        try:
            await work(*workers)
            for worker in workers:
                await worker.account.settled()
        finally:
            for worker in workers:
                await worker.lose()

    asyncio.run(asyncio.wait_for(main(), 60))


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def test_what_a_lost_worker_has_is_given_to_others_and_counts(openai_server: Server) -> None:
    driver = client_of(openai_server, Budget(max_calls=2), concurrency=1)

    async def work(lost: Worker, other: Worker) -> None:
        openai_server.hold_after = 0
        lost.ask(1)
        await until(lambda: len(openai_server.requests) == 1)
        asked = other.ask(1)  # waits for the same reply, then for the one slot
        await until(lambda: bool(other.account._running))
        await lost.lose()
        openai_server.hold_after = None
        assert (await asked).text == "ok"

    working(driver, work)
    spent = driver.budget.spent
    assert (spent.n_calls, spent.n_unsure_calls, spent.n_failed_calls) == (2, 1, 1)
    assert driver.limiter.limits.n_running == 0


def test_a_call_is_shared_and_one_that_is_cancelled_leaves_nothing(openai_server: Server) -> None:
    driver = client_of(openai_server, Budget(max_calls=2), concurrency=1)

    async def work(first: Worker, second: Worker) -> None:
        openai_server.hold_after = 0
        one = first.ask(1)
        await until(lambda: len(openai_server.requests) == 1)
        again, two = second.ask(1), second.ask(2)
        await until(lambda: driver.limiter.limits.n_waiting == 1)
        two.cancel()
        three = second.ask(3)
        openai_server.hold_after = None
        await asyncio.gather(one, three)
        assert (await again).is_remembered
        assert two.cancelled()

    working(driver, work)
    assert [seen.prompt for seen in openai_server.requests] == ["1", "3"]
    assert driver.budget.spent.n_calls == 2


def test_a_reply_is_in_the_store_of_the_driver_before_its_call_ends(
    openai_server: Server, tmp_path: Path
) -> None:
    with Store.open(tmp_path) as store:
        driver = Client(client_of(openai_server).settings, replies=store)

        async def work(first: Worker, second: Worker) -> None:
            await first.ask(1)
            (n_stored,) = store.all("SELECT count(*) FROM replies")[0]
            assert n_stored == 1
            assert (await second.ask(1)).is_remembered

        working(driver, work)
    assert len(openai_server.requests) == 1


def test_a_reply_that_is_kept_twice_is_no_error(openai_server: Server) -> None:
    driver = client_of(openai_server)

    async def work(worker: Worker) -> None:
        replies = worker.replies
        async with replies.claimed(b"key") as known:
            assert known is None
            for _ in range(2):
                await replies.keep(b"key", Completion("yes", "m"))

    working(driver, work, n=1)


def test_the_time_of_the_run_ends_calls_of_workers(openai_server: Server) -> None:
    driver = client_of(openai_server, Budget(max_time_s=0.5))
    openai_server.hold_after = 0

    async def work(worker: Worker) -> None:
        with pytest.raises(BudgetError, match=r"max_minutes`: the limit of 0.5 s is over"):
            await worker.ask(1)

    working(driver, work, n=1)
    assert driver.budget.n_refused > 0
    assert driver.budget.spent.n_unsure_calls == 1


def test_an_error_that_ends_the_run_ends_the_waits_of_all_workers(openai_server: Server) -> None:
    openai_server.answer = lambda seen: FAULTS["500" if seen.prompt == "1" else "401"]
    driver = client_of(openai_server, attempts=4, first_wait_s=600.0)

    async def work(first: Worker, second: Worker) -> None:
        waiting = first.ask(1)  # ten minutes for the next attempt
        await until(
            lambda: (driver.limiter.limits.n_sent, driver.limiter.limits.n_running) == (1, 0)
        )
        for asked in (second.ask(2), waiting):
            with pytest.raises(ModelError, match="answered 401"):
                await asked

    working(driver, work)


def test_as_many_calls_are_allowed_as_by_a_budget_of_one_process(openai_server: Server) -> None:
    """The server counts more tokens than we do, which the budget learns from its replies."""
    usage = {"prompt_tokens": 500, "completion_tokens": 1}
    openai_server.answer = lambda seen: Canned({**completion("ok"), "usage": usage})
    n_calls = []

    async def spend_all(asked: Client | Worker) -> None:
        client = asked.client if isinstance(asked, Worker) else asked
        openai_server.forget()
        with suppress(BudgetError):
            for number in range(100):
                await client.complete(request(10**300 + number))
        n_calls.append(len(openai_server.requests))
        await client.aclose()

    price = Price.read("input=2,cached=1,write=3,output=10")
    budgets = [Budget(max_tokens=4_000, reply_tokens=100, price=price) for _ in "ab"]
    drivers = [client_of(openai_server, budget) for budget in budgets]
    asyncio.run(spend_all(drivers[0]))
    working(drivers[1], spend_all, n=1)
    assert 0 < n_calls[0] == n_calls[1] < 100
    assert budgets[0].spent == budgets[1].spent
    assert budgets[0].cost_usd == budgets[1].cost_usd
