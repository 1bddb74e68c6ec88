"""Prefix warm-up: the first call with a prefix fills the server's prefix cache for the others.

Servers reuse the state of a common prefix, but not between concurrent calls. So the first call over a
document is sent alone, and the others follow when it has ended. Some servers write only what a request
marks, and bill it: then a prefix is marked if the expected later calls save more than the write costs.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from time import monotonic
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from pearl.errors import UsageError
from pearl.llm import Completion, Model, PrefixCaching, PrefixUse, Request, Usage
from pearl.llm.messages import prefix_end
from pearl.llm.middleware.wrappers import Wrapper
from pearl.llm.prices import Price, money
from pearl.llm.progress import REPORT_S, reporting_wait

PrimingMode = Literal["auto", "off"]
PRIMING_MODES: tuple[PrimingMode, ...] = get_args(PrimingMode)
MIN_PREFIX_TOKENS = 1_024  # Minimum prefix length of hosted caches, in tokens
LIFETIME_S = 300.0  # Seconds after which hosted caches evict an unused prefix
PROOFS = 3  # Calls without cached tokens after which the server is considered to have no cache
SAMPLES = 16  # Number of recent calls whose median duration is the expected duration of the next
MAX_AGAIN_TOKENS = 16_384  # Maximum tokens of a document that are sent uncached instead of waiting
MAX_AGAIN_USD = 0.02  # The same in US dollars, if the price is known
SURE = 0.9  # Share of its lifetime during which a prefix is assumed to be in the server's cache
SETTLE_S = 0.1  # Seconds to wait for steps with stored replies to end
CALL_S = 10.0  # Expected seconds of a call before the first one has ended
# Usual price ratios of hosted caches, for models of unknown price
_USUAL_PRICE = Price(input_usd=1, cached_usd=0.1, write_usd=1.25, write_long_usd=2, output_usd=0)

_WAITS = "for the first reply over the document, which the server then caches"

MAX_PREFIXES = 10_000  # Maximum documents whose state is kept, about 200 bytes each


class _Prefix(Struct, eq=False):
    used_at_s: float = 0.0
    is_primed: bool = False
    priming: asyncio.Event | None = None
    loop: asyncio.AbstractEventLoop | None = None  # The loop of `priming`
    n_ahead: int = 0  # Calls that did not wait for the first one
    kept_s: float = LIFETIME_S


class PrefixWarmup(Wrapper):
    """Delays calls over a document until the first one has filled the server's prefix cache.

    If the warm-up call fails, the next one takes its place. Waiting calls have not reached the wrapped
    model yet, so they occupy no slot of a `Limited`, and other documents are read meanwhile. Without other
    documents, waiting saves little: then calls wait only once the uncached tokens that they send together
    exceed `MAX_AGAIN_TOKENS`, or their price `MAX_AGAIN_USD`.

    With a model whose server writes what requests mark (`caching`), a call is marked and warms up the
    cache if later calls are expected whose savings exceed the price of the write, for the shortest
    lifetime in which the next of them is expected. Later calls wait, whatever the time, because a second
    write costs more than no cache; they are marked as well, because a server reads only at marks.
    Where calls are not delayed, none is marked.
    """

    def __init__(
        self,
        model: Model,
        mode: PrimingMode = "auto",
        n_places: int | None = None,
        price: Price | None = None,
        caching: PrefixCaching | None = None,
    ) -> None:
        if mode not in PRIMING_MODES:
            raise UsageError(f"unknown warm-up mode '{mode}'", help="auto or off")
        super().__init__(model)
        self._n_places = n_places
        self._price = price
        self._caching = caching
        self._min_tokens = MIN_PREFIX_TOKENS if caching is None else caching.min_tokens
        self._off = "" if mode == "auto" else "priming is off"
        self._prefixes: OrderedDict[Hashable, _Prefix] = OrderedDict()
        self._n_under_way = 0
        self._n_missed = 0
        self._is_proven = False
        self._call_s: deque[float] = deque(maxlen=SAMPLES)
        self._n_tokens, self._n_characters = 1, 4  # English; until usage is reported

    async def complete(self, request: Request) -> Completion:
        """Send one request, after the one that warms up the cache for it."""
        end = prefix_end(request)
        # Estimated from the server's counts so far
        n_characters = 0 if end is None else len(request.messages[0].content) + end
        n_tokens = n_characters * self._n_tokens // self._n_characters
        if end is None or n_tokens < self._min_tokens:
            why = "no document" if end is None else "the document is short"
            return await self._go(request, PrefixUse("free", self._off or why))
        prefix = self._prefix(request, end)
        began = monotonic()
        loop = asyncio.get_running_loop()
        # An event belongs to one loop, so calls do not wait for those of other threads.
        while (priming := prefix.priming) and prefix.loop is loop and not self._off:
            if why := self._in_vain(prefix, n_tokens):
                prefix.n_ahead += 1
                return await self._go(request, PrefixUse("free", why, monotonic() - began))
            with reporting_wait(lambda: (_WAITS, REPORT_S)):
                await priming.wait()
        waited_s, now = monotonic() - began, monotonic()
        lifetime_s = prefix.kept_s * (1.0 if self._caching is None else SURE)
        if prefix.is_primed and now - prefix.used_at_s > lifetime_s:
            prefix.is_primed, prefix.n_ahead = False, 0
        if self._caching is not None:
            if prefix.is_primed and not self._off:
                request = replace(request, kept_s=prefix.kept_s)
            elif kept_s := await self._paid_s(request, prefix, n_tokens):
                request, prefix.kept_s = replace(request, kept_s=kept_s), kept_s
            else:
                why = self._off or "no later call pays for a write to the cache"
                return await self._go(request, PrefixUse("free", why, waited_s))
        if prefix.is_primed:
            role: Literal["waited", "free"] = "waited" if waited_s else "free"
            use = PrefixUse(role, self._off or "the document is primed", waited_s)
            prefix.used_at_s = now
            completion = await self._go(request, use)
            self._learn(completion)
            return completion
        why = "no call over this document has ended yet"
        use = PrefixUse("free" if self._off else "first", self._off or why, waited_s)
        prefix.used_at_s = now  # A server may measure the lifetime from its first token
        ended = prefix.priming = asyncio.Event()
        prefix.loop = loop
        try:
            completion = await self._go(request, use)
            prefix.is_primed = True  # Before the others wake up
            return completion
        finally:
            prefix.priming = None
            ended.set()

    async def _paid_s(self, request: Request, prefix: _Prefix, n_tokens: int) -> float:
        """Wait until the steps with stored replies, which read nothing, have ended; then as `_lifetime_s`."""
        if prefix.priming is not None or not self._lifetime_s(request, n_tokens):
            return 0.0
        settled = prefix.priming = asyncio.Event()
        prefix.loop = asyncio.get_running_loop()
        try:
            n_later, n_before = request.n_later(), 0
            while n_later not in (0, n_before):
                n_before = n_later
                await asyncio.sleep(SETTLE_S)
                n_later = request.n_later()
        finally:
            prefix.priming = None
            settled.set()
        return self._lifetime_s(request, n_tokens)

    def _lifetime_s(self, request: Request, n_tokens: int) -> float:
        """Seconds for which to cache a prefix that is not in the cache; 0 if writing it would not pay."""
        n_later = request.n_later()
        if self._caching is None or self._off or not n_later:
            return 0.0
        from statistics import median  # late: only caches that are paid by time get here

        call_s = median(self._call_s or [CALL_S])
        n_rounds = max(request.n_between, self._n_under_way) / (self._n_places or 1)
        price, n = self._price or _USUAL_PRICE, n_tokens
        for i, lifetime_s in enumerate(self._caching.lifetimes_s):
            if call_s * max(1.0, n_rounds) > SURE * lifetime_s:
                continue
            fresh, read = price.cost_usd(Usage(n)), price.cost_usd(Usage(n, 0, n))
            written = price.cost_usd(Usage(n, 0, 0, 0, n, n if i else 0))
            return lifetime_s if written - fresh < n_later * (fresh - read) else 0.0
        return 0.0

    def _in_vain(self, prefix: _Prefix, n_tokens: int) -> str:
        """Why a call does not wait for the first one over its document; "" if it waits."""
        if self._caching is not None:  # The first call pays for writing the cache
            return ""
        n_again = n_tokens * (1 + prefix.n_ahead)
        if self._n_under_way != 1 + prefix.n_ahead or n_again > MAX_AGAIN_TOKENS:
            return ""
        if self._price is None:
            return f"a wait would save only {n_tokens:,} uncached tokens"
        usage = Usage(n_tokens)
        saved = self._price.call_usd(usage)
        saved -= self._price.call_usd(replace(usage, n_cached_tokens=n_tokens))
        if saved * (1 + prefix.n_ahead) > MAX_AGAIN_USD:
            return ""
        return f"a wait would save only {money(saved)}"

    async def _go(self, request: Request, use: PrefixUse) -> Completion:
        has_place = self._n_places is None or self._n_under_way < self._n_places
        self._n_under_way += 1
        began = monotonic()
        try:
            completion = await self._model.complete(request)
        finally:
            self._n_under_way -= 1
        if has_place:
            self._call_s.append(monotonic() - began)
        if completion.usage.n_input_tokens:
            self._n_tokens += completion.usage.n_input_tokens
            self._n_characters += sum(len(message.content) for message in request.messages)
        return replace(completion, prefix=use)

    def _learn(self, completion: Completion) -> None:
        """Decide from a call with a warm prefix whether to keep delaying calls."""
        if self._off:
            return
        if completion.usage.n_cached_tokens:
            self._is_proven = True
        elif not self._is_proven and (self._caching is None or completion.usage.n_written_tokens):
            # A prefix that is too short for the server is not written, either.
            self._n_missed += 1
            if self._n_missed >= PROOFS:
                self._off = "the server reports no cached tokens"

    def _prefix(self, request: Request, end: int) -> _Prefix:
        # Strings cache their hash, so the document is hashed only once.
        head, body = request.messages[:2]
        key: list[Hashable] = [head.content, request.document or body.content[:end]]
        if self._caching is not None and request.constraint is not None:
            key.append(request.constraint.text)  # Hosted servers put the form before the prompt
        hashed = hash(tuple(key))
        prefix = self._prefixes.setdefault(hashed, _Prefix())
        self._prefixes.move_to_end(hashed)
        if len(self._prefixes) > MAX_PREFIXES:
            self._prefixes.popitem(last=False)
        return prefix
