"""FIFO queue of calls that wait for the limits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from pearl.llm.middleware.adaptive_rate import Sent
from pearl.llm.middleware.circuit_breaker import CircuitBreaker
from pearl.llm.progress import reporting_wait

LOOK_S = 1.0
"""Maximum seconds between two checks of the delay: learned rates grow."""


class Queue:
    """Calls in order of arrival, on one event loop."""

    def __init__(
        self,
        delay_s: Callable[[int, float], float | None],
        enter: Callable[[float], Sent],
        why: Callable[[], tuple[str, float]],
        breaker: CircuitBreaker,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.n_running = 0
        self._delay_s = delay_s
        self._enter = enter
        self._why = why
        self._breaker = breaker
        self._waiters: deque[tuple[asyncio.Future[Sent], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    @property
    def next_cost(self) -> float | None:
        """Cost of the next call; None if none waits."""
        return self._waiters[0][1] if self._waiters else None

    async def turn(self, cost: float) -> Sent:
        """Wait until a call of this cost may be sent; call `end` when it has ended."""
        self._breaker.check()
        if not self._waiters and self._delay_s(self.n_running, cost) == 0.0:
            self.n_running += 1
            return self._enter(cost)
        future: asyncio.Future[Sent] = self.loop.create_future()
        self._waiters.append((future, cost))
        if len(self._waiters) == 1:
            self.serve()
        try:
            with reporting_wait(self._why):
                return await self._breaker.interruptible(future)
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.end()  # cancelled right after its release
            else:
                with suppress(ValueError):
                    self._waiters.remove((future, cost))
                self.serve()
            raise

    def end(self) -> None:
        """Record the end of a call, which frees its slot."""
        self.n_running -= 1
        self.serve()

    def serve(self) -> None:
        """Release the calls that may be sent, and schedule the next check."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            future, cost = self._waiters[0]
            if not future.done():
                delay_s = self._delay_s(self.n_running, cost)
                if delay_s is None:
                    return
                if delay_s > 0.0:
                    self._timer = self.loop.call_later(min(delay_s, LOOK_S), self.serve)
                    return
                self.n_running += 1
                future.set_result(self._enter(cost))
            self._waiters.popleft()
