"""Concurrency and rate limits: the configured ones and those learned from the server."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Literal

from pearl.documents.tokens import estimate
from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Model, Request
from pearl.llm.middleware.adaptive_concurrency import AdaptiveConcurrency
from pearl.llm.middleware.adaptive_rate import AdaptiveRate, Sent
from pearl.llm.middleware.circuit_breaker import CircuitBreaker, OutageDetector, fatal_error
from pearl.llm.middleware.queue import Queue
from pearl.llm.middleware.token_bucket import per_minute
from pearl.llm.middleware.wrapper import Wrapper

Reason = Literal["", "a place", "the rate limit", "the token limit", "the server"]
"""What the next call waits for; "" if none waits."""

MOST_REFUSED = 1_000
"""Maximum rejected requests that are remembered, to recognise their retries."""

PAUSE_S = 0.5
"""Backoff in seconds after a rejection without `retry-after`."""


@dataclass(frozen=True, slots=True)
class LimiterStatus:
    """Current limits and state of a limiter."""

    n_running: int
    n_waiting: int
    n_places: int
    requests_per_s: float | None
    waits_for: Reason
    wait_s: float
    n_sent: int
    n_refused: int


class Limited(Wrapper):
    """Sends calls within the limits, in order of arrival.

    After a rejection all calls pause for as long as the server says, then keep to the learned rate
    and concurrency. Rejections that turn out to be random delay only their own call.

    All calls of a run to one server share a limiter. When no call can succeed any more
    (`circuit_breaker.fatal_error`), waiting calls fail at once, and none is sent.
    """

    def __init__(
        self,
        model: Model,
        n: int,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        count_tokens: Callable[[Request], int] | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        if n < 1:
            raise UsageError(f"{n} calls at once are too few", help="use 1 or more")
        super().__init__(model)
        self.breaker = breaker or CircuitBreaker()
        self._places = AdaptiveConcurrency(n, n)
        self._requests = per_minute(requests_per_minute, "requests", monotonic())
        self._tokens = per_minute(tokens_per_minute, "tokens", monotonic())
        self._count_tokens = count_tokens or (lambda request: estimate(request.prompt))
        self._learned = AdaptiveRate()
        self._outage = OutageDetector()
        self._paused_until = 0.0
        # By identity; the reference keeps the id from being reused.
        self._refused: OrderedDict[int, Request] = OrderedDict()
        self._queue: Queue | None = None

    @property
    def limits(self) -> LimiterStatus:
        """The current limits, and why calls wait."""
        queue = self._queue
        waits_for: Reason = ""
        wait_s: float | None = None
        if queue and (cost := queue.next_cost) is not None:
            waits_for, wait_s = self._blocked(queue.n_running, cost, monotonic())
        given = self._requests.rate if self._requests else None
        rates = [rate for rate in (given, self._learned.now) if rate]
        return LimiterStatus(
            n_running=queue.n_running if queue else 0,
            n_waiting=len(queue) if queue else 0,
            n_places=self._places.n,
            requests_per_s=min(rates, default=None),
            waits_for=waits_for,
            wait_s=wait_s or 0.0,
            n_sent=self._learned.n_sent,
            n_refused=self._learned.n_refused,
        )

    async def complete(self, request: Request) -> Completion:
        """Send one request when the limits allow it."""
        queue = self._queue
        if queue is None or queue.loop is not asyncio.get_running_loop():
            queue = self._queue = Queue(self._delay_s, self._enter, self._why, self.breaker)
        cost = float(self._count_tokens(request)) if self._tokens else 0.0
        is_retry = self._refused.pop(id(request), None) is not None
        sent = await queue.turn(cost)
        is_refused = False
        try:
            completion = await self._model.complete(request)
            self._outage.end()
            if is_retry:
                self._learned.faults.retry(is_refused=False)
            if len(queue) and queue.n_running >= self._places.n:
                self._places.on_reply(monotonic())
            if self._tokens:
                usage = completion.usage
                self._tokens.spend(usage.n_input_tokens + usage.n_output_tokens - cost)
            return completion
        except ModelError as error:
            is_refused = error.kind == "rate_limited"
            if is_refused:
                self._refused[id(request)] = request
                if len(self._refused) > MOST_REFUSED:
                    self._refused.popitem(last=False)
                if is_retry:
                    self._learned.faults.retry(is_refused=True)
            self._on_error(error, sent)
            raise
        finally:
            # Any other outcome, even a cancelled call, shows that the outage is over.
            if not is_refused and self._learned.admit(sent):
                self._places.restart()
            queue.end()

    def _enter(self, cost: float) -> Sent:
        if self._requests:
            self._requests.spend(1.0)
        if self._tokens:
            self._tokens.spend(cost)
        return self._learned.send(monotonic())

    def _delay_s(self, n_running: int, cost: float) -> float | None:
        return self._blocked(n_running, cost, monotonic())[1]

    def _why(self) -> tuple[str, float]:
        """What delays a call; waiting for a free slot is normal, and is not reported."""
        limits = self.limits
        if limits.waits_for in ("", "a place"):
            return "", 0.0
        return f"held back by {limits.waits_for}", limits.wait_s

    def _blocked(self, n_running: int, cost: float, now: float) -> tuple[Reason, float | None]:
        """What the next call waits for, and the seconds; None for until another call ends."""
        if n_running >= self._places.n:
            return "a place", None
        if self._paused_until > now:
            return "the server", self._paused_until - now
        requests_s = self._learned.delay_s(now)
        if self._requests:
            requests_s = max(requests_s, self._requests.delay_s(1.0, now))
        tokens_s = self._tokens.delay_s(cost, now) if self._tokens else 0.0
        if tokens_s > requests_s:
            return "the token limit", tokens_s
        if not requests_s:
            return "", 0.0
        return ("the server" if self._learned.is_storm else "the rate limit"), requests_s

    def _on_error(self, error: ModelError, sent: Sent) -> None:
        """Learn from a failed call."""
        now = monotonic()
        ends_run = fatal_error(error)
        if error.kind in ("transport", "deadline"):
            ends_run = ends_run or self._outage.go_on(error, now)
            self._paused_until = max(self._paused_until, now + self._outage.wait_s(now))
        else:
            self._outage.end()
        if ends_run:
            self.breaker.throw(ends_run)
            raise ends_run from None
        if error.kind == "rate_limited":
            pause_s = error.retry_after_s or PAUSE_S
            match self._learned.refuse(sent, now, pause_s):
                case "fault":
                    return  # only this call waits
                case "cleared":
                    self._places.restore()
                    self._paused_until = now
                    return
                case "limit" if not sent.is_probe:
                    # A rejected probe says nothing about the concurrency.
                    self._places.on_refused()
            self._paused_until = max(self._paused_until, now + pause_s)
        if error.is_retryable:
            self._places.on_trouble(now)
