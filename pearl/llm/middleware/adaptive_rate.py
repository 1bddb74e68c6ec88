"""Adaptive rate limit, learned from the server's rejections (429).

Servers use token buckets. A rejection means that the bucket is empty, so the calls admitted between
two rejections are the refill: the rate, exact to one call, for any bucket size. That rate is used
with a small margin for `HOLD_S`; then it is increased, ever faster, until the next rejection. A
rejection during the increase confirms the limit, an earlier one means that the estimate was too
high.

A server may also reject calls at random at any rate (`faults`), or reject all of them for a while
(an outage). While none is admitted, further rejections carry no information about the rate. Single
calls probe for the end of the outage with exponential backoff, so that no call waits longer than
twice its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from pearl.llm.middleware.faults import Faults
from pearl.llm.middleware.token_bucket import TokenBucket

Refusal = Literal["limit", "same", "fault", "cleared"]
"""Meaning of a rejection: a limit; the same limit, met by a call in flight; a random fault; a fault
that shows that those before it were faults, too, and there is no limit."""

MARGIN = 0.97
HOLD_S = 10.0
RAMP = 4e-4
"""The rate is increased by exp(RAMP x s³): 1.5 times after 10 s, 10 times after 18 s."""

APPROACH = 0.15
"""Share of the way from the known rate to that of a rejected probe which the rate grows: the margin
lets the server's bucket overflow, so that estimates are too low."""

BACK = 0.85
"""Factor on a rate that is rejected immediately again."""

SILENT = 0.5
"""Weight of the time in which nothing was sent: the server's bucket may have overflowed in it."""

MOVED = 1.7
"""A rejection so far above the known rate means that the limit has moved, not that a burst ended."""

SHORTEST_S = 1.0
"""Minimum seconds between rejections for an estimate."""

MOST_IDLE = 0.2
"""Maximum idle fraction of the time; an idle bucket overflows, which hides the rate."""

FIRST_RATE = 10.0
"""Minimum first estimate, because a first rejection may come before anything was admitted."""

LEAST_RATE = 1 / 120
"""Minimum calls per second."""

WINDOW_S = 10
"""Seconds over which admitted calls are counted."""

NOT_BY_CHANCE = 3
"""Consecutive rejections that cannot be random."""

MOST_PAUSE_S = 60.0
"""Maximum seconds between two probes of an outage."""

FORGET = 1000.0
"""Increase at which the limit is forgotten."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A call that was sent."""

    number: int
    at: float
    rate: float | None
    is_probe: bool


class AdmittedRate:
    """Counts of admitted calls per second, for the last `WINDOW_S` seconds."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._began: float | None = None

    def add(self, at: float, n: int = 1) -> None:
        """Count a call sent `at`; -1 removes a rejected one."""
        second = int(at)
        if self._began is None:
            self._began = at
        if n > 0 or second in self._counts:
            self._counts[second] = self._counts.get(second, 0) + n
        for old in [each for each in self._counts if each < second - WINDOW_S]:
            del self._counts[old]

    @property
    def most(self) -> int:
        """Maximum calls in one second."""
        return max(self._counts.values(), default=0)

    def rate(self, now: float, seconds: int) -> float:
        """Calls per second over the last `seconds`, or over the time since the first call."""
        first = int(now) - seconds + 1
        since = max(now if self._began is None else self._began, float(first))
        n = sum(count for second, count in self._counts.items() if second >= first)
        return n / max(1.0, now - since)


@dataclass(frozen=True, slots=True)
class _BucketDrained:
    """State when the server's bucket was empty."""

    number: int
    at: float
    n_admitted: int
    idle_s: float
    until: float


