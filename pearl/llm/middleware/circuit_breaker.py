"""Circuit breaker: stops all calls of a run after an error that no call can survive."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pearl.errors import ModelError, PausedError, PearlError

__all__ = ["LONGEST_WAIT_S", "CircuitBreaker", "OutageDetector", "fatal_error"]

Result = TypeVar("Result")

LONGEST_WAIT_S = 600.0
"""Maximum seconds that a server may ask to wait; beyond that the run pauses."""


SILENT_CALLS = 10
SILENT_S = 20.0
"""Consecutive unanswered calls, and their minimum time span in seconds, that indicate an outage."""


def fatal_error(error: ModelError, longest_wait_s: float = LONGEST_WAIT_S) -> PearlError | None:
    """The error that ends the whole run, or None if other calls may succeed.

    Args:
        error: What one call failed with.
        longest_wait_s: Seconds that a server may ask to wait.

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
    if error.is_retryable and (error.retry_after_s or 0.0) > longest_wait_s:
        minutes = math.ceil((error.retry_after_s or 0.0) / 60)
        return PausedError(
            f"the server wants {minutes:,} minutes before the next call: {error.message}",
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
        """Record an unanswered call; returns the error that ends the run once the outage is too long.

        Args:
            error: What the call failed with.
            now: Seconds of the monotonic clock.
        """
        self._n_calls += 1
        if self._n_calls == 1:
            self._since = now
        silent_s = now - self._since
        if self._n_calls < SILENT_CALLS or silent_s < SILENT_S:
            return None
        return PausedError(
            f"{self._n_calls:,} calls in a row got no answer in {silent_s:.0f} s: {error.message}",
            help="run the same command again when the server is there: what is done is kept",
        )


class CircuitBreaker:
    """The circuit breaker of a run; it opens once, with the error that ends the run.

    Attributes:
        error: The error that opened it; None while closed.

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
        """Raise if the breaker is open.

        Raises:
            PearlError: The run is over.
        """
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
        """Sleep, unless the run ends first.

        Raises:
            PearlError: The run is over.
        """
        self.check()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(wait_s, _wake, waiter)
        try:
            await self.interruptible(waiter)
        finally:
            timer.cancel()

    async def interruptible(self, waiter: asyncio.Future[Result]) -> Result:
        """Await `waiter`, unless the run ends first.

        Raises:
            PearlError: The run is over.
        """
        self._waiters.add(waiter)
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
