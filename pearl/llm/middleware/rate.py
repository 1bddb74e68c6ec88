"""Rate control: limits of concurrency and rate, configured and learned.

The concurrency is adapted by additive increase and multiplicative decrease (AIMD). The rate is
learned from rejections (429). Servers use token buckets, so a rejection means an empty bucket, and
the calls admitted between two rejections are the refill. That rate is used with a small margin for
`HOLD_S`, then increased, ever faster, until the next rejections.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Literal

from msgspec import Struct

from pearl.documents.tokens import estimate
from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Model, Request
from pearl.llm.middleware.retry import CircuitBreaker, fatal_error
from pearl.llm.middleware.wrappers import Wrapper
from pearl.llm.progress import reporting_wait

# Capacity of a bucket in seconds of its rate, and minimum capacity in units, because event loops
# run late.
BURST_S = 0.5
BURST = 2.0
# Factor on the concurrency after rejections, and fraction added per call duration.
SHRINK = 0.8
GROWTH = 0.05
# Pause in seconds after a rejection without `retry-after`.
PAUSE_S = 0.5
# If at most these shares of the recent calls are rejected (while the rate is being increased, and
# otherwise), each rejection delays only its own call: some servers reject a few calls at random.
FEW_PROBES = 0.05
FEW = 0.2
N_RECENT = 50
# The learned rate is used with a margin for `HOLD_S`, then grows by exp(RAMP x s³): 1.5 times after
# 10 s, 10 times after 18 s; at `FORGET` times it is dropped.
MARGIN = 0.97
HOLD_S = 10.0
RAMP = 4e-4
FORGET = 1000.0
# After rejections of an increased rate, the learned rate moves this share of the way to it,
# because the margin makes estimates too low. Beyond `MOVED` times the learned rate, the server's
# limit has changed.
APPROACH = 0.15
MOVED = 1.5
# Factor on a rate that is rejected again before a new one has been measured.
BACK = 0.85
# A rate is measured over at least `SHORTEST_S` seconds between rejections, of which at most the
# share `MOST_IDLE` is idle. Pauses count with weight `SILENT`, because the server's bucket may
# have been full.
SHORTEST_S = 1.0
MOST_IDLE = 0.2
SILENT = 0.5
# Minimum first estimate, and minimum of all estimates, in calls per second.
FIRST_RATE = 10.0
LEAST_RATE = 1 / 120
# Calls admitted between two outages that show a low limit instead.
FEW_ADMITTED = 2
# Maximum seconds between two probes of an outage (`MOST_PAUSE_S`) and two checks of the queue (`LOOK_S`).
MOST_PAUSE_S = 60.0
LOOK_S = 1.0

Reason = Literal["", "a place", "the rate limit", "the token limit", "the server"]
"""Why the next call waits; "" if none waits."""


class TokenBucket:
    """A token bucket. All times are of the monotonic clock."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._level = self._most
        self._at = now
        self.idle_s = 0.0
        """Seconds for which the bucket was full, because the demand was below the rate."""

    @property
    def _most(self) -> float:
        return max(BURST, self.rate * BURST_S)

    def fill(self, now: float) -> float:
        """Refill up to `now`; return the seconds for which it was not full."""
        elapsed_s = max(0.0, now - self._at)
        self._at = max(self._at, now)
        used_s = min(elapsed_s, max(0.0, self._most - self._level) / self.rate)
        self._level = min(self._level + used_s * self.rate, self._most)
        self.idle_s += elapsed_s - used_s
        return used_s

    def delay_s(self, n: float, now: float) -> float:
        """Seconds until `n` units can be spent; if `n` exceeds the capacity, until the bucket is full."""
        self.fill(now)
        missing = min(n, self._most) - self._level
        # Without this, a rounding error would make the caller wait forever.
        return missing / self.rate + max(0.0, self._at - now) if missing > 1e-9 else 0.0

    def spend(self, n: float) -> None:
        """Spend `n` units, going into debt if necessary; a negative number returns units."""
        self._level -= n

    def drain(self, until: float) -> None:
        """Empty the bucket; it refills from `until` on."""
        self._level = min(self._level, 0.0)
        self._at = max(self._at, until)


def _per_minute(limit: float | None, unit: str) -> TokenBucket | None:
    if limit is None:
        return None
    if not limit > 0:
        raise UsageError(f"{limit:g} {unit} per minute is too low", help="use more than 0")
    return TokenBucket(limit / 60, monotonic())


class Sent(Struct, frozen=True):
    """A call that was sent, with the state of the limits at that time."""

    number: int
    at: float
    rate: float | None
    is_probe: bool


