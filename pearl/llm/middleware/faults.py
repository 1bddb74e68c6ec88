"""Distinguishes random rejections from those of a rate limit.

If a server rejects calls at random, rejections continue at any rate, below the learned one; they
then no longer slow down other calls. If retried calls are rejected repeatedly, it is a token limit
after all.
"""

from __future__ import annotations

from collections import deque

EARLY = 7
"""Consecutive rejections at admitted rates that count as faults: a limit is mostly found by fewer."""

SUSPECTED = 2
"""Consecutive rejections that are suspicious; from there on the rate falls by steps."""

MOST_FAULTS = 0.3
"""Maximum share of faults; if more calls are rejected, the rate is too high."""

MOST_MISSED = 10.0
"""Expected faults that have to be absent until there are none any more."""

LONG_RUN = 1000
SHORT_RUN = 50
"""Calls over which the usual share of faults and the present share of rejections are averaged."""

RETRIES = 20
"""Retries over which the share of rejected ones is averaged."""

MOST_RETRIES = 0.35
"""Maximum excess of rejected retries over the share of faults: a token limit rejects the same long
calls repeatedly."""

EXCESS = 0.1
"""A limit is met if this share plus twice the usual one is rejected: at least seven standard
deviations of the average above the usual share."""


class Faults:
    """Random rejections: their share of the calls does not depend on the rate."""

    def __init__(self) -> None:
        self.share: float | None = None
        self._recent = 0.0
        self._retries = 0.0
        self._n_missed = 0.0
        self._n_needed = EARLY
        self._early: deque[tuple[int, int]] = deque(maxlen=EARLY)  # (calls, refusals) until then

    def send(self, is_probe: bool) -> None:
        """Count a sent call; probes do not count."""
        if self.share is None:
            return
        self._recent *= 1 - 1 / SHORT_RUN
        if not is_probe:
            self.share *= 1 - 1 / LONG_RUN
            self._n_missed += self.share
            if self._n_missed > MOST_MISSED:
                self.share = None

    def explain(self, is_probe: bool) -> bool:
        """Whether a rejection is an expected fault."""
        if self.share is None:
            return False
        self._recent += 1 / SHORT_RUN
        if self._recent > EXCESS + 2 * self.share:
            self._recent = self.share
            return False
        if not is_probe:
            self.share += 1 / LONG_RUN
            self._n_missed = 0.0
        return True

    def retry(self, is_refused: bool) -> None:
        """Learn from the retry of a rejected call."""
        if self.share is None:
            return
        self._retries += (is_refused - self._retries) / RETRIES
        if self._retries > self.share + MOST_RETRIES:
            self.share = None
            self._n_needed *= 2
            self._early = deque(maxlen=self._n_needed)

    @property
    def are_suspected(self) -> bool:
        """Whether the last rejections came too early."""
        return len(self._early) >= SUSPECTED

    def doubt(self) -> None:
        """Record a rejection that was not random."""
        if self._early:
            self._early.popleft()

    def suspect(self, n_sent: int, n_refused: int, is_early: bool) -> bool:
        """Record an unexplained rejection; returns whether rejections are now considered random."""
        if self.share is not None:
            return False
        if not is_early:
            self.doubt()
            return False
        self._early.append((n_sent, n_refused))
        n_before, n_refused_before = self._early[0]
        share = (n_refused - n_refused_before) / max(1, n_sent - n_before)
        if len(self._early) < self._n_needed or share > MOST_FAULTS:
            return False
        self._early.clear()
        self.share = self._recent = self._retries = share
        self._n_missed = 0.0
        return True
