"""Rates that are learned from refusals, against simulated servers on a clock that is computed."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest

from pearl.llm.middleware.adaptive_rate import AdaptiveRate, AdmittedRate
from pearl.llm.middleware.faults import EARLY, Faults
from pearl.llm.middleware.limiter import PAUSE_S
from pearl.llm.middleware.queue import LOOK_S


@dataclass
class Bucketed:
    """A server that admits `rate(t)` calls per second, and `burst_s` seconds of them at once."""

    rate: Callable[[float], float]
    burst_s: float = 1.0
    level: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.most(0.0)

    def most(self, t: float) -> float:
        return max(1.0, self.rate(t) * self.burst_s)

    def admits(self, t: float) -> bool:
        self.level = min(self.most(t), self.level + (t - self.at) * self.rate(t))
        self.at = t
        if self.level < 1:
            return False
        self.level -= 1
        return True


@dataclass
class Windowed:
    """A server that admits `n` calls in each window of `window_s` seconds."""

    n: int
    window_s: float
    window: int = -1
    left: int = 0

    def admits(self, t: float) -> bool:
        if int(t / self.window_s) != self.window:
            self.window, self.left = int(t / self.window_s), self.n
        self.left -= 1
        return self.left >= 0


@dataclass
class Faulty:
    """A server that refuses a share of the calls at random, besides what its limit refuses."""

    share: Callable[[float], float]
    limit: Bucketed | None = None
    random: random.Random = field(default_factory=lambda: random.Random(3))

    def admits(self, t: float) -> bool:
        is_within = self.limit is None or self.limit.admits(t)
        return is_within and self.random.random() >= self.share(t)


@dataclass
class Outcome:
    """When calls were admitted and when they were refused."""

    admitted: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    def goodput(self, begin: float, end: float) -> float:
        return sum(begin <= t < end for t in self.admitted) / (end - begin)

    def refused_share(self, begin: float, end: float) -> float:
        n = sum(begin <= t < end for t in self.refused)
        return n / (n + sum(begin <= t < end for t in self.admitted))


def simulate(
    server: Bucketed | Windowed | Faulty,
    until: float,
    *,
    answer_s: float = 0.02,
    retry_after_s: float | Callable[[float], float] = 1.0,
    most_per_s: float = 1_000.0,
    begin: float = 0.0,
) -> Outcome:
    """Always more to ask; a refusal is heard `answer_s` after its call was sent."""
    learned, outcome, order = AdaptiveRate(), Outcome(), count()
    heard: list[tuple[float, int, Callable[[], None]]] = []
    paused_until = now = begin
    while now < until:
        if heard and heard[0][0] <= now:
            heapq.heappop(heard)[2]()
            continue
        delay_s = max(learned.delay_s(now), paused_until - now)
        if delay_s > 0:
            now = min(now + min(delay_s, LOOK_S), heard[0][0] if heard else until)
            continue
        sent = learned.send(now)
        if server.admits(now):
            outcome.admitted.append(now)
            at = now + answer_s
            heapq.heappush(heard, (at, next(order), lambda sent=sent: learned.admit(sent)))
        else:
            outcome.refused.append(now)
            at = now + answer_s
            pause_s = retry_after_s(at) if callable(retry_after_s) else retry_after_s

            def hear(sent=sent, at=at, pause_s=pause_s) -> None:  # type: ignore[no-untyped-def]
                nonlocal paused_until
                refusal = learned.refuse(sent, at, pause_s)
                if refusal == "cleared":
                    paused_until = at
                elif refusal != "fault":
                    paused_until = max(paused_until, at + pause_s)

            heapq.heappush(heard, (at, next(order), hear))
        now += 1 / most_per_s
    return outcome


LIMITS = [5, 50, pytest.param(200, marks=pytest.mark.slow)]


@pytest.mark.parametrize("n", LIMITS)
@pytest.mark.parametrize(
    ("burst_s", "retry_after_s"),
    [
        (1.0, 1.0),
        (0.2, PAUSE_S),
        pytest.param(5.0, 1.0, marks=pytest.mark.slow),
        (60.0, 1.0),
    ],
)
def test_a_rate_is_found_and_kept(n: int, burst_s: float, retry_after_s: float) -> None:
    steady_s = 90 if burst_s < 60 else 180
    server = Bucketed(lambda t: n, burst_s)
    outcome = simulate(server, steady_s + 120, retry_after_s=retry_after_s)
    assert outcome.goodput(steady_s, steady_s + 120) >= 0.9 * n
    assert outcome.refused_share(steady_s, steady_s + 120) <= 0.02


@pytest.mark.parametrize("n", LIMITS)
def test_a_server_without_a_bucket_is_used_well_after_a_while(n: int) -> None:
    outcome = simulate(Bucketed(lambda t: n, 0.0), 300, retry_after_s=PAUSE_S)
    assert outcome.goodput(120, 300) >= 0.85 * n
    assert outcome.refused_share(120, 300) <= 0.02


@pytest.mark.parametrize(("before", "after"), [(5, 50), (50, 5), (50, 100), (100, 50), (40, 200)])
@pytest.mark.parametrize(
    "offset_s", [0.0, *(pytest.param(later, marks=pytest.mark.slow) for later in (7.0, 14.0))]
)
def test_a_limit_that_changes_is_found_again(before: int, after: int, offset_s: float) -> None:
    change_s = 60 + offset_s
    server = Bucketed(lambda t: before if t < change_s else after)
    outcome = simulate(server, change_s + 60)
    assert outcome.goodput(change_s + 30, change_s + 60) >= 0.9 * after


def test_windows_of_a_minute_are_spread_over_it() -> None:
    outcome = simulate(
        Windowed(600, 60.0), 600, retry_after_s=lambda t: 60 - t % 60, most_per_s=100
    )
    assert outcome.goodput(120, 600) >= 9.0
    assert outcome.refused_share(120, 600) <= 0.02


def test_answers_that_take_long_cost_little() -> None:
    outcome = simulate(Bucketed(lambda t: 50), 400, answer_s=0.5)
    assert outcome.goodput(100, 400) >= 45
    assert outcome.refused_share(100, 400) <= 0.02


def test_without_refusals_nothing_is_held_back() -> None:
    outcome = simulate(Bucketed(lambda t: 2_000), 5)
    assert len(outcome.admitted) >= 4_990
    assert not outcome.refused


def test_a_limit_that_is_gone_is_forgotten() -> None:
    outcome = simulate(Bucketed(lambda t: 5 if t < 60 else 10_000), 120)
    assert outcome.goodput(110, 120) >= 990


@pytest.mark.parametrize("share", [0.01, pytest.param(0.05, marks=pytest.mark.slow), 0.1])
@pytest.mark.parametrize("most_per_s", [320.0, pytest.param(1_280.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("retry_after_s", [PAUSE_S, 1.0])
def test_refusals_at_random_hold_nothing_back(
    share: float, most_per_s: float, retry_after_s: float
) -> None:
    outcome = simulate(
        Faulty(lambda t: share),
        100,
        answer_s=0.05,
        most_per_s=most_per_s,
        retry_after_s=retry_after_s,
    )
    assert outcome.goodput(60, 100) >= 0.9 * (1 - share) * most_per_s


def test_a_limit_is_found_among_refusals_at_random() -> None:
    outcome = simulate(Faulty(lambda t: 0.05, Bucketed(lambda t: 50)), 300)
    assert outcome.goodput(100, 300) >= 0.9 * 50
    assert outcome.refused_share(100, 300) <= 0.1


def test_when_faults_are_over_each_refusal_is_of_a_limit_again() -> None:
    limit = Bucketed(lambda t: 50)
    outcome = simulate(Faulty(lambda t: 0.05 if t < 100 else 0.0, limit), 400)
    assert outcome.goodput(200, 400) >= 0.9 * 50
    assert outcome.refused_share(200, 400) <= 0.02


def test_what_was_admitted_is_counted_by_the_second() -> None:
    admitted = AdmittedRate()
    assert admitted.rate(100.0, 10) == 0
    for i in range(20):
        admitted.add(100 + i / 2)
    admitted.add(105.0, -1)
    assert admitted.rate(110.0, 10) == pytest.approx(17 / 9, rel=0.2)
    assert admitted.rate(110.0, 3) == pytest.approx(4 / 2, rel=0.5)
    assert admitted.rate(1_000.0, 10) == 0
    assert admitted.most == 2


def declared(faults: Faults, n_sent: int) -> int:
    """Refusals that come too soon until they are taken for faults."""
    return next(i for i in range(1, 99) if faults.suspect(n_sent + 20 * i, i, is_early=True))


def test_who_is_refused_again_and_again_is_refused_by_a_limit() -> None:
    """As by a limit of tokens, which has no room for the long calls and some for short ones."""
    draw, faults = random.Random(1), Faults()
    assert declared(faults, 0) == EARLY
    for _ in range(1_000):
        faults.retry(is_refused=draw.random() < 0.05)
    assert faults.share is not None
    for _ in range(50):
        faults.retry(is_refused=draw.random() < 0.6)
    assert faults.share is None
    assert declared(faults, 9_000) == 2 * EARLY
