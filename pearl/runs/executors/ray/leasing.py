"""Limits the calls of a worker by its lease."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from pearl.errors import ModelError
from pearl.llm import Completion, Model, Request
from pearl.llm.middleware.adaptive_rate import Sent
from pearl.llm.middleware.circuit_breaker import CircuitBreaker
from pearl.llm.middleware.queue import Queue
from pearl.llm.middleware.token_bucket import TokenBucket
from pearl.llm.middleware.wrapper import Wrapper
from pearl.runs.executors.ray.limiter import LEASE_S, CallLease

RENEW_S = 1.0
"""Seconds between reports; a refusal is reported at once."""

ANSWER_S = 2.0
"""Seconds in which the limiter has to answer."""

Ask = Callable[[dict[str, Any]], Awaitable[CallLease]]
"""Sends a report to the limiter; any error counts as a network error."""


class Leased(Wrapper):
    """Sends calls within the lease; without a limiter, within half of the last lease."""

    def __init__(self, model: Model, first: CallLease, ask: Ask) -> None:
        super().__init__(model)
        self._ask = ask
        self._lease = self._given = first
        self._bucket: TokenBucket | None = None
        self._ends_at = monotonic() + LEASE_S
        self._paused_until = 0.0
        self._n_sent = self._n_refused = 0
        self._retry_after_s: float | None = None
        self._queue: Queue | None = None
        self._is_refused = asyncio.Event()
        self._keep(first)

    @property
    def lease(self) -> CallLease:
        """What is allowed now."""
        return self._lease

    async def complete(self, request: Request) -> Completion:
        """Carry out one request as soon as the lease allows it."""
        if self._queue is None:
            self._queue = Queue(self._delay_s, self._enter, self._why, CircuitBreaker())
        await self._queue.turn(0.0)
        try:
            return await self._model.complete(request)
        except ModelError as error:
            if error.kind == "rate_limited":
                self._refuse(error.retry_after_s)
            raise
        finally:
            self._queue.end()

    async def renew(self) -> None:
        """Report and renew the lease in a loop, until cancelled."""
        while True:
            await self._renew_once()
            self._is_refused.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_refused.wait(), RENEW_S)

    async def _renew_once(self) -> None:
        report = self._report()
        try:
            lease = await asyncio.wait_for(self._ask(report), ANSWER_S)
        except Exception:  # noqa: BLE001 - whatever it is, the limiter cannot be reached now
            if monotonic() >= self._ends_at:
                half = None if self._given.rate is None else self._given.rate / 2
                self._lease = CallLease(max(1, self._given.n_places // 2), half)
                self._keep(self._lease)
            return
        self._n_sent -= report["n_sent"]
        self._n_refused -= report["n_refused"]
        if self._n_refused == 0:
            self._retry_after_s = None
        self._given = self._lease = lease
        self._ends_at = monotonic() + LEASE_S
        self._keep(lease)

    def _report(self) -> dict[str, Any]:
        queue = self._queue
        n_running = queue.n_running if queue else 0
        return {
            "n_wanted": n_running + (len(queue) if queue else 0),
            "n_places": self._lease.n_places,
            "n_running": n_running,
            "n_sent": self._n_sent,
            "n_refused": self._n_refused,
            "retry_after_s": self._retry_after_s,
        }

    def _why(self) -> tuple[str, float]:
        """What a call is held back by, if that is not that all places are taken."""
        wait_s = self._delay_s(self._queue.n_running if self._queue else 0, 0.0)
        return ("held back by the rate limit", wait_s) if wait_s else ("", 0.0)

    def _keep(self, lease: CallLease) -> None:
        now = monotonic()
        self._paused_until = max(self._paused_until, now + lease.pause_s)
        if not lease.rate:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = TokenBucket(lease.rate, now)
        else:
            self._bucket.rate = lease.rate
        if self._queue:
            self._queue.serve()

    def _refuse(self, retry_after_s: float | None) -> None:
        self._n_refused += 1
        self._retry_after_s = max(self._retry_after_s or 0.0, retry_after_s or 0.0) or None
        self._is_refused.set()

    def _enter(self, cost: float) -> Sent:
        self._n_sent += 1
        if self._bucket:
            self._bucket.spend(1.0)
        return Sent(self._n_sent, monotonic(), self._lease.rate, False)

    def _delay_s(self, n_running: int, cost: float) -> float | None:
        now = monotonic()
        if n_running >= self._lease.n_places:
            return None
        if self._paused_until > now:
            return self._paused_until - now
        return self._bucket.delay_s(1.0, now) if self._bucket else 0.0
