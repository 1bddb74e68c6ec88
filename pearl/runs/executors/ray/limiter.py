"""Distributes concurrency and rate among workers in leases that expire.

`Limiter` turns reports into leases and does no networking. A lease that is not renewed expires, so
the share of a dead worker returns to the others.

Reports count calls, a second's at once and late by up to another. `AdaptiveRate` needs each call when it
is sent: fed with such reports in a simulation it did as well for one worker, but with four at 40 calls
a second it settled at 57 % of the rate, and at 5 a second it took a limit for refusals at random and had
25 % refused. What is here had 1.00 of the goodput there, and 4 % refused at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEASE_S = 5.0
"""Duration of a lease in seconds; it is renewed several times within it."""

PAUSE_S = 0.5
"""Pause in seconds after a rejection without `retry-after`."""

SHRINK = 0.8
EPISODE_S = 2.0
"""Refusals within so many seconds after the first are of one episode, which shrinks the rate once:
they are of calls in flight before the others had heard of it."""

GROWTH = 0.05
"""Share of the rate that is added in each second without a refusal."""

FIRST_RATE = 10.0
"""Calls per second that are tried at least after a first refusal."""


@dataclass(frozen=True, slots=True)
class CallLease:
    """The limits of one worker until the lease expires."""

    n_places: int
    rate: float | None = None
    pause_s: float = 0.0


@dataclass(slots=True)
class _Holder:
    n_wanted: int
    n_places: int
    ends_at: float


def fair_shares(wanted: Sequence[int], total: int) -> list[int]:
    """Places for each: nobody gets more than wanted while another wants more; the rest is spread.

    Example:
        >>> fair_shares([1, 20, 20], 16)
        [1, 7, 8]
        >>> fair_shares([2, 2], 8)
        [4, 4]
    """
    shares, left = [0] * len(wanted), total
    by_want = sorted(range(len(wanted)), key=wanted.__getitem__)
    for n_before, i in enumerate(by_want):
        shares[i] = min(max(1, wanted[i]), left // (len(wanted) - n_before))
        left -= shares[i]
    for n_before, i in enumerate(by_want):
        more = left // (len(wanted) - n_before)
        shares[i] += more
        left -= more
    return shares


class Limiter:
    """Shares out the places and the rate of one run. All times are of one monotonic clock.

    The leases that run at a moment never add up to more than there is: what a worker is to get and
    another still holds comes when that one has renewed its lease.
    """

    def __init__(self, n_places: int, n_workers: int, rate: float | None, now: float) -> None:
        self._n_places = n_places
        self._n_workers = n_workers
        self._most = rate
        self._rate = rate
        self._began = now
        self._holders: dict[str, _Holder] = {}
        self._sent: list[tuple[float, int]] = []
        self._paused_until = now
        self._shrunk_at = float("-inf")
        self._grown_at = now

    def report(self, worker: str, report: dict[str, Any], now: float) -> CallLease:
        """Process a worker's report and renew its lease."""
        self._holders = {
            name: holder for name, holder in self._holders.items() if holder.ends_at > now
        }
        self._adapt(report, now)
        mine = self._holders.setdefault(worker, _Holder(0, report["n_places"], now))
        mine.n_wanted = report["n_wanted"]
        names = list(self._holders)
        shares = fair_shares([self._holders[name].n_wanted for name in names], self._n_places)
        held = sum(each.n_places for name, each in self._holders.items() if name != worker)
        n_places = max(0, min(shares[names.index(worker)], self._n_places - held))
        if now < self._began + LEASE_S:
            # Leases of a limiter that this one took the place of may still run.
            n_places = min(n_places, max(report["n_places"], self._n_places // self._n_workers))
        # Calls that run are not taken back: they count until they have ended.
        mine.n_places = max(n_places, report["n_running"])
        mine.ends_at = now + LEASE_S
        rate = None if self._rate is None else self._rate * n_places / self._n_places
        return CallLease(n_places, rate, max(0.0, self._paused_until - now))

    def _adapt(self, report: dict[str, Any], now: float) -> None:
        n_admitted = report["n_sent"] - report["n_refused"]
        self._sent = [(at, n) for at, n in self._sent if at > now - EPISODE_S]
        self._sent.append((now, n_admitted))
        if report["n_refused"]:
            pause_s = report["retry_after_s"] or PAUSE_S
            if now > self._shrunk_at + EPISODE_S and now >= self._paused_until:
                admitted = sum(n for _, n in self._sent) / EPISODE_S
                self._rate = max(FIRST_RATE, admitted) if self._rate is None else self._rate
                self._rate *= SHRINK
                self._shrunk_at = now
            self._paused_until = max(self._paused_until, now + pause_s)
            self._grown_at = self._paused_until
        elif self._rate is not None and now > self._grown_at:
            self._rate *= 1 + GROWTH * (now - self._grown_at)
            self._rate = min(self._rate, self._most or self._rate)
            self._grown_at = now
