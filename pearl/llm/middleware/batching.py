"""Collects calls and sends them together as one batch when no further call can be made.

To a caller it is a slow model. Requests are collected until none has arrived for a while: then
every caller waits. The collected requests form one round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from pearl.errors import ModelError, PausedError
from pearl.llm import Completion, Model, Request
from pearl.llm.backends.openai.batches import Batches
from pearl.llm.middleware.batch_submission import (
    DEFAULT_PACE,
    BatchProgress,
    OnTrouble,
    Pace,
    Submitter,
)
from pearl.llm.middleware.circuit_breaker import CircuitBreaker
from pearl.llm.middleware.dedup_cache import Replies, request_key
from pearl.llm.middleware.pending_batches import PendingBatches
from pearl.llm.middleware.wrapper import Wrapper

PASSES = 20
"""Iterations of the event loop that have to be quiet, too, because on a busy machine it lags."""


class Batched(Wrapper):
    """Collects requests and sends them by rounds through the Batch API.

    Identical requests are deduplicated; a request whose batch is in progress, since this process or
    an earlier one, is not submitted again. Constrained requests go to the model directly, because
    probing a server needs single calls, and so do those for likelihoods. Close it in the event loop that uses it.
    """

    def __init__(
        self,
        model: Model,
        batches: Batches,
        *,
        replies: Replies | None = None,
        folder: Path | None = None,
        pace: Pace = DEFAULT_PACE,
        breaker: CircuitBreaker | None = None,
        is_busy: Callable[[], bool] = lambda: False,
        on_progress: Callable[[BatchProgress], None] | None = None,
        on_trouble: OnTrouble | None = None,
    ) -> None:
        super().__init__(model)
        self.breaker = breaker or CircuitBreaker()
        self._submitter = Submitter(
            batches,
            PendingBatches(folder, batches.server, model.name),
            self._deliver,
            replies=replies,
            pace=pace,
            on_progress=on_progress,
            on_trouble=on_trouble,
        )
        self._quiet_s = pace.quiet_s
        self._is_busy = is_busy
        self._futures: dict[bytes, asyncio.Future[Completion]] = {}
        self._n_waiting: dict[bytes, int] = {}
        self._collected: dict[bytes, Request] = {}
        self._n_direct = 0
        self._stirred_at = 0.0
        self._watch: asyncio.Task[None] | None = None
        self._rounds: set[asyncio.Task[None]] = set()

    def stir(self) -> None:
        """Delay the end of the round, because more requests may follow soon."""
        self._stirred_at = monotonic()

    async def complete(self, request: Request) -> Completion:
        """Send one request, with the others of its round."""
        self.breaker.check()
        if request.constraint is not None or request.candidates:
            return await self._complete_directly(request)
        key = request_key(request, self.identity)
        if key not in self._futures:
            self._futures[key] = asyncio.get_running_loop().create_future()
            self._collected[key] = request
        self.stir()
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._collect())
        self._n_waiting[key] = self._n_waiting.get(key, 0) + 1
        try:
            return await self.breaker.interruptible(asyncio.shield(self._futures[key]))
        finally:
            self._leave(key)

    def leave(self) -> None:
        """End the run; submitted batches continue at the server."""
        n = self._submitter.n_under_way
        left = f"{n:,} batch{'' if n == 1 else 'es'} left under way at the server"
        self.breaker.throw(
            PausedError(
                left if n else "stopped before anything was submitted",
                help="run the same command again: their replies are read then",
            )
        )

    async def aclose(self) -> None:
        """Stop waiting. The wrapped model stays open, because this one does not own it."""
        ending = [*self._rounds, *([self._watch] if self._watch else [])]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _complete_directly(self, request: Request) -> Completion:
        self._n_direct += 1
        try:
            return await self._model.complete(request)
        finally:
            self._n_direct -= 1
            self.stir()

    async def _collect(self) -> None:
        """Start a round whenever it is quiet, until no requests are left."""
        while self._collected:
            await self._quiet()
            requests, self._collected = self._collected, {}
            if requests and self.breaker.error is None:
                round = asyncio.create_task(self._carry_out(requests))
                self._rounds.add(round)
                round.add_done_callback(self._rounds.discard)

    async def _quiet(self) -> None:
        while True:
            wait_s = self._stirred_at + self._quiet_s - monotonic()
            if wait_s > 0 or self._n_direct or self._is_busy():
                await asyncio.sleep(max(wait_s, self._quiet_s / 4))
                continue
            seen = self._stirred_at
            for _ in range(PASSES):
                await asyncio.sleep(0)
            if self._stirred_at == seen:
                return

    async def _carry_out(self, requests: dict[bytes, Request]) -> None:
        try:
            await self._submitter.carry_out(requests)
        except Exception as error:  # noqa: BLE001 - a bug must not leave callers waiting
            for key in requests:
                self._deliver(key, error)

    def _deliver(self, key: bytes, result: Completion | Exception) -> None:
        future = self._futures.pop(key, None)
        if future is None or future.done():
            return
        if isinstance(result, Completion):
            future.set_result(result)
            return
        future.set_exception(result.copy() if isinstance(result, ModelError) else result)
        future.exception()  # marks it as retrieved, if nobody awaits it

    def _leave(self, key: bytes) -> None:
        """Drop a request that nobody awaits, unless it was submitted."""
        self._n_waiting[key] -= 1
        if not self._n_waiting[key]:
            del self._n_waiting[key]
            if key in self._collected:
                del self._collected[key]
                self._futures.pop(key).cancel()
