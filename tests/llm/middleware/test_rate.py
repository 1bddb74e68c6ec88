"""Learned limits of concurrency and rate, against simulated servers on a computed clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from pearl.errors import ModelError
from pearl.llm import Completion, Constrains, Model, Request, Usage
from pearl.llm.middleware.rate import Limited
from pearl.llm.middleware.retry import Retrying
from tests.clock import ComputedLoop
from tests.llm.middleware.gated import request
from tests.models import telling_waits

MOST_SILENT_S = 15.0

Rate = Callable[[float], float]
Waits = list[tuple[float, str, float]]
"""When, why, and for how many seconds a call is reported to wait."""


@dataclass
class Bucketed:
    """Admits `rate(t)` units per second, and `burst_s` seconds of them at once."""

    rate: Rate
    burst_s: float = 1.0
    level: float = -1.0
    at: float = 0.0

    def admits(self, t: float, cost: float = 1.0) -> bool:
        most = max(1.0, self.rate(t) * self.burst_s)
        level = most if self.level < 0 else self.level + (t - self.at) * self.rate(t)
        self.level, self.at = min(most, level), t
        if self.level < cost:
            return False
        self.level -= cost
        return True


@dataclass
class Windowed:
    """Admits `n` calls in each window of `window_s` seconds."""

    n: int
    window_s: float
    window: int = -1
    left: int = 0

    def admits(self, t: float, cost: float = 1.0) -> bool:
        if int(t / self.window_s) != self.window:
            self.window, self.left = int(t / self.window_s), self.n
        self.left -= 1
        return self.left >= 0


@dataclass
class Faulty:
    """Rejects a share of the calls at random, besides those that its limit rejects."""

    share: float
    limit: Bucketed = field(default_factory=lambda: Bucketed(lambda t: 1e9))
    random: random.Random = field(default_factory=lambda: random.Random(3))

    def admits(self, t: float, cost: float = 1.0) -> bool:
        return self.limit.admits(t) and self.random.random() >= self.share


class Simulated:
    """A model on a server that admits calls as `policy` does, outside of storms."""

    name = identity = "openai:simulated"
    window = None
    notice = ""
    reads_prompts = False
    constrains = Constrains()

    def __init__(
        self,
        loop: ComputedLoop,
        policy: Bucketed | Windowed | Faulty | None = None,
        *,
        is_stormy: Callable[[float], bool] = lambda t: False,
        retry_after_s: float | Rate | None = None,
        call_s: float = 0.5,
        by_length: bool = False,
    ) -> None:
        self._loop = loop
        self._policy = policy
        self._is_stormy = is_stormy
        self._retry_after_s = retry_after_s
        self._call_s = call_s
        self._by_length = by_length
        self.sent: list[float] = []
        self.admitted: list[float] = []
        self.refused: list[float] = []
        self.n_units = 0

    async def complete(self, request: Request) -> Completion:
        now = self._loop.time()
        self.sent.append(now)
        cost = len(request.prompt) if self._by_length else 1
        if self._is_stormy(now) or (self._policy and not self._policy.admits(now, cost)):
            self.refused.append(now)
            await asyncio.sleep(0.02)
            wait_s = self._retry_after_s
            wait_s = wait_s(self._loop.time()) if callable(wait_s) else wait_s
            raise ModelError("slow down", kind="rate_limited", retry_after_s=wait_s)
        self.admitted.append(now)
        self.n_units += cost
        await asyncio.sleep(self._call_s)
        return Completion("ok", self.name, Usage())

    async def aclose(self) -> None:
        """Hold nothing."""

    def goodput(self, begin: float, end: float) -> float:
        return sum(begin <= t < end for t in self.admitted) / (end - begin)

    def refused_share(self, begin: float, end: float) -> float:
        n = sum(begin <= t < end for t in self.refused)
        return n / (n + sum(begin <= t < end for t in self.admitted))


def retrying(limited: Limited, loop: ComputedLoop, waits: Waits) -> Model:
    return telling_waits(
        Retrying(limited, first_wait_s=0.5, breaker=limited.breaker),
        lambda wait: waits.append((loop.time(), wait.reason, wait.wait_s)),
    )


def work(
    server: Simulated, loop: ComputedLoop, patch: pytest.MonkeyPatch, n_calls: int, n_workers: int
) -> float:
    """Make so many calls; the seconds that they take. None of them may fail for good."""
    limited, todo = Limited(server, n_workers), iter(range(n_calls))

    async def worker() -> None:
        for number in todo:
            await retrying(limited, loop, []).complete(request(f"question {number}"))

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(n_workers)))

    loop.run(main(), patch)
    return loop.time()


def saturate(
    server: Simulated,
    loop: ComputedLoop,
    patch: pytest.MonkeyPatch,
    until_s: float,
    n_places: int = 64,
    prompt: Callable[[], str] = lambda: "who?",
) -> int:
    """Keep the server busy with twice as many workers as slots; how many calls failed for good."""
    limited, n_failed = Limited(server, n_places), 0

    async def worker() -> None:
        nonlocal n_failed
        while loop.time() < until_s:
            try:
                await retrying(limited, loop, []).complete(request(prompt()))
            except ModelError:
                n_failed += 1

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(2 * n_places)))

    loop.run(main(), patch)
    return n_failed


def lasting(seconds: float, since: float = 0.0) -> Callable[[float], bool]:
    return lambda now: since <= now < since + seconds


# --- limits of a server


@pytest.mark.parametrize(
    ("policy", "call_s", "retry_after_s", "steady_s", "rate", "least"),
    [
        pytest.param(Bucketed(lambda t: 50, 60.0), 0.5, 1.0, 180, 50, 0.92, id="long burst", marks=pytest.mark.slow),
        pytest.param(Bucketed(lambda t: 20, 0.0), 0.1, None, 120, 20, 0.85, id="no burst"),
        pytest.param(Windowed(600, 60.0), 0.5, lambda t: 60 - t % 60, 120, 10, 0.85, id="minutes", marks=pytest.mark.slow),
        pytest.param(Faulty(0.05), 1.6, 1.0, 60, 40 * 0.95, 0.9, id="random"),
    ],
)  # fmt: skip
def test_a_limit_of_requests_is_used(
    policy: Bucketed | Windowed | Faulty, call_s: float, retry_after_s: float | Rate | None,
    steady_s: float, rate: float, least: float, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    loop = ComputedLoop()
    server = Simulated(loop, policy, call_s=call_s, retry_after_s=retry_after_s)
    until_s = steady_s + 60
    n_failed = saturate(server, loop, monkeypatch, until_s)
    assert server.goodput(steady_s, until_s) >= least * rate
    assert server.refused_share(steady_s, until_s) <= (0.06 if isinstance(policy, Faulty) else 0.04)
    assert n_failed == 0


@pytest.mark.parametrize("burst_s", [1.0, pytest.param(60.0, marks=pytest.mark.slow)])
def test_a_limit_of_tokens_is_used(burst_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long calls are rejected more often than short ones."""
    loop, draw = ComputedLoop(), random.Random(1)
    policy = Bucketed(lambda t: 20_000.0, burst_s)
    server = Simulated(loop, policy, retry_after_s=1.0, by_length=True)
    n_failed = saturate(
        server, loop, monkeypatch, 100.0,
        prompt=lambda: "w" * max(1, round(1_000 * draw.lognormvariate(-0.5, 1.0))),
    )  # fmt: skip
    assert len(server.refused) < 0.1 * len(server.admitted)
    assert n_failed < 0.005 * len(server.admitted)
    assert server.n_units > 0.6 * 20_000.0 * 100


