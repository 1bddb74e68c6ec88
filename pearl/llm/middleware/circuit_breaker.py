"""Circuit breaker: stops all calls of a run after an error that no call can survive."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from pearl.errors import ModelError, PausedError, PearlError

Result = TypeVar("Result")

LONGEST_WAIT_S = 600.0
"""Maximum seconds that a server may ask to wait; beyond that the run pauses."""

SILENT_CALLS = 10
SILENT_S = 20.0
"""Consecutive unanswered calls, and their minimum time span in seconds, that indicate an outage."""


def fatal_error(error: ModelError) -> PearlError | None:
    """The error that ends the whole run after a failed call, or None if other calls may succeed.

    Example:
        >>> no_credit = ModelError("no credit", kind="quota")
        >>> fatal_error(no_credit) is no_credit
        True
        >>> fatal_error(ModelError("slow down", kind="rate_limited", retry_after_s=2_400.0)).message
        'the server wants 40 minutes before the next call: slow down'
        >>> fatal_error(ModelError("slow down", kind="rate_limited", retry_after_s=2.0))
    """
    if error.kind in ("quota", "auth"):
        return error
    wait_s = error.retry_after_s or 0.0
    if error.is_retryable and wait_s > LONGEST_WAIT_S:
        return PausedError(
            f"the server wants {math.ceil(wait_s / 60):,} minutes before the next call: {error.message}",
            help="run the same command again then: what is done is kept",
        )
    return None


class OutageDetector:
    """Detects outages: how long no call got an answer from the server."""

    def __init__(self) -> None:
        self._n_calls = 0
        self._since = 0.0

    def end(self) -> None:
        """Record an answer, even a rejection."""
        self._n_calls = 0

    def wait_s(self, now: float) -> float:
        """Backoff in seconds: half the length of the outage so far."""
        return (now - self._since) / 2 if self._n_calls >= SILENT_CALLS else 0.0

    def go_on(self, error: ModelError, now: float) -> PausedError | None:
        """Record an unanswered call at `now`, in seconds of the monotonic clock."""
        if not self._n_calls:
            self._since = now
        self._n_calls += 1
        silent_s = now - self._since
        if self._n_calls < SILENT_CALLS or silent_s < SILENT_S:
            return None
        return PausedError(
            f"{self._n_calls:,} calls in a row got no answer in {silent_s:.0f} s: {error.message}",
            help="run the same command again when the server is there: what is done is kept",
        )


class CircuitBreaker:
    """The circuit breaker of a run; it opens once, with the error that ends the run.

    Example:
        >>> breaker = CircuitBreaker()
        >>> breaker.throw(ModelError("no credit", kind="quota"))
        >>> breaker.check()
        Traceback (most recent call last):
        pearl.errors.ModelError: no credit
    """

    def __init__(self) -> None:
        self.error: PearlError | None = None
        self._n_running = 0
        self._waiters: set[asyncio.Future[Any]] = set()

    def throw(self, error: PearlError) -> None:
        """Open the breaker and wake all waiters with the error; the first error is kept."""
        if self.error is None:
            self.error = error
            for waiter in self._waiters:
                if not waiter.done():
                    waiter.set_exception(error)

    def check(self) -> None:
        """Raise if the breaker is open."""
        if self.error is not None:
            # One error for many calls: each would add its frames to those of the others.
            raise self.error.with_traceback(None)

    def lift(self) -> None:
        """Close the breaker for another run."""
        self.error = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Context of related work; the outermost one closes the breaker."""
        if not self._n_running:
            self.lift()
        self._n_running += 1
        try:
            yield
        finally:
            self._n_running -= 1

    async def sleep(self, wait_s: float) -> None:
        """Sleep, unless the run ends first."""
        self.check()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self.interruptible(waiter)

    async def interruptible(self, waiter: asyncio.Future[Result]) -> Result:
        """Await `waiter`, unless the run ends first."""
        self._waiters.add(waiter)
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)
