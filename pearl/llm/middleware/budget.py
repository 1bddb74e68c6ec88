"""Budget limits on cost, tokens, calls and time: no call starts that could exceed one."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

from pearl.documents.tokens import Counter
from pearl.errors import BudgetError, ModelError, UsageError
from pearl.llm import Completion, Model, Request, Usage
from pearl.llm.middleware.wrappers import Wrapper
from pearl.llm.prices import Price, money

FRAME_TOKENS = 8  # Tokens that a server may add to each message for its delimiters and role
# Tokens of a reply at most, where neither the user nor the window sets a limit.
DEFAULT_REPLY_TOKENS = 4_096
# No server counts more than so many times our own: a token has a byte at least, and we count one
# for every four characters or so. What is beyond is not in the prompt, and does not grow with it.
MAX_STRETCH = 16.0
# Kinds of failure that come before any token is read; after all others there may be a bill.
UNBILLED = frozenset({"rate_limited", "auth", "quota", "bad_request", "unconstrained"})
# Help text for a run that a limit has stopped.
GO_ON = "what is finished is kept; raise the limit and run the same command again to go on"


@dataclass(frozen=True, slots=True)
class Spent:
    """Spending so far."""

    usage: Usage = field(default_factory=Usage)
    n_calls: int = 0
    n_failed_calls: int = 0
    n_unsure_calls: int = 0
    n_unsure_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst case of one call."""

    n_input: int = 0
    n_output: int = 0
    n_prompt: int = 0
    """Tokens of the prompt by our count, at most."""
    stretch: float = 1.0
    """The correction factor applied to it."""
    n_least: int = 0
    """Tokens of the prompt by our count, at least."""
    recount: Callable[[], Worst] | None = None
    """Counts the prompt to the token; None where that is done."""


