"""Prefix warm-up: the first call over a document fills the server's prefix cache for the others.

Servers keep what they computed for the beginning of a prompt and reuse it, in whole blocks, for
later prompts that begin alike; calls that are sent together do not help each other. So the first
call that begins with a document goes ahead, and the others that do follow when it has ended.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, replace
from typing import Literal, get_args

from pearl.errors import UsageError
from pearl.llm import Completion, Model, PrefixUse, Request
from pearl.llm.middleware.wrapper import Wrapper

__all__ = ["PRIMING_MODES", "PrefixWarmup", "PrimingMode"]

PrimingMode = Literal["auto", "off"]
PRIMING_MODES: tuple[PrimingMode, ...] = get_args(PrimingMode)

MIN_PREFIX_TOKENS = 1_024
"""Minimum prefix length of hosted caches, in tokens."""

BLOCK_TOKENS = 128
"""Block size of hosted caches in tokens."""

LIFETIME_S = 300.0
"""Seconds after which hosted caches evict an unused prefix."""

PROOFS = 3
"""Calls that ought to have been served from the cache before it is held against the server."""

SAMPLES = 16
"""The last calls whose durations count; as many at least, for the first ones come in bursts."""

MIN_FIRST = 4
"""Calls that primed the cache before durations are compared."""

MIN_SAVED = 0.2
"""Share of a call's time that the cache has to save, or waiting for it takes longer than it wins."""

_BEGIN, _END = "<text>\n", "\n</text>"
"""What stands around a document that begins a prompt, and cannot stand in it (`pearl.llm.messages.block`)."""

MAX_PREFIXES = 10_000
"""Documents whose state is kept; each takes about 200 bytes."""


@dataclass(slots=True, eq=False)
class _Prefix:
    """State of one shared prefix."""

    used_at_s: float = 0.0
    is_primed: bool = False
    priming: asyncio.Event | None = None


