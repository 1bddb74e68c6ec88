"""No call that a limit of money, tokens, calls or time has no room for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pearl.documents.tokens import Counter
from pearl.errors import BudgetError, ModelError, UsageError
from pearl.llm import Completion, Model, Request, Usage
from pearl.llm.middleware.wrapper import Wrapper
from pearl.llm.prices import Price

__all__ = ["GO_ON", "Budget", "Budgeted", "Spent"]

FRAME_TOKENS = 8
"""Tokens that a server may add to each message: marks of its beginning, end and role."""

DEFAULT_REPLY_TOKENS = 4_096
"""Tokens of a reply at most, where neither the user nor the window sets a limit."""

MAX_STRETCH = 16.0
"""No server counts more than so many times our own: a token has a byte at least, and we count one for
every four characters or so. What is beyond is not in the prompt, and does not grow with it."""

UNBILLED = frozenset({"rate_limited", "auth", "quota", "bad_request", "unconstrained"})
"""Kinds of failure that come before any token is read; after all others there may be a bill."""

GO_ON = "what is finished is kept; raise the limit and run the same command again to go on"
"""What people can do about a run that a limit has stopped: the one place that says it."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What is spent.

    Attributes:
        usage: Tokens, as the server counts them.
        n_calls: Calls sent, failed ones included.
        n_unsure_calls: Those of them that failed or were cancelled after they were sent; no server
            says what it bills for those.
        n_unsure_tokens: Tokens of `usage` that they may have cost at worst; 0 where no limit of
            tokens or money needs to know.
    """

    usage: Usage = field(default_factory=Usage)
    n_calls: int = 0
    n_unsure_calls: int = 0
    n_unsure_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Worst:
    """What one call may take."""

    n_input: int = 0
    n_output: int = 0
    n_prompt: int = 0
    """Our count of the prompt as it stands."""
    stretch: float = 1.0
    """What that was multiplied by."""


class Budget:
    """What a run may spend, shared by all its workers in one process.

    Before a call its worst case is reserved; after it the reservation gives way to what the server
    says it took, or what we count where that is more: limits do not hang on a server's word. So what
    is spent stays within the limits as long as no prompt has more tokens than it is counted to have
    and no reply more than it may have; a server that counts more than we do is noticed with its first
    reply, and all later prompts are taken to be longer in proportion.

    Args:
        counter: Counts the tokens of prompts; None for an estimate where a limit needs one, and for
            the server's word alone where none does.
        max_cost_usd: US dollars; None for no limit, as below.
        max_tokens: Input and output tokens together.
        max_calls: Calls sent, failed ones included.
        max_time_s: Seconds from now.
        price: What tokens cost.
        reply_tokens: Tokens of a reply at most. Requests that set no limit are given this one,
            where tokens or money are limited.

    Raises:
        UsageError: Money is limited, and what tokens cost is not known.
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
        if max_cost_usd is not None and price is None:
            raise UsageError(
                "--max-cost needs to know what the model's tokens cost",
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
        self._began = time.monotonic()
        self._spent = Spent()
        self._counted = Usage()  # towards the limits
        self._held: dict[int, _Worst] = {}
        self._n_admitted = 0
        self._stretch = 1.0
        self._lock = threading.Lock()
        self._changed: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def spent(self) -> Spent:
        """What is spent so far; what is reserved for calls under way is no part of it."""
        return self._spent

    @property
    def cost_usd(self) -> float | None:
        """What is spent in US dollars; None where the price is not known."""
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
        """Seconds until the deadline, below 0 after it; None where there is none."""
        if self.max_time_s is None:
            return None
        return self._began + self.max_time_s - time.monotonic()

    def count(self, text: str) -> int:
        """Tokens of a text; 0 where nothing is to be counted."""
        return 0 if self.counter is None else self.counter.count(text)

    def limited(self, request: Request) -> Request:
        """The request with a limit to its reply, where its reply has to be reserved."""
        if not self.counts_tokens or request.max_output_tokens is not None:
            return request
        return replace(request, max_output_tokens=self.reply_tokens)

    def worst(self, request: Request) -> _Worst:
        """What a request may take."""
        if not self.counts_tokens:
            return _Worst()
        n_prompt = self.count(request.prompt)
        n_output = request.max_output_tokens or self.reply_tokens
        n_input = round(n_prompt * self._stretch) + 1 + FRAME_TOKENS * len(request.messages)
        return _Worst(n_input, n_output, n_prompt, self._stretch)

    async def reserve(self, worst: _Worst) -> int:
        """Wait until there is room for a call.

        Returns:
            A number for `settle`.

        Raises:
            BudgetError: There is none, and none is to come back from calls under way.
        """
        loop = asyncio.get_running_loop()
        while True:
            if self._loop is not loop:  # an event belongs to one event loop
                self._loop, self._changed = loop, asyncio.Event()
            assert self._changed is not None
            changed = self._changed
            with self._lock:
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
    ) -> None:
        """Book what a call took in place of what was reserved for it.

        Args:
            number: What `reserve` returned.
            usage: As the server reports it; None for as much as was reserved.
            reply: The text that came, "" for none.
            is_sure: Whether the server says so.
            is_sent: Whether there was a call at all.
        """
        with self._lock:
            worst = self._held.pop(number)
            took = Usage(worst.n_input, worst.n_output) if usage is None else usage
            counted = took
            if reply or took != Usage():
                own = Usage(worst.n_prompt, self.count(reply) if worst.n_prompt else 0)
                counted = took.larger(own)
                if took.n_implausible_calls:
                    counted = replace(counted, n_cached_tokens=0)  # no discount on its word
            self._counted += counted
            n_unsure = 0 if is_sure else took.n_tokens
            self._spent = Spent(
                self._spent.usage + took,
                self._spent.n_calls + is_sent,
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
        return self._refusal("time", self.max_time_s or 0.0, time.monotonic() - self._began)

    def _over(self, worst: _Worst) -> tuple[str, float, float] | None:
        """The first limit without room: its name, the limit, and what is spent of it."""
        left_s = self.left_s
        if left_s is not None and left_s <= 0 and self.max_time_s is not None:
            return "time", self.max_time_s, self.max_time_s - left_s
        held = self._held.values()
        calls = self._spent.n_calls
        if self.max_calls is not None and calls + len(held) + 1 > self.max_calls:
            return "calls", self.max_calls, calls
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


_SHOWN: dict[str, Callable[[float], str]] = {
    "cost": lambda usd: f"${usd:,.4f}",
    "tokens": lambda n: f"{n:,.0f} tokens",
    "calls": lambda n: f"{n:,.0f} calls",
    "time": lambda s: f"{s:,g} s",
}


class Budgeted(Wrapper):
    """Asks only what a budget has room for; waits for calls under way that may leave some.

    Put it next to the model, inside of limits and retries, `Retrying(Limited(Budgeted(model), 8))`:
    what queues for a place reserves nothing, every attempt counts, and a call that waits for room
    takes a place that only those under way could give it.

    A reply that is of no use counts as what the server says it took. A call that fails where it may
    have been billed, or is cancelled while it is under way, counts as its worst case.

    Args:
        model: The model to ask.
        budget: What all who share it may spend.
    """

    def __init__(self, model: Model, budget: Budget) -> None:
        super().__init__(model)
        self._budget = budget

    async def complete(self, request: Request) -> Completion:
        """Carry out one request if there is room for it.

        Raises:
            BudgetError: There is none, or the time was over before the reply.
            ModelError: There is no usable reply.
        """
        budget = self._budget
        request = budget.limited(request)
        number = await budget.reserve(budget.worst(request))
        took: Usage | None = None
        is_sure, is_sent, reply = False, True, ""
        deadline = asyncio.timeout(budget.left_s)
        try:
            async with deadline:
                completion = await self._model.complete(request)
            took, is_sure, reply = self._usage(request, completion), True, completion.text
        except TimeoutError:
            if deadline.expired():
                raise budget.out_of_time() from None
            raise
        except ModelError as error:
            is_sent = error.is_sent
            if error.usage is not None:
                took, is_sure = error.usage, True
            elif error.kind in UNBILLED:
                took, is_sure = Usage(), True
            raise
        finally:
            budget.settle(number, took, reply=reply, is_sure=is_sure, is_sent=is_sent)
        return completion

    def _usage(self, request: Request, completion: Completion) -> Usage:
        """What the server says, or our own count where it says nothing, or what cannot be."""
        reported = completion.usage
        if reported.n_tokens and not reported.n_implausible_calls:
            return reported
        count = self._budget.count
        return reported.larger(Usage(count(request.prompt), count(completion.text)))
