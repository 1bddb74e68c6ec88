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
from pearl.llm.middleware.circuit_breaker import (
    LONGEST_WAIT_S,
    CircuitBreaker,
    OutageDetector,
    fatal_error,
)
from pearl.llm.middleware.queue import Queue
from pearl.llm.middleware.token_bucket import per_minute
from pearl.llm.middleware.wrapper import Wrapper

__all__ = ["Limited", "LimiterStatus", "Reason"]

Reason = Literal["", "a place", "the rate limit", "the token limit", "the server"]
"""What the next call waits for; "" if none waits."""

MOST_REFUSED = 1_000
"""Refused requests that are known again when they are made anew; who gives up does not say so."""

PAUSE_S = 0.5
"""Backoff in seconds after a rejection without `retry-after`."""


@dataclass(frozen=True, slots=True)
class LimiterStatus:
    """Current limits and state of a limiter.

    Attributes:
        n_running: Calls in flight.
        n_waiting: Calls in the queue.
        n_places: Maximum concurrent calls.
        requests_per_s: Calls that are sent each second at most; None for as many as come.
        waits_for: What the first of the queue waits for.
        wait_s: Seconds until it is sent, at the earliest; 0 where nobody knows.
        n_sent: Calls so far.
        n_refused: Those of them that the server refused for their rate.
    """

    n_running: int
    n_waiting: int
    n_places: int
    requests_per_s: float | None
    waits_for: Reason
    wait_s: float
    n_sent: int
    n_refused: int


class Limited(Wrapper):
    """Sends calls within the limits, first come, first served.

    Allowed are `n` at once and, where they are given, so many requests and tokens per minute. A
    server that refuses calls is asked for less: it is left alone by all calls for as long as it
    says, and after that they keep to the rate and the number at once that it was found to bear.
    Refusals that turn out to come at random, whatever the rate, hold up nothing but their own call.

    One limiter is for one server and one run: all calls share it. When no call can succeed any
    more (`circuit_breaker.fatal_error`), the calls that wait fail at once, and none is sent.

    Args:
        model: The model to ask.
        n: Calls at once, at most.
        start: Calls at once, at first; None for `n`. More are tried while the server bears it.
        requests_per_minute: None for as many as the server bears.
        tokens_per_minute: Of prompts and replies together; None for as many as the server bears.
        count_tokens: Tokens of a prompt before it is sent; what the server says it took is what
            counts afterwards. None for an estimate.
        longest_wait_s: Seconds that a server may ask to wait.
        breaker: The circuit breaker of the run; share it with `Retrying`.

    Raises:
        UsageError: `n` or `start` is less than 1, or a limit is not above 0.
    """

    def __init__(
        self,
        model: Model,
        n: int,
        *,
        start: int | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        count_tokens: Callable[[Request], int] | None = None,
        longest_wait_s: float = LONGEST_WAIT_S,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        if n < 1 or (start is not None and start < 1):
            few = n if n < 1 else start
            raise UsageError(f"{few} calls at once are too few", help="use 1 or more")
        super().__init__(model)
        self.breaker = breaker or CircuitBreaker()
        self._longest_wait_s = longest_wait_s
        self._places = AdaptiveConcurrency(n, start or n)
        self._requests = per_minute(requests_per_minute, "requests", monotonic())
        self._tokens = per_minute(tokens_per_minute, "tokens", monotonic())
        self._count_tokens = count_tokens or (lambda request: estimate(request.prompt))
        self._learned = AdaptiveRate()
        self._silence = OutageDetector()
        self._paused_until = 0.0
        # By identity, and held, lest another request gets the place of one that is gone.
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
        """Send one request when the limits allow it.

        Raises:
            ModelError: The model gave no usable reply.
            PausedError: The server asks for too long a wait, or is unreachable.
        """
        queue = self._queue
        if queue is None or queue.loop is not asyncio.get_running_loop():
            queue = self._queue = Queue(self._delay_s, self._enter, self._why, self.breaker)
        cost = float(self._count_tokens(request)) if self._tokens else 0.0
        is_retry = self._refused.pop(id(request), None) is not None
        sent = await queue.turn(cost)
        is_refused = False
        try:
            completion = await self._model.complete(request)
            self._silence.end()
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
                self._note_refused(request, is_retry=is_retry)
            self._on_error(error, sent)
            raise
        finally:
            # Whatever else became of it, even if it was not sent after all: it is no sign of a storm.
            if not is_refused and self._learned.admit(sent):
                self._places.restart()
            queue.end()

    def _note_refused(self, request: Request, *, is_retry: bool) -> None:
        self._refused[id(request)] = request
        if len(self._refused) > MOST_REFUSED:
            self._refused.popitem(last=False)
        if is_retry:
            self._learned.faults.retry(is_refused=True)

    def _enter(self, cost: float) -> Sent:
        if self._requests:
            self._requests.spend(1.0)
        if self._tokens:
            self._tokens.spend(cost)
        return self._learned.send(monotonic())

    def _delay_s(self, n_running: int, cost: float) -> float | None:
        return self._blocked(n_running, cost, monotonic())[1]

    def _why(self) -> tuple[str, float]:
        """What a call is held back by; waiting for a place is the usual thing, and is not told."""
        limits = self.limits
        if limits.waits_for in ("", "a place"):
            return "", 0.0
        return f"held back by {limits.waits_for}", limits.wait_s

    def _blocked(self, n_running: int, cost: float, now: float) -> tuple[Reason, float | None]:
        """What the next call waits for, and how long; None for until another one has ended."""
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
        """Learn from a failed call.

        Raises:
            PearlError: It ends the run.
        """
        now = monotonic()
        ends_run = fatal_error(error, self._longest_wait_s)
        if error.kind in ("transport", "deadline"):
            ends_run = ends_run or self._silence.go_on(error, now)
            self._paused_until = max(self._paused_until, now + self._silence.wait_s(now))
        else:
            self._silence.end()
        if ends_run:
            self.breaker.throw(ends_run)
            raise ends_run from None
        if error.kind == "rate_limited":
            pause_s = error.retry_after_s or PAUSE_S
            match self._learned.refuse(sent, now, pause_s):
                case "fault":
                    return  # to wait is the matter of this call alone
                case "cleared":
                    self._places.restore()
                    self._paused_until = now
                    return
                case "limit" if not sent.is_probe:
                    # A probe of the rate is refused for the rate, whatever runs at once.
                    self._places.on_refused()
            self._paused_until = max(self._paused_until, now + pause_s)
        if error.is_retryable:
            self._places.on_trouble(now)
