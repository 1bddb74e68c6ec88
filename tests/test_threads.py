"""One `Pearl` in many threads: limits, budget, waiting, cancelling and interrupts hold for all of them."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import pearl
from pearl.errors import BudgetError
from pearl.llm import Request
from pearl.llm.client import Client, ClientSettings
from pearl.llm.middleware.budget import Budget
from tests.models import Acting

N = 32
PLAN = '1. why = FIND(CTX, "why") : Find it'

Run = Callable[[object], object]
EACH_WAY = pytest.mark.parametrize("run", [pearl.run, asyncio.run], ids=["pearl.run", "own loops"])
"""All threads in the background loop of `pearl.run`, or each with an event loop of its own."""


class Busy:
    """Counts the calls in flight of all threads; each takes a random moment."""

    def __init__(self, seed: int = 0) -> None:
        self.n = self.most = self.total = 0
        self._lock = threading.Lock()
        self._random = random.Random(seed)

    async def __call__(self, request: Request) -> str:
        with self._lock:
            self.n += 1
            self.total += 1
            self.most = max(self.most, self.n)
        try:
            await asyncio.sleep(self._random.random() / 500)
            return "ok"
        finally:
            with self._lock:
                self.n -= 1


def shared(busy: Busy, **settings: object) -> pearl.Pearl:
    budget = settings.pop("budget", None)
    model = Acting(busy)
    model.reads_prompts = True  # type: ignore[misc]
    client = Client(ClientSettings(model, **settings), budget=budget)  # type: ignore[arg-type]
    return pearl.Pearl(client)


def answered(asker: pearl.Pearl, run: Run, number: int) -> str:
    document = pearl.Document(f"Document {number}. Ada sold the boat because it leaked.")
    try:
        run(asker.execute(PLAN, document))
    except BudgetError:
        return "refused"
    return "answered"


@EACH_WAY
def test_a_spent_budget_ends_every_thread(run: Run) -> None:
    busy = Busy()
    asker = shared(busy, budget=Budget(max_calls=10))
    with ThreadPoolExecutor(N) as threads:
        ends = list(threads.map(lambda i: answered(asker, run, i), range(2 * N)))
    assert ends.count("answered") == busy.total == asker.client.budget.spent.n_calls == 10
    assert ends.count("refused") == 2 * N - 10


@EACH_WAY
@pytest.mark.parametrize("concurrency", [1, 3])
def test_the_concurrency_holds_for_all_threads(run: Run, concurrency: int) -> None:
    busy = Busy()
    asker = shared(busy, concurrency=concurrency)
    with ThreadPoolExecutor(N) as threads:
        ends = list(threads.map(lambda i: answered(asker, run, i), range(2 * N)))
    assert ends == ["answered"] * 2 * N
    assert busy.most <= concurrency
    assert asker.client.limiter.limits.n_running == 0


@EACH_WAY
def test_cancelled_calls_free_their_slots(run: Run) -> None:
    busy, rng = Busy(1), random.Random(2)
    asker = shared(busy, concurrency=2, budget=Budget(max_calls=1_000))

    async def impatient(number: int, wait_s: float) -> bool:
        document = pearl.Document(f"Document {number}.")
        try:
            async with asyncio.timeout(wait_s):
                await asker.execute(PLAN, document)
        except TimeoutError:
            return False
        return True

    waits = [rng.choice([0.0, rng.random() / 100, 60.0]) for _ in range(4 * N)]
    with ThreadPoolExecutor(N) as threads:
        ends = list(threads.map(lambda i: run(impatient(i, waits[i])), range(4 * N)))
    assert all(ends[i] for i, wait_s in enumerate(waits) if wait_s == 60.0)
    assert not all(ends)
    assert answered(asker, run, -1) == "answered"
    assert (busy.n, asker.client.limiter.limits.n_running) == (0, 0)
    assert busy.most <= 2


def test_the_end_of_one_thread_leaves_the_others_alone() -> None:
    async def leave(request: Request) -> str:
        raise SystemExit(3)

    busy = Busy()
    asker, leaving = shared(busy), pearl.Pearl(Acting(leave))
    with ThreadPoolExecutor(N) as threads:
        ends = threads.map(lambda i: answered(asker, pearl.run, i), range(N))
        with pytest.raises(SystemExit):
            pearl.run(leaving.execute(PLAN, pearl.Document("Ada.")))
        assert list(ends) == ["answered"] * N


def test_a_context_variable_of_the_caller_is_seen() -> None:
    from contextvars import ContextVar

    name = ContextVar("name", default="")

    async def seen() -> str:
        return name.get()

    def in_thread(value: str) -> str:
        name.set(value)
        return pearl.run(seen())

    with ThreadPoolExecutor(4) as threads:
        values = [str(i) for i in range(N)]
        assert list(threads.map(in_thread, values)) == values


INTERRUPTED = """
import asyncio, sys, threading
import pearl
from tests.models import Acting

async def act(request):
    print("asked", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled", flush=True)

asker = pearl.Pearl(Acting(act))
ask = lambda: pearl.run(asker.execute('1. why = FIND(CTX, "why") : a', pearl.Document("Ada.")))
threading.Thread(target=ask, daemon=True).start()
try:
    ask()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def test_an_interrupt_cancels_the_call_of_the_main_thread() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == [b"asked\n"] * 2
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out.splitlines() == [b"cancelled", b"interrupted", b"cancelled"]
    assert process.returncode == 130, err.decode()
