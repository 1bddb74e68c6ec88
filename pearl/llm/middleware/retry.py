"""Retries with exponential backoff, and the circuit breaker of a run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from math import ceil
from typing import Any, TypeVar

from pearl.errors import ModelError, PausedError, PearlError, UsageError
from pearl.errors.callers import WARNING, log
from pearl.llm import Completion, Model, Request, Usage
from pearl.llm.concurrency import resolve
from pearl.llm.middleware.budget import Budget
from pearl.llm.middleware.wrappers import Wrapper
from pearl.llm.progress import REPORT_S, CallWait, n_failed_attempts, report

Result = TypeVar("Result")

LONGEST_WAIT_S = 600.0  # Maximum seconds that a server may ask to wait; beyond that, the run pauses
SILENT_CALLS = 10
# Consecutive unanswered calls, and their minimum duration in seconds, that end the run.
SILENT_S = 20.0


def fatal_error(error: ModelError) -> PearlError | None:
    """The error that ends the whole run after a failed call; None if other calls may succeed."""
    if error.kind in ("quota", "auth"):
        return error
    wait_s = error.retry_after_s or 0.0
    if error.is_retryable and wait_s > LONGEST_WAIT_S:
        return PausedError(
            f"the server asks for a pause of {ceil(wait_s / 60):,} minutes before the next call: {error.message}",
            help="run the same command again then: finished work is kept",
        )
    return None


class CircuitBreaker:
    """The circuit breaker of a run; it opens once, with the error that ends the run."""

    def __init__(self) -> None:
        self.error: PearlError | None = None
        self._n_running = 0
        self._waiters: set[asyncio.Future[Any]] = set()
        self._silent: dict[object, tuple[int, float]] = {}  # Unanswered calls since, by server

    def throw(self, error: PearlError) -> None:
        """Open the breaker and raise the error in all waiters; the first error is kept."""
        if self.error is None:
            self.error = error
            for waiter in tuple(self._waiters):  # Also those of other event loops
                resolve(waiter, error)

    def check(self) -> None:
        """Raise if the breaker is open."""
        if self.error is not None:
            # Without this, each of the many calls that raise the error would add its frames.
            raise self.error.with_traceback(None)

    def lift(self) -> None:
        """Close the breaker, for another run."""
        self.error = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """A context for related work; leaving the outermost one closes the breaker."""
        if not self._n_running:
            self.lift()
        self._n_running += 1
        try:
            yield
        finally:
            self._n_running -= 1

    def answered(self, server: object = None) -> None:
        """Record that a server answered, even with a rejection."""
        self._silent.pop(server, None)

    def unanswered(
        self, error: ModelError, now: float, server: object = None
    ) -> tuple[float, PausedError | None]:
        """Record an unanswered call; return the pause in seconds, and an error if the server is down."""
        n_before, since = self._silent.get(server, (0, now))
        n, silent_s = n_before + 1, now - since
        self._silent[server] = n, since
        if n < SILENT_CALLS:
            return 0.0, None
        if silent_s < SILENT_S:
            return silent_s / 2, None
        return 0.0, PausedError(
            f"{n:,} calls in a row got no answer in {silent_s:.0f} s: {error.message}",
            help="run the same command again when the server answers: finished work is kept",
        )

    async def sleep(self, wait_s: float) -> None:
        """Sleep; raise the error if the run ends first."""
        self.check()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self.interruptible(waiter)

    async def interruptible(self, waiter: asyncio.Future[Result]) -> Result:
        """Wait for `waiter`; raise the error if the run ends first."""
        self._waiters.add(waiter)
        try:
            return await waiter
        finally:
            self._waiters.discard(waiter)


DEADLINE_S = 3600.0  # Default maximum seconds of all attempts of a request
# Factor on the attempts of a rate-limited call: with the default of four, it outlasts a limit of
# a few calls per minute that is shared with others.
PATIENCE = 3
GROWN_WAIT_S = 60.0  # Maximum backoff in seconds if the server names none


class Retries:
    """Repeats calls after transient failures, and reports the waits."""

    def __init__(
        self,
        attempts: int = 4,
        *,
        first_wait_s: float = 1.0,
        deadline_s: float | None = DEADLINE_S,
        breaker: CircuitBreaker | None = None,
        budget: Budget | None = None,
    ) -> None:
        if attempts < 1:
            raise UsageError(f"{attempts} attempts is too low", help="1 means no retries")
        if deadline_s is not None and not deadline_s > 0:
            raise UsageError(f"the deadline must be greater than 0 s, not {deadline_s:g} s")
        self._attempts = attempts
        self._first_wait_s = first_wait_s
        self._deadline_s = deadline_s
        self._breaker = breaker or CircuitBreaker()
        self._budget = budget

    async def run(self, send: Callable[[], Awaitable[Result]], name: str) -> Result:
        """Send one request, with retries."""
        failures: list[ModelError] = []
        budget = self._budget
        left_s = None if budget is None else budget.left_s
        limits = [limit for limit in (self._deadline_s, left_s) if limit is not None]
        # One timeout for both limits, because each costs time in every call.
        over = asyncio.timeout(min(limits, default=None))
        now = asyncio.get_running_loop().time()
        deadline = None if self._deadline_s is None else now + self._deadline_s
        try:
            async with over:
                return await self._persist(send, failures, deadline)
        except TimeoutError:
            if not over.expired():
                raise
            if budget is not None and left_s is not None and left_s == min(limits):
                raise budget.out_of_time() from None
            if failures:
                raise failures[-1] from None
            raise ModelError(
                f"no reply from {name} within {self._deadline_s:g} s",
                kind="deadline",
                help="reduce --concurrency, or use a faster server",
            ) from None

    async def _persist(
        self,
        send: Callable[[], Awaitable[Result]],
        failures: list[ModelError],
        deadline: float | None,
    ) -> Result:
        """Retry until success or a final failure; `failures` is also read by the caller after a timeout."""
        while True:
            self._breaker.check()
            n_failed_attempts.set(len(failures))
            try:
                return await send()
            except ModelError as error:
                ends_run = fatal_error(error)
                if ends_run:
                    self._breaker.throw(ends_run)
                    raise ends_run from None
                failures.append(error)
                is_final = not error.is_retryable and error.kind != "refused"
                if is_final or len(failures) >= self._most(error):
                    raise
                wait_s = error.retry_after_s or 0.0  # A wait of 0 is ignored
                if error.kind == "refused":
                    wait_s = 0.0
                elif not wait_s:
                    grown_s = self._first_wait_s * 2.0 ** min(len(failures) - 1, 30)
                    wait_s = min(GROWN_WAIT_S, grown_s) + random.uniform(0, self._first_wait_s)
                if deadline and asyncio.get_running_loop().time() + wait_s >= deadline:
                    raise
            last = failures[-1]
            most, n_failed, usage = self._most(last), int(last.is_sent), last.usage or Usage()
            log(
                WARNING,
                "attempt %d of %d failed, the next is in %.1f s: %s",
                len(failures),
                most,
                wait_s,
                last.message,
            )
            for left_s in (wait_s - i * REPORT_S for i in range(max(1, ceil(wait_s / REPORT_S)))):
                report(CallWait(last.message, left_s, len(failures), most, n_failed, usage))
                n_failed, usage = 0, Usage()
                await self._breaker.sleep(min(REPORT_S, left_s))

    def _most(self, error: ModelError) -> int:
        if error.kind == "refused":
            return min(2, self._attempts)
        is_patient = error.kind == "rate_limited" and self._attempts > 1
        return self._attempts * (PATIENCE if is_patient else 1)


class Retrying(Wrapper):
    """A model whose requests are retried."""

    def __init__(self, model: Model, attempts: int = 4, **options: Any) -> None:
        super().__init__(model)
        self._retries = Retries(attempts, **options)

    async def complete(self, request: Request) -> Completion:
        """Send one request, repeatedly if necessary."""
        return await self._retries.run(lambda: self._model.complete(request), self.name)
