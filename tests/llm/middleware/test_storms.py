"""Servers that refuse every call for a while, and name no time: on a clock that is computed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from pearl.errors import ModelError
from pearl.llm import Completion, Constrains, Message, Model, Request, Usage
from pearl.llm.middleware.adaptive_rate import Sent
from pearl.llm.middleware.circuit_breaker import CircuitBreaker
from pearl.llm.middleware.limiter import Limited
from pearl.llm.middleware.queue import Queue
from pearl.llm.middleware.retry import Retrying
from tests.clock import ComputedLoop
from tests.models import answer_task, telling_waits

HEARD_S = 0.02
MOST_SILENT_S = 15.0

Told = list[tuple[float, str, float]]
"""When, why, and for how many seconds a call is said to wait."""


def request(text: str = "who?") -> Request:
    return Request((Message("user", text),), answer_task(text, ""))


class Stormy:
    """Refuses all that comes while `is_stormy`, and otherwise what is beyond `rate` a second."""

    name = "openai:stormy"
    window = None
    notice = ""
    reads_prompts = False
    constrains = Constrains()

    def __init__(
        self,
        loop: ComputedLoop,
        is_stormy: Callable[[float], bool],
        *,
        rate: float | None = None,
        call_s: float = 0.5,
        retry_after_s: float | None = None,
    ) -> None:
        self._loop = loop
        self._is_stormy = is_stormy
        self._rate = rate
        self._level = self._most = max(1.0, rate or 0.0)
        self._at = 0.0
        self._call_s = call_s
        self._retry_after_s = retry_after_s
        self.asked: list[float] = []
        self.n_refused = 0

    async def complete(self, request: Request) -> Completion:
        now = self._loop.time()
        self.asked.append(now)
        if self._is_stormy(now) or not self._has_room(now):
            self.n_refused += 1
            await asyncio.sleep(HEARD_S)
            raise ModelError("slow down", kind="rate_limited", retry_after_s=self._retry_after_s)
        await asyncio.sleep(self._call_s)
        return Completion("ok", self.name, Usage())

    def _has_room(self, now: float) -> bool:
        if self._rate is None:
            return True
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True

    async def aclose(self) -> None:
        """Nothing to let go of."""


def lasting(seconds: float, since: float = 0.0) -> Callable[[float], bool]:
    return lambda now: since <= now < since + seconds


def retrying(limited: Limited, loop: ComputedLoop, told: Told) -> Model:
    return telling_waits(
        Retrying(limited, first_wait_s=0.5, halt=limited.halt),
        lambda wait: told.append((loop.time(), wait.reason, wait.wait_s)),
    )


def work(
    server: Stormy,
    loop: ComputedLoop,
    monkeypatch: pytest.MonkeyPatch,
    n_calls: int,
    n_workers: int,
) -> tuple[float, int]:
    """The seconds that so many calls take, and how many of them failed for good."""
    limited, todo, n_failed = Limited(server, n_workers), iter(range(n_calls)), 0

    async def worker() -> None:
        nonlocal n_failed
        for number in todo:
            try:
                await retrying(limited, loop, []).complete(request(f"question {number}"))
            except ModelError:
                n_failed += 1

    async def main() -> None:
        await asyncio.gather(*(worker() for _ in range(n_workers)))

    loop.run(main(), monkeypatch)
    return loop.time(), n_failed


@pytest.mark.parametrize("storm_s", [0.4, 1.3, 3.0, 7.0, 20.0, 45.0])
@pytest.mark.parametrize("retry_after_s", [None, 0.0, 1.0])
def test_a_single_call_gets_through_soon_after_the_storm(
    storm_s: float, retry_after_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, told = ComputedLoop(), Told()
    server = Stormy(loop, lasting(storm_s), retry_after_s=retry_after_s)
    loop.run(retrying(Limited(server, 8), loop, told).complete(request()), monkeypatch)
    assert server.asked[-1] <= 2 * storm_s + 1
    silent_s = [
        after - before
        for before, after in zip(
            [0.0, *(at for at, _, _ in told)],
            [*(at for at, _, _ in told), loop.time()],
            strict=True,
        )
    ]
    assert max(silent_s) <= MOST_SILENT_S
    assert all(wait_s > 0 for _, _, wait_s in told)


def test_three_refusals_do_not_stall_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = ComputedLoop()
    server = Stormy(loop, lambda now: server.n_refused < 3)
    loop.run(retrying(Limited(server, 8), loop, []).complete(request()), monkeypatch)
    assert len(server.asked) == 4
    assert loop.time() < 10


def test_calls_one_after_another_go_on_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a storm refused says nothing of the rate: the calls after it are not held back."""
    loop = ComputedLoop()
    server = Stormy(loop, lasting(5.0, since=10.0))
    seconds, n_failed = work(server, loop, monkeypatch, 60, 1)
    assert n_failed == 0
    assert seconds <= 2 * 5.0 + 60 * 0.5 + 2


