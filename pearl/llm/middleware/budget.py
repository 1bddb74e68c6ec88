"""Budget limits on cost, tokens, calls and time: no call starts that could exceed one."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from time import monotonic

from msgspec import Struct, field
from msgspec.structs import replace

from pearl.documents.tokens import Counter
from pearl.errors import BudgetError, ModelError, UsageError
from pearl.llm import Completion, Model, PrefixCaching, Request, Usage
from pearl.llm.concurrency import resolve
from pearl.llm.middleware.wrappers import Wrapper
from pearl.llm.prices import PRICE_HELP, Price, money

FRAME_TOKENS = 8  # Maximum tokens that a server adds to each message for its delimiters and role
# Maximum tokens of a reply if neither the user nor the window sets a limit
DEFAULT_REPLY_TOKENS = 4_096
# Maximum ratio of a server's token count to our own: a token has at least one byte, and we count
# about one per four characters. A larger ratio comes from text that the server adds, which does
# not grow with the prompt.
MAX_STRETCH = 16.0
# Failures before any token is read; all others may be billed.
UNBILLED = frozenset({"rate_limited", "auth", "quota", "bad_request", "unconstrained"})
# Advice for a run that a limit has stopped.
GO_ON = "finished work is kept; raise the limit and run the same command again to continue"


class Spent(Struct, frozen=True):
    """Spending so far."""

    usage: Usage = field(default_factory=Usage)
    n_calls: int = 0
    n_failed_calls: int = 0
    n_unsure_calls: int = 0
    n_unsure_tokens: int = 0


class Call(Struct, eq=False):
    """The worst case of a call; its usage and reply are set by the caller."""

    n_input: int = 0
    n_output: int = 0
    n_least: int = 0  # Minimum tokens of the prompt by our count
    n_most: int = 0  # Maximum by our count; `n_input` also includes the correction and the frame
    stretch: float = 1.0  # The correction factor
    request: Request | None = None  # The request, as long as its prompt is only estimated
    usage: Usage | None = None
    reply: str = ""
    worst_usd: float = 0.0
    share: float = 1.0  # Share of the price that its service tier, or a batch, costs
    sure_share: float = 1.0  # The same, as known before the call
    price: Price | None = None  # Of its model, if that is not the main one
    is_told: bool = True  # Whether the server reported a plausible usage
    may_write: bool | None = None  # Whether the cache may be written; None if unknown


def check_limits(*limits: object) -> None:
    """Reject values that cannot act as a limit, such as NaN."""
    for limit in limits:
        is_number = isinstance(limit, int | float) and math.isfinite(limit) and limit >= 0
        if limit is not None and not is_number:
            raise UsageError(
                f"{limit!r} is not a limit",
                help="give a finite number, 0 or more, or None for no limit",
            )


class Budget:
    """The budget of a run, shared by all its workers in one process.

    Before a call its worst case is reserved; afterwards the reservation is replaced by the reported
    usage, or by our own count if that is higher, so that limits do not depend on the server.
    Spending stays within the limits if no prompt has more tokens than counted and no reply exceeds
    its limit; if a server counts more, later prompts are scaled in proportion from its first reply
    on.
    """

    def __init__(
        self,
        counter: Counter | None = None,
        *,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        max_calls: int | None = None,
        max_time_s: float | None = None,
        price: Price | None = None,
        reply_tokens: int | None = None,
        prices: Mapping[str, Price | None] | None = None,
    ) -> None:
        check_limits(max_cost_usd, max_tokens, max_calls, max_time_s)
        self.prices = prices or {}  # Of other models by name; None if unknown
        if max_cost_usd is not None and None in (price, *self.prices.values()):
            raise UsageError("--max-cost needs the price of the model's tokens", help=PRICE_HELP)
        self.price = price
        self.reply_tokens = reply_tokens or DEFAULT_REPLY_TOKENS
        self.max_cost_usd = max_cost_usd
        self.max_tokens = max_tokens
        self.max_calls = max_calls
        self.max_time_s = max_time_s
        self.counter = counter or (Counter() if self.counts_tokens else None)
        self.n_refused = 0
        self._began = monotonic()
        self._spent = Spent()
        self._counted = Usage()  # Usage that counts towards the limits
        self._spent_usd = self._counted_usd = 0.0
        self._held: set[Call] = set()
        self._held_tokens, self._held_usd = 0, 0.0  # Sums: a batch may hold 50,000 calls
        self.stretch = 1.0  # Maximum ratio so far of the server's count of a prompt to ours
        self._lock = threading.Lock()
        self._waiters: set[asyncio.Future[None]] = set()  # They may belong to different event loops

    @property
    def spent(self) -> Spent:
        """Spending so far, without reservations of calls in flight."""
        return self._spent

    @property
    def cost_usd(self) -> float | None:
        """Spending in US dollars; None if a model's price is unknown."""
        return None if None in (self.price, *self.prices.values()) else self._spent_usd

    def price_of(self, model: str) -> Price | None:
        """The token prices of a model; None if unknown."""
        return self.prices.get(model, self.price)

    @property
    def is_limited(self) -> bool:
        """Whether any limit is set."""
        limits = (self.max_cost_usd, self.max_tokens, self.max_calls, self.max_time_s)
        return any(limit is not None for limit in limits)

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens or money are limited, so that replies need a token limit."""
        return self.max_tokens is not None or self.max_cost_usd is not None

    @property
    def left_s(self) -> float | None:
        """Seconds until the deadline, negative if it has passed; None without a deadline."""
        if self.max_time_s is None:
            return None
        return self._began + self.max_time_s - monotonic()

    def count(self, text: str) -> int:
        """Tokens of a text; 0 if no limit depends on them."""
        return 0 if self.counter is None else self.counter.count(text)

    def limited(self, request: Request) -> Request:
        """Set a reply limit, if the budget has to reserve the reply."""
        if not self.counts_tokens or request.max_output_tokens is not None:
            return request
        return replace(request, max_output_tokens=self.reply_tokens)

    def worst(self, request: Request, *, is_exact: bool = False) -> Call:
        """The worst case of a request; `is_exact` counts its tokens instead of estimating them."""
        if not self.counts_tokens:
            return Call()
        # Long documents are counted once for all prompts, with bounds for the tokens at the joints.
        document = "" if is_exact else request.document or ""
        if document and self.counter is not None:
            n_least, n_most = self.counter.bounds_with(request.prompt, document)
        else:
            n_least = n_most = self.count(request.prompt)
        n_texts = len(request.messages)
        n_input = round(n_most * self.stretch) + 1 + FRAME_TOKENS * n_texts
        call = Call(n_input, 0, n_least, n_most, self.stretch)
        call.n_output = request.max_output_tokens or self.reply_tokens
        call.request = None if n_least == n_most else request
        return call

    def usage_of(self, request: Request, completion: Completion) -> Usage:
        """The reported usage, or our own count if that is missing or impossible."""
        reported = completion.usage
        if reported.n_tokens and not reported.n_implausible_calls:
            return reported
        return reported.larger(Usage(self.count(request.prompt), self.count(completion.text)))

    @asynccontextmanager
    async def spending(self, call: Call) -> AsyncIterator[Call]:
        """Context of one call: reserves its worst case, limits its time and settles its usage."""
        call = await self.reserve(call)
        is_sure, is_sent, is_usable = False, True, False
        left_s = self.left_s
        deadline = None if left_s is None else asyncio.timeout(left_s)
        try:
            async with deadline or nullcontext():
                yield call
            is_sure, is_usable = call.usage is not None, True
        except TimeoutError:
            if deadline is not None and deadline.expired():
                raise self.out_of_time() from None
            raise
        except ModelError as error:
            is_sent = error.is_sent
            if error.usage is not None:
                call.usage, is_sure = error.usage, True
            elif error.kind in UNBILLED or not is_sent:
                call.usage, is_sure = Usage(), True
            elif error.is_unwritten:
                call.usage = Usage(call.n_input)
            raise
        finally:
            self.settle(call, is_sure=is_sure, is_sent=is_sent, is_usable=is_usable)

    async def reserve(self, call: Call) -> Call:
        """Wait until the budget has room for the worst case of a call, and reserve it."""
        if (held := self.hold(call)) is not None:
            return held
        while True:
            changed = self.changed()
            try:
                if (held := self.hold(call)) is not None:
                    return held
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.left_s):
                        await changed
            finally:
                self._waiters.discard(changed)

    def changed(self) -> asyncio.Future[None]:
        """A future that is resolved when the next call is settled, in whatever thread."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiters.add(future)
        return future

    def hold(self, call: Call, *, is_sent: bool = False) -> Call | None:
        """Reserve the worst case of a call; None if it has to wait for calls in flight to be settled. Raises a `BudgetError` if it will never fit."""
        with self._lock:
            over = self._over(call)
            if over is not None and call.request is not None:
                exact = self.worst(call.request, is_exact=True)
                call = replace(
                    exact, share=call.share, sure_share=call.sure_share, price=call.price
                )
                over = self._over(call)
            if over is None or is_sent:
                self._held.add(call)
                self._held_tokens += call.n_input + call.n_output
                self._held_usd += call.worst_usd
                return call
            if not self._held or over[0] == "time":
                self.n_refused += 1
                raise self._refusal(*over)
            return None

    def settle(
        self, call: Call, *, is_sure: bool = True, is_sent: bool = True, is_usable: bool = True
    ) -> None:
        """Replace the reservation of a call by its actual usage."""
        with self._lock:
            self._held.remove(call)
            self._held_tokens -= call.n_input + call.n_output
            self._held_usd = self._held_usd - call.worst_usd if self._held else 0.0
            took = Usage(call.n_input, call.n_output) if call.usage is None else call.usage
            counted = took
            if call.reply or took != Usage():
                n_own = call.n_most if took.n_input_tokens < call.n_least else took.n_input_tokens
                counted = took.larger(Usage(n_own, self.count(call.reply) if call.n_most else 0))
            self._counted += counted
            price = call.price or self.price
            if price is not None:
                self._spent_usd += price.call_usd(took, may_write=call.may_write) * call.share
                # Without a plausible report, no discount is assumed.
                is_told = call.is_told and is_sure and not took.n_implausible_calls
                self._counted_usd += (
                    price.call_usd(counted, may_write=call.may_write) * call.share
                    if is_told
                    else price.worst_usd(counted.n_input_tokens, counted.n_output_tokens)
                    * call.sure_share
                )
            self._spent = Spent(
                self._spent.usage + took,
                self._spent.n_calls + is_sent,
                self._spent.n_failed_calls + (is_sent and not is_usable),
                self._spent.n_unsure_calls + (not is_sure),
                self._spent.n_unsure_tokens + (0 if is_sure else took.n_tokens),
            )
            if is_sure and call.n_input and took.n_input_tokens > call.n_input:
                # Concurrent calls detect the same discrepancy, which is corrected only once.
                found = call.stretch * took.n_input_tokens / call.n_input
                self.stretch = min(MAX_STRETCH, max(self.stretch, found))
            waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            resolve(waiter, None)

    def out_of_time(self) -> BudgetError:
        """The error of a call that was running at the deadline."""
        self.n_refused += 1
        return self._refusal("time", self.max_time_s or 0.0, monotonic() - self._began)

    def _over(self, call: Call) -> tuple[str, float, float] | None:
        """The first exhausted limit: its name, its value and the spending."""
        price = call.price or self.price
        if self.max_cost_usd is not None and price is not None:
            call.worst_usd = price.worst_usd(call.n_input, call.n_output) * call.sure_share
        left_s = self.left_s
        if left_s is not None and left_s <= 0 and self.max_time_s is not None:
            return "time", self.max_time_s, self.max_time_s - left_s
        n_calls = self._spent.n_calls
        if self.max_calls is not None and n_calls + len(self._held) + 1 > self.max_calls:
            return "calls", self.max_calls, n_calls
        if not self.counts_tokens:
            return None
        spent = self._counted
        n_spent, n_asked = spent.n_tokens, self._held_tokens + call.n_input + call.n_output
        if self.max_tokens is not None and n_spent + n_asked > self.max_tokens:
            return "tokens", self.max_tokens, n_spent
        usd = self._counted_usd + self._held_usd + call.worst_usd
        if self.max_cost_usd is not None and usd > self.max_cost_usd:
            return "cost", self.max_cost_usd, self._counted_usd
        return None

    def _refusal(self, name: str, limit: float, spent: float) -> BudgetError:
        of, left = _SHOWN[name](limit), _SHOWN[name](max(0.0, limit - spent))
        said = "is over" if name == "time" else f"has {left} left, too little for the next call"
        return BudgetError(
            f"--max-{name}: the limit of {of} {said}", limit=limit, spent=spent, help=GO_ON
        )


_SHOWN: dict[str, Callable[[float], str]] = {
    "cost": money,
    "tokens": lambda n: f"{n:,.0f} tokens",
    "calls": lambda n: f"{n:,.0f} calls",
    "time": lambda s: f"{s:,g} s",
}


class Budgeted(Wrapper):
    """Sends only calls that the budget allows, and waits for room. It is inside of the retries, so that every attempt counts with its usage or its worst case."""

    def __init__(self, model: Model, budget: Budget, caching: PrefixCaching | None = None) -> None:
        super().__init__(model)
        self._budget = budget
        self._caching = caching

    async def complete(self, request: Request) -> Completion:
        """Send one request if the budget allows it."""
        budget, price = self._budget, self._budget.price_of(self.name)
        request = budget.limited(request)
        async with budget.spending(replace(budget.worst(request), price=price)) as call:
            completion = await self._model.complete(request)
            call.usage, call.reply = budget.usage_of(request, completion), completion.text
            call.is_told = bool(completion.usage.n_tokens)
            call.may_write = None if self._caching is None else request.kept_s > 0
            if completion.is_flex and price is not None:
                call.share = price.flex or 1.0
        # Results show the usage that is billed.
        return replace(completion, usage=call.usage)