class AdaptiveRate:
    """Estimates the calls per second that a server admits; unknown until the first rejection."""

    def __init__(self) -> None:
        self.known: float | None = None
        self.faults = Faults()
        self._bucket: TokenBucket | None = None
        self._calm_s = 0.0
        self.n_sent = 0
        self.n_refused = 0
        self._episode = 0
        self._last: _BucketDrained | None = None
        self._resume_at = 0.0
        self._n_storm = 0
        self._is_guess = False
        self._admitted = AdmittedRate()

    @property
    def now(self) -> float | None:
        """Allowed calls per second; None for no limit."""
        return self._bucket.rate if self._bucket else None

    @property
    def is_storm(self) -> bool:
        """Whether all calls are being rejected and single calls probe for the end."""
        return self._n_storm > 0

    def delay_s(self, now: float) -> float:
        """Seconds until the next call may be sent."""
        if self._n_storm:
            return max(0.0, self._resume_at - now)
        if self._bucket is None or self.known is None:
            return 0.0
        # Time without a rejection is informative only while calls are delayed.
        self._calm_s += self._bucket.fill(now)
        above = math.exp(min(10.0, RAMP * max(0.0, self._calm_s - HOLD_S) ** 3))
        if above > FORGET:
            self._forget()
            return 0.0
        self._bucket.rate = self.known * MARGIN * above
        return self._bucket.delay_s(1.0, now)

    def send(self, now: float) -> Sent:
        """Record a call that is sent now."""
        self.n_sent += 1
        self._admitted.add(now)
        rate = self.now
        is_probe = rate is not None and self._calm_s > HOLD_S
        self.faults.send(is_probe)
        if self._n_storm:
            self._pause(now, 0.0)  # the next one need not wait for its answer
        elif self._bucket:
            self._bucket.spend(1.0)
        return Sent(self.n_sent, now, rate, is_probe)

    def refuse(self, sent: Sent, now: float, pause_s: float) -> Refusal:
        """Learn from a rejected call."""
        self.n_refused += 1
        self._admitted.add(sent.at, -1)
        is_new = sent.number > self._episode
        if is_new:
            if self.faults.explain(sent.is_probe):
                return "fault"
            if self._n_storm:
                if self._n_storm >= NOT_BY_CHANCE:
                    self.faults.doubt()
                return self._storm(sent, now, pause_s)
            is_early = sent.rate is not None and not sent.is_probe
            if self.faults.suspect(sent.number, self.n_refused, is_early):
                self._forget()
                self._episode = 0  # nor did calls in flight meet a limit
                return "cleared"
            if self._last and sent.number - self.n_refused <= self._last.n_admitted:
                # No call was admitted since the last rejected one.
                return self._storm(sent, now, pause_s)
            self._is_guess = False
            self.known = rate = max(LEAST_RATE, self._learn(sent, now))
            self._bucket = self._bucket or TokenBucket(rate * MARGIN, now)
            self._bucket.rate = rate * MARGIN
            self._calm_s = HOLD_S if self._is_guess else 0.0
            self._episode = self.n_sent
        self._resume_at = max(self._resume_at, now + pause_s)
        if self._bucket:
            self._bucket.drain(self._resume_at)
        idle_s = self._bucket.idle_s if self._bucket else 0.0
        last = self._last
        if is_new or last is None or (sent.number > last.number and not self._n_storm):
            n_admitted = sent.number - self.n_refused
            self._last = _BucketDrained(sent.number, sent.at, n_admitted, idle_s, sent.at)
        elif sent.number < last.number:
            # Rejections arrive out of order.
            self._last = replace(last, n_admitted=last.n_admitted - 1)
        return "limit" if is_new else "same"

    def admit(self, sent: Sent) -> bool:
        """Record an answer, which ends an outage during which the call was sent."""
        if not self._n_storm or sent.number <= self._episode:
            return False
        self._n_storm = 0
        self._resume_at = sent.at
        if self._is_guess:
            self.known = self._bucket = None
        elif self._bucket:
            self._bucket.drain(sent.at)
        return self._is_guess

    def _storm(self, sent: Sent, now: float, pause_s: float) -> Refusal:
        assert self._last is not None
        self._n_storm += 1
        self._episode = self.n_sent
        self._last = replace(self._last, until=max(sent.at, self._last.until))
        self._pause(now, pause_s)
        return "same"

    def _pause(self, now: float, pause_s: float) -> None:
        """Delay the next probe by the length of the outage so far, at least `pause_s`."""
        lasted_s = now - (self._last.at if self._last else now)
        self._resume_at = now + max(pause_s, min(MOST_PAUSE_S, lasted_s))

    def _forget(self) -> None:
        self.known = self._bucket = self._last = None

    def _learn(self, sent: Sent, now: float) -> float:
        if self.faults.share is not None:  # a rejection may not mean an empty bucket
            return self._admitted.rate(now, WINDOW_S)
        between = self._between(sent)
        if self.known is None or sent.rate is None:
            if self._last and between is not None:
                return between
            self._is_guess = True
            return max(FIRST_RATE, 2 * self._admitted.most)
        if sent.is_probe:
            if sent.rate > MOVED * self.known:
                return max(self.known, self._admitted.rate(now, 3))
            return max(between or 0.0, self.known + APPROACH * (sent.rate - self.known))
        if between is not None:
            return max(between, self.known * BACK) if self.faults.are_suspected else between
        if self._last and sent.at - self._last.at < SHORTEST_S:
            return self.known * BACK
        return min(self.known, max(1 / WINDOW_S, self._admitted.rate(now, WINDOW_S)))

    def _between(self, sent: Sent) -> float | None:
        """Calls per second admitted since the last rejection, if that tells the limit."""
        if self._last is None:
            return None
        span_s = sent.at - self._last.at
        idle_s = self._bucket.idle_s - self._last.idle_s if self._bucket else 0.0
        if span_s < SHORTEST_S or idle_s > MOST_IDLE * span_s:
            return None
        n_admitted = sent.number - self.n_refused - self._last.n_admitted
        silent_s = min(span_s, self._resume_at - self._last.until)
        # One call more, because an estimate that is too high is corrected soon, and one that is too
        # low only slowly; of a few calls per minute, one more would be too many.
        more = 1.0 if n_admitted > span_s / 4 else n_admitted / (n_admitted + 1)
        return (n_admitted + more) / (span_s - (1 - SILENT) * silent_s)