def test_a_call_after_a_pause_of_minutes_is_not_held_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who asks seldom learns no rate from being refused once."""
    loop = ComputedLoop()
    server = Stormy(loop, lambda now: now < 0.1 or 100 <= now < 100.1)

    async def main() -> None:
        asked = retrying(Limited(server, 8), loop, [])
        await asked.complete(request("first"))
        await asyncio.sleep(100 - loop.time())
        await asked.complete(request("second"))

    loop.run(main(), monkeypatch)
    assert loop.time() < 112


@pytest.mark.parametrize("storm_s", [2.0, 10.0])
def test_much_work_begins_anew_quickly(storm_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = ComputedLoop()
    server = Stormy(loop, lasting(storm_s), call_s=0.05)
    seconds, n_failed = work(server, loop, monkeypatch, 640, 64)
    assert n_failed == 0
    assert seconds <= 2 * (storm_s + 640 / 64 * 0.05) + 1


@pytest.mark.parametrize("since", [0.0, 15.0])
@pytest.mark.parametrize("storm_s", [2.0, 10.0, 40.0])
@pytest.mark.parametrize("rate", [None, 20.0, 3.0])
def test_a_run_goes_on_soon_after_the_storm(
    since: float, storm_s: float, rate: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, n_workers = ComputedLoop(), 16
    most = min(n_workers / 0.5, rate or 1_000.0)
    n_calls = round(30 * most)
    server = Stormy(loop, lasting(storm_s, since), rate=rate)
    seconds, n_failed = work(server, loop, monkeypatch, n_calls, n_workers)
    assert n_failed == 0
    assert seconds <= 2 * (storm_s + n_calls / most)


@pytest.mark.parametrize("per_minute", [30, 6, 3])
def test_a_slow_limit_is_no_storm(per_minute: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few calls a minute, and a server that does not say so."""
    loop = ComputedLoop()
    server = Stormy(loop, lambda now: False, rate=per_minute / 60)
    n_calls = 4 * per_minute
    seconds, n_failed = work(server, loop, monkeypatch, n_calls, 4)
    assert n_failed == 0
    assert seconds <= 2 * (n_calls - 1) * 60 / per_minute


def test_who_waits_for_the_rate_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, told = ComputedLoop(), Told()
    server = Stormy(loop, lambda now: False)

    async def main() -> None:
        limited = Limited(server, 8, requests_per_minute=1)
        calls = [retrying(limited, loop, told).complete(request(f"{i}")) for i in range(3)]
        await asyncio.gather(*calls)

    loop.run(main(), monkeypatch)
    times = [0.0, *(at for at, _, _ in told), loop.time()]
    assert max(b - a for a, b in pairwise(times)) <= MOST_SILENT_S
    assert {reason for _, reason, _ in told} == {"held back by the rate limit"}
    at, _, wait_s = told[0]
    assert at + wait_s == pytest.approx(60.0)


def test_waits_grow_to_a_minute_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a call that fails again and again, without a limiter around."""
    loop = ComputedLoop()
    server = Stormy(loop, lasting(400.0))
    loop.run(Retrying(server, 5).complete(request()), monkeypatch)
    waits = [after - before for before, after in pairwise(server.asked)]
    assert max(waits) <= 62
    assert waits[-1] >= 60
    assert waits[:3] == sorted(waits[:3])


def test_after_a_storm_calls_double_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has just come back is not met by all who waited."""
    loop = ComputedLoop()
    server = Stormy(loop, lasting(5.0), call_s=1.0)
    work(server, loop, monkeypatch, 64, 64)
    first = next(at for at in server.asked if at >= 5.0)
    assert sum(first < at < first + 1.9 for at in server.asked) <= 2
    assert sum(first < at < first + 2.9 for at in server.asked) <= 6


def test_a_wait_that_shrinks_is_over_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates that are learned grow while calls wait for them."""
    loop = ComputedLoop()

    async def main() -> None:
        queue = Queue(
            lambda n_running, cost: 0.0 if loop.time() >= 5 else 100.0,
            lambda cost: Sent(1, loop.time(), None, False),
            lambda: ("", 0.0),
            CircuitBreaker(),
        )
        await queue.turn(0.0)

    loop.run(main(), monkeypatch)
    assert loop.time() <= 6