@pytest.mark.parametrize("per_minute", [30, 6, 3])
def test_a_slow_limit_is_no_storm(per_minute: float, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = ComputedLoop()
    server = Simulated(loop, Bucketed(lambda t: per_minute / 60))
    n_calls = 4 * per_minute
    seconds = work(server, loop, monkeypatch, n_calls, 4)
    assert seconds <= 2 * (n_calls - 1) * 60 / per_minute
    assert len(server.refused) <= n_calls / 5 + 32


# --- storms: a server that rejects every call for a while


@pytest.mark.parametrize("storm_s", [0.4, 7.0, 45.0])
@pytest.mark.parametrize("retry_after_s", [None, 1.0])
def test_a_single_call_gets_through_soon_after_the_storm(
    storm_s: float, retry_after_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, waits = ComputedLoop(), Waits()
    server = Simulated(loop, is_stormy=lasting(storm_s), retry_after_s=retry_after_s)
    loop.run(retrying(Limited(server, 8), loop, waits).complete(request()), monkeypatch)
    assert server.sent[-1] <= 2 * storm_s + 1
    times = [0.0, *(at for at, _, _ in waits), loop.time()]
    assert max(after - before for before, after in pairwise(times)) <= MOST_SILENT_S
    assert all(wait_s > 0 for _, _, wait_s in waits)


@pytest.mark.parametrize("since", [0.0, 15.0])
@pytest.mark.parametrize("storm_s", [2.0, 40.0])
@pytest.mark.parametrize("rate", [None, 3.0])
def test_a_run_goes_on_soon_after_the_storm(
    since: float, storm_s: float, rate: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, n_workers = ComputedLoop(), 16
    most = min(n_workers / 0.5, rate or 1_000.0)
    n_calls = round(30 * most)
    policy = rate and Bucketed(lambda t: rate)
    server = Simulated(loop, policy or None, is_stormy=lasting(storm_s, since))
    assert work(server, loop, monkeypatch, n_calls, n_workers) <= 2 * (storm_s + n_calls / most)


def test_after_a_storm_calls_double_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = ComputedLoop()
    server = Simulated(loop, is_stormy=lasting(5.0), call_s=1.0)
    work(server, loop, monkeypatch, 64, 64)
    first = next(at for at in server.sent if at >= 5.0)
    assert sum(first < at < first + 1.9 for at in server.sent) <= 2
    assert sum(first < at < first + 2.9 for at in server.sent) <= 6


def test_a_wait_for_the_rate_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, waits = ComputedLoop(), Waits()
    server = Simulated(loop)

    async def main() -> None:
        limited = Limited(server, 8, requests_per_minute=1)
        await asyncio.gather(
            *(retrying(limited, loop, waits).complete(request(f"{i}")) for i in range(3))
        )

    loop.run(main(), monkeypatch)
    times = [0.0, *(at for at, _, _ in waits), loop.time()]
    assert max(b - a for a, b in pairwise(times)) <= MOST_SILENT_S
    assert {reason for _, reason, _ in waits} == {"held back by the rate limit"}
    at, _, wait_s = waits[0]
    assert at + wait_s == pytest.approx(60.0)