class LearnedLimits:
    """Concurrency and rate as learned from rejections; the rate is unlimited until the first ones.

    An episode is one decision after rejections; rejections of calls that were in flight then belong
    to it. If the first call after an episode is rejected again, the server is in an outage: further
    rejections say nothing about its rate, and single calls probe for its end with exponential
    backoff.
    """

    def __init__(self, most: int) -> None:
        self._most = self._places = float(most)
        self._known: float | None = None
        self._bucket: TokenBucket | None = None
        self._is_guess = self._was_refused = False
        self._calm_s = self._share = 0.0
        self.n_sent = self.n_refused = 0
        self._episode = self._n_passed = self._n_outage = 0
        self._refused_at: float | None = None
        self._idle_before_s = self._resume_at = 0.0
        self._began_at: float | None = None  # Time of the last outage; None before the first

    @property
    def n_places(self) -> int:
        """The current limit on concurrent calls."""
        return int(self._places)

    @property
    def rate(self) -> float | None:
        """Allowed calls per second; None if unlimited."""
        return self._bucket.rate if self._bucket else None

    def is_paused(self, now: float) -> bool:
        """Whether calls wait, because the server asked for it or an outage goes on."""
        return self._n_outage > 0 or self._resume_at > now

    def delay_s(self, now: float) -> float:
        """Seconds until the next call may be sent."""
        if self._n_outage or self._bucket is None or self._known is None:
            return max(0.0, self._resume_at - now)
        # Time without rejections only says something while calls are delayed.
        self._calm_s += self._bucket.fill(now)
        growth = math.exp(min(10.0, RAMP * max(0.0, self._calm_s - HOLD_S) ** 3))
        if growth > FORGET:
            self._known = self._bucket = None
            return 0.0
        self._bucket.rate = self._known * MARGIN * growth
        return max(self._resume_at - now, self._bucket.delay_s(1.0, now))

    def send(self, now: float) -> Sent:
        """Record a call that is being sent."""
        self.n_sent += 1
        self._share *= 1 - 1 / min(self.n_sent, N_RECENT)
        is_probe = self._bucket is not None and self._calm_s > HOLD_S
        if self._refused_at is None:
            self._refused_at = now
        if self._n_outage:
            self._back_off(now, 0.0)  # The next probe need not wait for this reply
        elif self._bucket:
            self._bucket.spend(1.0)
        return Sent(self.n_sent, now, self.rate, is_probe)

    def reply(self, sent: Sent, *, is_full: bool) -> None:
        """Record a reply that is not a rejection; `is_full` if other calls were waiting for a slot."""
        if self._n_outage and sent.number > self._episode:
            self._n_outage = 0
            self._resume_at = sent.at
            self._places, self._was_refused = 1.0, False  # Resume with one call, then two
            if self._is_guess:
                self._known = self._bucket = None
            elif self._bucket:
                self._bucket.drain(sent.at)
        if is_full:
            # Doubles per call duration until the first rejection (slow start).
            step = max(1.0, self._places * GROWTH) / self._places if self._was_refused else 1.0
            self._places = min(self._most, self._places + step)

    def refuse(self, sent: Sent, now: float, pause_s: float) -> None:
        """Learn from a rejected call."""
        self.n_refused += 1
        self._share += 1 / min(self.n_sent, N_RECENT)
        assert self._refused_at is not None
        if sent.number <= self._episode:  # It was in flight when the others were rejected
            self._refused_at = max(self._refused_at, sent.at)
            if not self._n_outage:
                self._pause(now + pause_s)
            return
        n_admitted = sent.number - self._episode - 1 - self._n_passed
        if self._n_outage or (n_admitted <= 0 and self._episode):
            if not self._n_outage:
                self._began_at = self._refused_at
            self._n_outage += 1
            self._back_off(now, pause_s)
        elif self._share <= (FEW_PROBES if sent.is_probe else FEW):
            self._n_passed += 1
            return
        else:
            self._known = rate = max(LEAST_RATE, self._measured(sent, n_admitted))
            self._bucket = self._bucket or TokenBucket(rate * MARGIN, now)
            self._bucket.rate = rate * MARGIN
            self._calm_s = HOLD_S if self._is_guess else 0.0
            if not sent.is_probe:  # A rejected probe says nothing about the concurrency
                self._places, self._was_refused = max(1.0, self._places * SHRINK), True
            self._pause(now + pause_s)
            self._idle_before_s = self._bucket.idle_s
        self._refused_at = sent.at
        self._episode, self._n_passed = self.n_sent, 0

    def _pause(self, until: float) -> None:
        self._resume_at = max(self._resume_at, until)
        if self._bucket:
            self._bucket.drain(self._resume_at)

    def _back_off(self, now: float, pause_s: float) -> None:
        """Delay the next probe by the duration of the outage so far, at least `pause_s`."""
        assert self._began_at is not None
        self._resume_at = now + max(pause_s, min(MOST_PAUSE_S, now - self._began_at))

    def _measured(self, sent: Sent, n_admitted: int) -> float:
        """Calls per second that the server admitted since the last episode."""
        assert self._refused_at is not None
        span_s = sent.at - self._refused_at
        if self._known is None or self._bucket is None or sent.rate is None:
            # An outage that repeatedly admits single calls is in fact a low limit, for which no
            # first estimate is low enough.
            if self._began_at is not None and n_admitted <= FEW_ADMITTED:
                self._is_guess = False
                return n_admitted / max(SHORTEST_S, sent.at - self._began_at)
            self._is_guess = True
            return max(FIRST_RATE, 2 * (n_admitted + 1) / max(SHORTEST_S, span_s))
        self._is_guess = False
        between = None
        if span_s >= SHORTEST_S and self._bucket.idle_s - self._idle_before_s <= MOST_IDLE * span_s:
            silent_s = max(0.0, min(span_s, self._resume_at - self._refused_at))
            # One call more: a high estimate is corrected soon, a low one only slowly.
            between = (n_admitted + 1) / (span_s - (1 - SILENT) * silent_s)
        if sent.rate <= self._known:
            return between or self._known * BACK
        if sent.rate > MOVED * self._known:
            return sent.rate / MOVED
        return max(between or 0.0, self._known + APPROACH * (sent.rate - self._known))


