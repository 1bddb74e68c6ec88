"""Distinguishes random rejections from those of a rate limit.

If a server rejects calls at random, rejections continue at any rate, below the learned one; they
then no longer slow down other calls. If retried calls are rejected repeatedly, it is a token limit
after all.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Faults"]

EARLY = 7
"""So many refusals in a row at rates thought to be admitted are faults: a limit is mostly found by
fewer, and then refuses nothing for `HOLD_S`."""

SUSPECTED = 2
"""So many are suspicious: from there on the rate falls by steps, lest it be lost before it is known."""

MOST_FAULTS = 0.3
"""Share of the calls; where more are refused, the rate is still much too high."""

MOST_MISSED = 10.0
"""Faults that were to be expected; where none of so many came, there are none any more."""

LONG_RUN = 1000
SHORT_RUN = 50
"""Calls over which the usual share of faults and the present share of refusals are averaged."""

RETRIES = 20
"""Calls made again over which the share of them that is refused is averaged."""

MOST_RETRIES = 0.35
"""More than by a fault a call that is made again is refused by no more than this share: a limit of
tokens goes on refusing the same long calls, which then are no faults."""

EXCESS = 0.1
"""A limit is met where this share of the calls and twice the usual one are refused, which is seven
standard deviations of that average above the usual one, or more."""


class Faults:
    """Refusals at random: their share of the calls does not depend on the rate.

    Attributes:
        share: Of the calls, refused whatever the rate; None while each refusal is of a limit.
    """

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
        """Whether a refusal is one of those that were to be expected."""
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
            # Not so easily again: each time it takes twice as many.
            self._n_needed *= 2
            self._early = deque(maxlen=self._n_needed)

    @property
    def are_suspected(self) -> bool:
        """Whether the last refusals came too soon, each after the one before."""
        return len(self._early) >= SUSPECTED

    def doubt(self) -> None:
        """A refusal was none at random: it was to be expected, or another one of a storm."""
        if self._early:
            self._early.popleft()

    def suspect(self, n_sent: int, n_refused: int, is_early: bool) -> bool:
        """Think about a refusal that nothing explains; whether it shows that they are faults.

        Args:
            n_sent: Calls so far.
            n_refused: Refusals so far.
            is_early: Whether it came at a rate that was thought to be admitted.
        """
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