class PrefixWarmup(Wrapper):
    """Delays calls over a document until the first one has filled the server's prefix cache.

    The prefix of a request is its prompt up to the end of its document. If the call that primes
    fails, the next one primes. Waiting calls have not reached the wrapped model yet, so around a
    `Limited` they hold none of its places: other documents are read meanwhile, and where there is
    enough to do, waiting costs no time.

    `auto` weighs what waiting wins against the time it costs, by what is observed, and says in
    `Completion.prefix` what it chose and why. It does not wait, from then on to the end of the run,
    where

    - the server reports no cached token though `PROOFS` calls had a primed prefix: no cache;
    - a call takes as long with the cache as without (less than `MIN_SAVED` saved, by the shortest of
      the last `SAMPLES` calls that found a free place): writing replies is what takes the time, and
      whoever waits for a whole reply loses more of it than the shorter reading wins;

    and for single calls whose prefix has fewer than `MIN_PREFIX_TOKENS`.

    Args:
        model: The model to ask.
        mode: `off` lets every call go as it comes.
        n_places: Calls that the wrapped model carries out at once; durations of calls that may
            have queued for a place say nothing about the server. None for no limit.

    Raises:
        UsageError: The mode is neither `auto` nor `off`.
    """

    def __init__(
        self, model: Model, mode: PrimingMode = "auto", n_places: int | None = None
    ) -> None:
        if mode not in PRIMING_MODES:
            raise UsageError(f"unknown mode of priming '{mode}'", help="auto or off")
        super().__init__(model)
        self._n_places = n_places
        self._off = "" if mode == "auto" else "priming is off"
        self._prefixes: OrderedDict[int, _Prefix] = OrderedDict()
        self._n_under_way = 0
        self._n_missed = 0
        self._is_proven = False
        self._first_s: deque[float] = deque(maxlen=SAMPLES)
        self._later_s: deque[float] = deque(maxlen=SAMPLES)
        self._n_tokens, self._n_characters = 1, 4  # of English, until replies tell

    async def complete(self, request: Request) -> Completion:
        """Send one request, after the one that warms up the cache for it.

        Raises:
            ModelError: The model gave no usable reply.
        """
        length = _prefix_length(request)
        if length is None or self._tokens(length) < MIN_PREFIX_TOKENS:
            why = "no document" if length is None else "the document is short"
            return await self._go(request, PrefixUse("free", self._off or why))
        prefix = self._prefix(request)
        began = time.monotonic()
        while prefix.priming is not None and not self._off:
            await prefix.priming.wait()
        waited_s = time.monotonic() - began
        n_expected = self._tokens(length) // BLOCK_TOKENS * BLOCK_TOKENS
        if prefix.is_primed:
            role: Literal["waited", "free"] = "waited" if waited_s else "free"
            use = PrefixUse(role, self._off or "the document is primed", waited_s, n_expected)
            prefix.used_at_s = time.monotonic()
            completion = await self._go(request, use)
            self._learn(completion)
            return completion
        if self._off:
            completion = await self._go(request, PrefixUse("free", self._off, waited_s))
        else:
            completion = await self._prime(request, prefix, waited_s)
        prefix.is_primed, prefix.used_at_s = True, time.monotonic()
        return completion

    async def _prime(self, request: Request, prefix: _Prefix, waited_s: float) -> Completion:
        ended = prefix.priming = asyncio.Event()
        try:
            use = PrefixUse("first", "no call over this document has ended yet", waited_s)
            completion = await self._go(request, use)
            prefix.is_primed = True  # before the others are woken
            return completion
        finally:
            prefix.priming = None
            ended.set()

    async def _go(self, request: Request, use: PrefixUse) -> Completion:
        has_place = self._n_places is None or self._n_under_way < self._n_places
        self._n_under_way += 1
        began = time.monotonic()
        try:
            completion = await self._model.complete(request)
        finally:
            self._n_under_way -= 1
        if has_place and use.role == "first":
            self._first_s.append(time.monotonic() - began)
        elif has_place and use.n_expected_cached_tokens:
            self._later_s.append(time.monotonic() - began)
        if completion.usage.n_input_tokens:
            self._n_tokens += completion.usage.n_input_tokens
            self._n_characters += sum(len(message.content) for message in request.messages)
        return replace(completion, prefix=use)

    def _learn(self, completion: Completion) -> None:
        """Whether waiting is worth while, by one more call whose prefix was primed."""
        if self._off:
            return
        if completion.usage.n_cached_tokens:
            self._is_proven = True
        elif not self._is_proven:
            self._n_missed += 1
            if self._n_missed >= PROOFS:
                self._off = "the server reports no cached tokens"
                return
        if len(self._first_s) >= MIN_FIRST and len(self._later_s) == SAMPLES:
            # The shortest: the others may have queued in the server, and say nothing about how
            # they were read. It errs on the side of the cache, which is that of the lower bill.
            saved = 1 - min(self._later_s) / min(self._first_s)
            if saved < MIN_SAVED:
                self._off = f"the cache saves {max(0.0, saved):.0%} of a call's time"

    def _tokens(self, n_characters: int) -> int:
        """Tokens of so many characters, by what the server has counted so far."""
        return n_characters * self._n_tokens // self._n_characters

    def _prefix(self, request: Request) -> _Prefix:
        # Strings remember their hash, so a document is not gone over again with every call.
        key = hash((request.messages[0].content, getattr(request.task, "document", None)))
        now = time.monotonic()
        prefix = self._prefixes.get(key)
        if prefix is None or (prefix.is_primed and now - prefix.used_at_s > LIFETIME_S):
            prefix = self._prefixes[key] = _Prefix(now)
        self._prefixes.move_to_end(key)
        if len(self._prefixes) > MAX_PREFIXES:
            self._prefixes.popitem(last=False)  # at worst, it is primed once more
        return prefix


def _prefix_length(request: Request) -> int | None:
    """Characters of the prompt up to the end of its document; None where none begins it."""
    document = getattr(request.task, "document", None)
    if not document or len(request.messages) < 2:
        return None
    system, user = request.messages[:2]
    if not user.content.startswith(_BEGIN):
        return None
    # In the prompt it is as long as the document, or longer where delimiters in it are neutralised.
    end = user.content.find(_END, len(document))
    return None if end < 0 else len(system.content) + end
