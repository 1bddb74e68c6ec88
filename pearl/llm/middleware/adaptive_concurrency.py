"""Adaptive concurrency: additive increase, multiplicative decrease (AIMD)."""

from __future__ import annotations

SHRINK = 0.8
GROWTH = 0.05
"""Fraction of the concurrency added per call duration, at least one."""

COOLDOWN_S = 15.0
"""Seconds without growth after a server error."""


class AdaptiveConcurrency:
    """Additive increase, one multiplicative decrease per episode of rejections.

    Before the first rejection the concurrency doubles per call duration (slow start); after it, it
    grows by `GROWTH`.
    """

    def __init__(self, most: int, start: int) -> None:
        self._most = float(most)
        self._now = float(min(most, start))
        self._reached = self._now
        self._was_refused = False
        self._frozen_until = 0.0

    @property
    def n(self) -> int:
        """The current concurrency limit."""
        return int(self._now)

    def on_reply(self, now: float) -> None:
        """Record a success while the limit was reached and other calls waited."""
        if now >= self._frozen_until:
            grown = max(1.0, self._now * GROWTH) / self._now if self._was_refused else 1.0
            self._now = min(self._most, self._now + grown)
            self._reached = max(self._reached, self._now)

    def on_trouble(self, now: float) -> None:
        """Record a server error, which suspends growth."""
        self._frozen_until = max(self._frozen_until, now + COOLDOWN_S)

    def on_refused(self) -> None:
        """Decrease the limit; call once per episode of rejections."""
        self._was_refused = True
        self._now = max(1.0, self._now * SHRINK)

    def restart(self) -> None:
        """Restart from one call at a time, doubling."""
        self._now = 1.0
        self._was_refused = False
        self._frozen_until = 0.0

    def restore(self) -> None:
        """Undo the decreases after rejections that turned out to be random."""
        self._now = self._reached
        self._was_refused = False
        self._frozen_until = 0.0
