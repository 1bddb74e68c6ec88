"""How many calls a server bears at once: more while it takes them, fewer when it refuses."""

from __future__ import annotations

__all__ = ["AdaptiveConcurrency"]

SHRINK = 0.8
GROWTH = 0.05
"""Share of the places that are added in the time of one call, at least one."""

COOLDOWN_S = 15.0
"""Seconds without growth after the server was in trouble."""


class AdaptiveConcurrency:
    """Additive increase, one multiplicative decrease per episode of refusals.

    Before the first refusal places double in the time of one call; after it they grow by `GROWTH`.

    Args:
        most: So many are never exceeded.
        start: So many are there at first.
    """

    def __init__(self, most: int, start: int) -> None:
        self._most = float(most)
        self._now = float(min(most, start))
        self._reached = self._now
        self._was_refused = False
        self._frozen_until = 0.0

    @property
    def n(self) -> int:
        """Calls that may run at once."""
        return int(self._now)

    def on_reply(self, now: float) -> None:
        """A call ended well while all places were taken and others waited for one."""
        if now >= self._frozen_until:
            grown = max(1.0, self._now * GROWTH) / self._now if self._was_refused else 1.0
            self._now = min(self._most, self._now + grown)
            self._reached = max(self._reached, self._now)

    def on_trouble(self, now: float) -> None:
        """A call failed for reasons of the server's own: not the time to ask it for more."""
        self._frozen_until = max(self._frozen_until, now + COOLDOWN_S)

    def on_refused(self) -> None:
        """The server had too many calls at once; to be said once per episode."""
        self._was_refused = True
        self._now = max(1.0, self._now * SHRINK)

    def restart(self) -> None:
        """Nothing is known any more of what the server bears: from one at a time, doubling."""
        self._now = 1.0
        self._was_refused = False
        self._frozen_until = 0.0

    def restore(self) -> None:
        """What was taken for too many calls at once was none of that: back to what there was."""
        self._now = self._reached
        self._was_refused = False
        self._frozen_until = 0.0
