"""Retries with exponential backoff."""

from __future__ import annotations

import asyncio
import random
from math import ceil

from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Model, Request
from pearl.llm.middleware.budget import Budget
from pearl.llm.middleware.circuit_breaker import LONGEST_WAIT_S, CircuitBreaker, fatal_error
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.progress import REPORT_S, CallWait, report

__all__ = ["DEADLINE_S", "Retrying"]

DEADLINE_S = 3600.0
PATIENCE = 3
"""So many times more attempts has a call that is refused for its rate: with the usual four, it outlasts
a limit of a few calls a minute that others use as well."""

GROWN_WAIT_S = 60.0
"""Seconds to which the wait grows where the server names none."""


class Retrying(Wrapper):
    """Retries requests after transient failures, and reports the waits.

    The server's own `retry_after_s` is kept to, at any length up to `longest_wait_s`; one that
    wants more ends the run, as do a spent quota and a key that is refused.

    Args:
        model: The model to ask.
        attempts: Calls of one request at most, the first included; where the server refuses them
            for their rate, three times as many, unless it is 1.
        first_wait_s: Seconds before the second call where the server names none; doubles with
            each further call up to a minute, plus up to as much again at random.
        longest_wait_s: Seconds that a server may ask to wait.
        deadline_s: Seconds that all calls of one request may take, waits and queues included;
            None for no limit.
        breaker: The circuit breaker of the run; share it with the limiter, so that waits end when it opens.
        budget: What `Budgeted` within keeps to: no call outlasts its time, waits included.

    Raises:
        UsageError: `attempts` is less than 1, or `deadline_s` is not above 0.

    Example:
        >>> from pearl.llm.backends.scripted import Scripted
        >>> Retrying(Scripted(lambda request: "yes")).name
        'scripted'
    """

    def __init__(
        self,
        model: Model,
        attempts: int = 4,
        *,
        first_wait_s: float = 1.0,
        longest_wait_s: float = LONGEST_WAIT_S,
        deadline_s: float | None = DEADLINE_S,
        breaker: CircuitBreaker | None = None,
        budget: Budget | None = None,
    ) -> None:
        if attempts < 1:
            raise UsageError(f"{attempts} attempts are too few", help="1 is a call without retries")
        if deadline_s is not None and not deadline_s > 0:
            raise UsageError(f"no call is made within {deadline_s:g} s", help="allow more")
        super().__init__(model)
        self._attempts = attempts
        self._first_wait_s = first_wait_s
        self._longest_wait_s = longest_wait_s
        self._deadline_s = deadline_s
        self._breaker = breaker or CircuitBreaker()
        self._budget = budget

    async def complete(self, request: Request) -> Completion:
        """Send one request.

        Raises:
            BudgetError: The time that a budget gives was over before the reply, or between calls.
            ModelError: There is no usable reply; the error of the last call.
            PausedError: The server wants a longer wait than it may.
        """
        failures: list[ModelError] = []
        budget = self._budget
        left_s = None if budget is None else budget.left_s
        limits = [limit for limit in (self._deadline_s, left_s) if limit is not None]
        over = asyncio.timeout(min(limits, default=None))  # one for both: every call pays for it
        now = asyncio.get_running_loop().time()
        deadline = None if self._deadline_s is None else now + self._deadline_s
        try:
            async with over:
                return await self._persist(request, failures, deadline)
        except TimeoutError:
            if not over.expired():
                raise
            if budget is not None and left_s is not None and left_s == min(limits):
                # A server that wants a wait gets no more time.
                raise budget.out_of_time() from None
            if failures:
                raise failures[-1] from None
            raise ModelError(
                f"no reply from {self.name} within {self._deadline_s:g} s",
                kind="deadline",
                help="use fewer calls at once, or a server that answers more of them",
            ) from None

    async def _persist(
        self, request: Request, failures: list[ModelError], deadline: float | None
    ) -> Completion:
        """Retry until success or a final failure; `failures` is available after a time-out."""
        while True:
            self._breaker.check()
            try:
                return await self._model.complete(request)
            except ModelError as error:
                ends_run = fatal_error(error, self._longest_wait_s)
                if ends_run:
                    self._breaker.throw(ends_run)
                    raise ends_run from None
                failures.append(error)
                if not error.is_retryable or len(failures) >= self._most(error):
                    raise
                wait_s = self._wait_s(error, len(failures))
                if deadline and asyncio.get_running_loop().time() + wait_s >= deadline:
                    raise  # nobody is left waiting for what cannot come in time
            await self._sleep(wait_s, failures)

    async def _sleep(self, wait_s: float, failures: list[ModelError]) -> None:
        for left_s in (wait_s - i * REPORT_S for i in range(max(1, ceil(wait_s / REPORT_S)))):
            report(CallWait(failures[-1].message, left_s, len(failures)))
            await self._breaker.sleep(min(REPORT_S, left_s))

    def _most(self, error: ModelError) -> int:
        """Maximum calls, the first included."""
        is_patient = error.kind == "rate_limited" and self._attempts > 1
        return self._attempts * (PATIENCE if is_patient else 1)

    def _wait_s(self, error: ModelError, n_failed: int) -> float:
        if error.retry_after_s:  # one that says "0" says nothing about when it is worth while
            return error.retry_after_s
        grown_s: float = self._first_wait_s * 2.0 ** min(n_failed - 1, 30)
        return min(GROWN_WAIT_S, grown_s) + random.uniform(0, self._first_wait_s)