def check_limits(*limits: object) -> None:
    """Refuse what limits nothing, as NaN, which no number exceeds."""
    for limit in limits:
        is_number = isinstance(limit, int | float) and math.isfinite(limit) and limit >= 0
        if limit is not None and not is_number:
            raise UsageError(
                f"{limit!r} is not a limit",
                help="give a finite number from 0, or None for no limit",
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
    ) -> None:
        check_limits(max_cost_usd, max_tokens, max_calls, max_time_s)
        if max_cost_usd is not None and price is None:
            raise UsageError(
                "--max-cost needs the price of the model's tokens",
                help="--price IN/OUT in US dollars per million tokens, or --prices FILE",
            )
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
        self._counted = Usage()  # towards the limits
        self._held: dict[int, Worst] = {}
        self._n_admitted = 0
        self._stretch = 1.0
        self._lock = threading.Lock()
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def spent(self) -> Spent:
        """Spending so far, without reservations of calls in flight."""
        return self._spent

    @property
    def cost_usd(self) -> float | None:
        """Spending in US dollars; None if the price is unknown."""
        return None if self.price is None else self.price.cost_usd(self._spent.usage)

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        limits = (self.max_cost_usd, self.max_tokens, self.max_calls, self.max_time_s)
        return any(limit is not None for limit in limits)

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens or money are limited, so that replies need a limit, too."""
        return self.max_tokens is not None or self.max_cost_usd is not None

    @property
    def left_s(self) -> float | None:
        """Seconds until the deadline, negative after it; None without a deadline."""
        if self.max_time_s is None:
            return None
        return self._began + self.max_time_s - monotonic()

    def count(self, text: str) -> int:
        """Tokens of a text; 0 if no limit needs them."""
        return 0 if self.counter is None else self.counter.count(text)

    def limited(self, request: Request) -> Request:
        """The request with a reply limit, if the reply has to be reserved."""
        if not self.counts_tokens or request.max_output_tokens is not None:
            return request
        return replace(request, max_output_tokens=self.reply_tokens)

    def worst(self, request: Request, *, is_exact: bool = False) -> Worst:
        """The worst case of a request."""
        if not self.counts_tokens:
            return Worst()
        # The document of a prompt is counted once for all prompts, but for what the seams may add.
        document = "" if is_exact else request.document or ""
        if document and self.counter is not None:
            n_least, n_prompt = self.counter.bounds_with(request.prompt, document)
        else:
            n_least = n_prompt = self.count(request.prompt)
        n_output = request.max_output_tokens or self.reply_tokens
        n_input = round(n_prompt * self._stretch) + 1 + FRAME_TOKENS * len(request.messages)
        recount = None if n_least == n_prompt else partial(self.worst, request, is_exact=True)
        return Worst(n_input, n_output, n_prompt, self._stretch, n_least, recount)

    def worst_of(self, texts: Sequence[str]) -> Worst:
        """The worst case of a call that reads texts and writes none, as embeddings do."""
        if not self.counts_tokens:
            return Worst()
        n_own = sum(map(self.count, texts))
        n_input = round(n_own * self._stretch) + 1 + FRAME_TOKENS * len(texts)
        return Worst(n_input, 0, n_own, self._stretch, n_own)

    async def reserve(self, worst: Worst) -> int:
        """Wait until the budget allows a call, and reserve its worst case."""
        loop = asyncio.get_running_loop()
        while True:
            if self._loop is not loop:  # events are bound to an event loop
                self._loop, self._changed = loop, asyncio.Event()
            assert self._changed is not None
            changed = self._changed
            with self._lock:
                over = self._over(worst)
                if over is not None and worst.recount is not None:
                    worst = worst.recount()
                    over = self._over(worst)
                if over is None:
                    self._n_admitted += 1
                    self._held[self._n_admitted] = worst
                    return self._n_admitted
                if not self._held or over[0] == "time":
                    self.n_refused += 1
                    raise self._refusal(*over)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.left_s):
                    await changed.wait()

    def settle(
        self,
        number: int,
        usage: Usage | None,
        *,
        reply: str = "",
        is_sure: bool = True,
        is_sent: bool = True,
        is_usable: bool = True,
    ) -> None:
        """Replace the reservation of a call by its actual usage."""
        with self._lock:
            worst = self._held.pop(number)
            took = Usage(worst.n_input, worst.n_output) if usage is None else usage
            counted = took
            if reply or took != Usage():
                is_short = took.n_input_tokens < worst.n_least
                n_own = worst.n_prompt if is_short else took.n_input_tokens
                counted = took.larger(Usage(n_own, self.count(reply) if worst.n_prompt else 0))
                if took.n_implausible_calls:
                    counted = replace(counted, n_cached_tokens=0)  # no discount on its word
            self._counted += counted
            n_unsure = 0 if is_sure else took.n_tokens
            self._spent = Spent(
                self._spent.usage + took,
                self._spent.n_calls + is_sent,
                self._spent.n_failed_calls + (is_sent and not is_usable),
                self._spent.n_unsure_calls + (not is_sure),
                self._spent.n_unsure_tokens + n_unsure,
            )
            if is_sure and worst.n_input and took.n_input_tokens > worst.n_input:
                # Calls that were under way together all find the same out; it counts once.
                found = worst.stretch * took.n_input_tokens / worst.n_input
                self._stretch = min(MAX_STRETCH, max(self._stretch, found))
        if self._changed is not None:
            self._changed.set()
            self._changed = asyncio.Event()

    def out_of_time(self) -> BudgetError:
        """The error of a call that was under way at the deadline."""
        self.n_refused += 1
        return self._refusal("time", self.max_time_s or 0.0, monotonic() - self._began)

    def _over(self, worst: Worst) -> tuple[str, float, float] | None:
        """The first exhausted limit: its name, value and spending."""
        left_s = self.left_s
        if left_s is not None and left_s <= 0 and self.max_time_s is not None:
            return "time", self.max_time_s, self.max_time_s - left_s
        held = self._held.values()
        calls = self._spent.n_calls
        if self.max_calls is not None and calls + len(held) + 1 > self.max_calls:
            return "calls", self.max_calls, calls
        if not self.counts_tokens:
            return None
        spent = self._counted
        asked = Usage(
            worst.n_input + sum(one.n_input for one in held),
            worst.n_output + sum(one.n_output for one in held),
        )
        n_spent, n_asked = spent.n_tokens, asked.n_tokens
        if self.max_tokens is not None and n_spent + n_asked > self.max_tokens:
            return "tokens", self.max_tokens, n_spent
        if self.max_cost_usd is not None and self.price is not None:
            cost = self.price.cost_usd(spent)
            if cost + self.price.cost_usd(asked) > self.max_cost_usd:
                return "cost", self.max_cost_usd, cost
        return None

    def _refusal(self, name: str, limit: float, spent: float) -> BudgetError:
        of, left = _SHOWN[name](limit), _SHOWN[name](max(0.0, limit - spent))
        said = "is over" if name == "time" else f"has {left} left, too little for the next call"
        return BudgetError(
            f"--max-{name}: the limit of {of} {said}", limit=limit, spent=spent, help=GO_ON
        )


@dataclass(slots=True)
class Call:
    """Usage and reply of a call; the caller sets them after the reply."""

    usage: Usage | None = None
    reply: str = ""


@asynccontextmanager
async def spending(budget: Budget, worst: Worst) -> AsyncIterator[Call]:
    """Make a call within, if the budget allows it and as long as it lasts."""
    number = await budget.reserve(worst)
    call = Call()
    is_sure, is_sent, is_usable = False, True, False
    deadline = asyncio.timeout(budget.left_s)
    try:
        async with deadline:
            yield call
        is_sure, is_usable = call.usage is not None, True
    except TimeoutError:
        if deadline.expired():
            raise budget.out_of_time() from None
        raise
    except ModelError as error:
        is_sent = error.is_sent
        if error.usage is not None:
            call.usage, is_sure = error.usage, True
        elif error.kind in UNBILLED or not is_sent:
            call.usage, is_sure = Usage(), True
        raise
    finally:
        budget.settle(
            number, call.usage,
            reply=call.reply, is_sure=is_sure, is_sent=is_sent, is_usable=is_usable,
        )  # fmt: skip


_SHOWN: dict[str, Callable[[float], str]] = {
    "cost": money,
    "tokens": lambda n: f"{n:,.0f} tokens",
    "calls": lambda n: f"{n:,.0f} calls",
    "time": lambda s: f"{s:,g} s",
}


class Budgeted(Wrapper):
    """Sends only calls that the budget allows; waits for calls in flight that may release some.

    Put it next to the model, inside of limits and retries, `Retrying(Limited(Budgeted(model), 8))`:
    what queues for a place reserves nothing, every attempt counts, and a call that waits for room
    takes a place that only those under way could give it.

    A reply that is of no use counts as what the server says it took. A call that fails where it may
    have been billed, or is cancelled while it is under way, counts as its worst case.
    """

    def __init__(self, model: Model, budget: Budget) -> None:
        super().__init__(model)
        self._budget = budget

    async def complete(self, request: Request) -> Completion:
        """Send one request if the budget allows it."""
        budget = self._budget
        request = budget.limited(request)
        async with spending(budget, budget.worst(request)) as call:
            completion = await self._model.complete(request)
            call.usage, call.reply = self._usage(request, completion), completion.text
        # Rows and pages have what the run is billed for.
        return replace(completion, usage=call.usage)

    def _usage(self, request: Request, completion: Completion) -> Usage:
        """The reported usage, or our own count if it is missing or impossible."""
        reported = completion.usage
        if reported.n_tokens and not reported.n_implausible_calls:
            return reported
        count = self._budget.count
        return reported.larger(Usage(count(request.prompt), count(completion.text)))
