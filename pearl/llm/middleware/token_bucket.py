"""Token bucket: limits requests or tokens per second."""

from __future__ import annotations

from pearl.errors import UsageError

BURST_S = 0.5
BURST = 2.0
"""Capacity, as seconds of the rate and as a minimum in units: an event loop is not always on time."""


class TokenBucket:
    """A token bucket. All times are of the monotonic clock.

    Example:
        >>> bucket = TokenBucket(2.0, now=0.0)
        >>> bucket.spend(2.0)
        >>> bucket.delay_s(1.0, now=0.25)
        0.25
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._level = self._most
        self._at = now
        self.idle_s = 0.0
        """Seconds in which the bucket was full, so that demand was below the rate."""

    @property
    def rate(self) -> float:
        """Units per second."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self._rate = rate
        self._level = min(self._level, self._most)

    @property
    def _most(self) -> float:
        return max(BURST, self._rate * BURST_S)

    def fill(self, now: float) -> float:
        """Refill up to `now`; returns the seconds in which it was not full."""
        elapsed_s = max(0.0, now - self._at)
        self._at = max(self._at, now)
        used_s = min(elapsed_s, max(0.0, self._most - self._level) / self._rate)
        self._level += used_s * self._rate
        self.idle_s += elapsed_s - used_s
        return used_s

    def delay_s(self, n: float, now: float) -> float:
        """Seconds until `n` units may be spent; more than the capacity need a full bucket."""
        self.fill(now)
        missing = min(n, self._most) - self._level
        # A rounding error would make the caller wait for ever.
        return missing / self._rate + max(0.0, self._at - now) if missing > 1e-9 else 0.0

    def spend(self, n: float) -> None:
        """Take `n` units, going into debt if necessary; a negative number returns them."""
        self._level -= n

    def drain(self, until: float) -> None:
        """Empty it; refilling starts at `until`."""
        self._level = min(self._level, 0.0)
        self._at = max(self._at, until)


def per_minute(limit: float | None, what: str, now: float) -> TokenBucket | None:
    """Create the bucket of a limit per minute; None for no limit."""
    if limit is None:
        return None
    if not limit > 0:
        raise UsageError(f"{limit:g} {what} per minute are too few", help="use more than 0")
    return TokenBucket(limit / 60, now)