class _Queue:
    """The calls of one event loop, in order of arrival."""

    def __init__(self, limited: Limited) -> None:
        self.loop = asyncio.get_running_loop()
        self.n_running = 0
        self.waiters: deque[tuple[asyncio.Future[Sent], float]] = deque()
        self._limited = limited
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, cost: float) -> Sent:
        """Wait until a call of this cost may be sent; call `end` when it has ended."""
        limited = self._limited
        limited.breaker.check()
        if not self.waiters and (sent := self._entered(cost)) is not None:
            return sent
        future: asyncio.Future[Sent] = self.loop.create_future()
        self.waiters.append((future, cost))
        if len(self.waiters) == 1:
            self.serve()
        try:
            with reporting_wait(limited.why):
                return await limited.breaker.interruptible(future)
        except BaseException:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.end()  # Cancelled just after it was released
            else:
                with suppress(ValueError):
                    self.waiters.remove((future, cost))
                self.serve()
            raise

    def _entered(self, cost: float) -> Sent | None:
        """Admit a call if it may be sent now; None if it has to wait."""
        with self._limited.lock:  # Other threads admit calls, too
            if self._limited.delay(cost)[1] != 0.0:
                return None
            self.n_running += 1
            return self._limited.enter(cost)

    def end(self) -> None:
        """Record the end of a call, which frees its slot."""
        self.n_running -= 1
        self.serve()
        for other in self._limited.queues:
            if other is not self and other.waiters:
                with suppress(RuntimeError):  # The loop is closed
                    other.loop.call_soon_threadsafe(other.serve)

    def serve(self) -> None:
        """Release the calls that may be sent now, and schedule the next check."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        while self.waiters:
            future, cost = self.waiters[0]
            if not future.done():
                if (sent := self._entered(cost)) is None:
                    delay_s = self._limited.delay(cost)[1]
                    if delay_s is not None:  # Rates grow, so it may get shorter
                        wait_s = min(delay_s, LOOK_S)
                        self._timer = self.loop.call_later(wait_s, self.serve)
                    return
                future.set_result(sent)
            self.waiters.popleft()


class Slot(Struct):
    """The slot of a call that may be sent; `n_tokens` is None until there is a reply."""

    n_tokens: int | None = None


class LimiterStatus(Struct, frozen=True):
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
    """Sends calls within the limits, in order of arrival; all calls of a run share one instance."""

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
            raise UsageError(f"{n} concurrent calls is too low", help="use 1 or more")
        super().__init__(model)
        self.breaker = breaker or CircuitBreaker()
        self._requests = _per_minute(requests_per_minute, "requests")
        self._tokens = _per_minute(tokens_per_minute, "tokens")
        self._count_tokens = count_tokens or (lambda request: estimate(request.prompt))
        self._learned = LearnedLimits(n)
        self._paused_until = 0.0
        self.lock = threading.RLock()
        self.queues: list[_Queue] = []  # One for each event loop
        self._n_answered = 0  # Calls that reached the server

    @property
    def limits(self) -> LimiterStatus:
        """The current limits, and why calls wait."""
        learned = self._learned
        waits_for: Reason = ""
        wait_s: float | None = None
        first = next((queue.waiters[0] for queue in self.queues if queue.waiters), None)
        if first is not None:
            waits_for, wait_s = self.delay(first[1])
        configured = self._requests.rate if self._requests else None
        return LimiterStatus(
            n_running=self._n_running,
            n_waiting=sum(len(queue.waiters) for queue in self.queues),
            n_places=learned.n_places,
            requests_per_s=min((r for r in (configured, learned.rate) if r), default=None),
            waits_for=waits_for,
            wait_s=wait_s or 0.0,
            n_sent=self._n_answered,
            n_refused=learned.n_refused,
        )

    async def complete(self, request: Request) -> Completion:
        """Send one request when the limits allow it."""
        return await self.send(self._model, request)

    async def send(self, model: Model, request: Request) -> Completion:
        """Send a request to any model of the same server when the limits allow it."""
        cost = float(self._count_tokens(request)) if self._tokens else 0.0
        async with self.slot(cost) as slot:
            completion = await model.complete(request)
            slot.n_tokens = completion.usage.n_tokens
        return completion

    @asynccontextmanager
    async def slot(self, cost: float) -> AsyncIterator[Slot]:
        """Context of one call, entered when the limits allow it; learns from its error."""
        queue = self._queue()
        sent = await queue.acquire(cost)
        slot = Slot()
        is_refused = False
        try:
            yield slot
            self._n_answered += 1
            self.breaker.answered(self)
            if self._tokens:
                with self.lock:
                    self._tokens.spend((slot.n_tokens or 0) - cost)
        except ModelError as error:
            is_refused = error.kind == "rate_limited"
            self._n_answered += error.is_sent
            with self.lock:
                now = monotonic()
                ends_run = fatal_error(error)
                if error.kind in ("transport", "deadline"):
                    pause_s, gives_up = self.breaker.unanswered(error, now, self)
                    self._paused_until = max(self._paused_until, now + pause_s)
                    ends_run = ends_run or gives_up
                else:
                    self.breaker.answered(self)
                if ends_run:
                    self.breaker.throw(ends_run)
                    raise ends_run from None
                if error.kind == "rate_limited":
                    self._learned.refuse(sent, now, error.retry_after_s or PAUSE_S)
            raise
        finally:
            # Any outcome but a rejection, even cancellation, shows that an outage is over.
            if not is_refused:
                is_full = bool(queue.waiters) and self._n_running >= self._learned.n_places
                with self.lock:
                    self._learned.reply(sent, is_full=slot.n_tokens is not None and is_full)
            queue.end()

    def enter(self, cost: float) -> Sent:
        """Record a call that is being sent."""
        if self._requests:
            self._requests.spend(1.0)
        if self._tokens:
            self._tokens.spend(cost)
        return self._learned.send(monotonic())

    def why(self) -> tuple[str, float]:
        """The reason and the seconds of a delay; "" if it only waits for a free slot."""
        limits = self.limits
        if limits.waits_for in ("", "a place"):
            return "", 0.0
        return f"held back by {limits.waits_for}", limits.wait_s

    @property
    def _n_running(self) -> int:
        return sum(queue.n_running for queue in self.queues)

    def _queue(self) -> _Queue:
        """The queue of the running event loop; queues of closed loops, which never free a slot, are dropped."""
        loop = asyncio.get_running_loop()
        for queue in self.queues:
            if queue.loop is loop:
                return queue
        with self.lock:
            queue = _Queue(self)
            self.queues = [*(q for q in self.queues if not q.loop.is_closed()), queue]
        return queue

    def delay(self, cost: float) -> tuple[Reason, float | None]:
        """Why the next call waits, and for how many seconds; None if it waits until another call ends."""
        now = monotonic()
        if self._n_running >= self._learned.n_places:
            return "a place", None
        learned_s = self._learned.delay_s(now)
        if self._paused_until > now:
            return "the server", max(self._paused_until - now, learned_s)
        requests_s = max(learned_s, self._requests.delay_s(1.0, now) if self._requests else 0.0)
        tokens_s = self._tokens.delay_s(cost, now) if self._tokens else 0.0
        if tokens_s > requests_s:
            return "the token limit", tokens_s
        if not requests_s:
            return "", 0.0
        return ("the server" if self._learned.is_paused(now) else "the rate limit"), requests_s


class LimitedBy(Wrapper):
    """Sends calls within the limits of another model on the same server."""

    def __init__(self, model: Model, limiter: Limited) -> None:
        super().__init__(model)
        self._limiter = limiter

    async def complete(self, request: Request) -> Completion:
        """Send one request when the limits allow it."""
        return await self._limiter.send(self._model, request)
