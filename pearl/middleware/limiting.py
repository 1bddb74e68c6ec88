"""So many calls at once, and none while the server wants to be left alone."""

from __future__ import annotations

import asyncio

from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Model, Request
from pearl.middleware.wrapper import Wrapper

__all__ = ["Limited"]

LONGEST_PAUSE_S = 60.0
"""Seconds that a server may ask of all calls; a longer wait is left to the call that was told."""


class Limited(Wrapper):
    """At most `n` calls at once; the others queue in order.

    A server that asks one call to wait, up to `LONGEST_PAUSE_S`, is left alone by all of them: if
    each had to be told, one burst after the other would be refused.

    Raises:
        UsageError: `n` is less than 1.
    """

    def __init__(self, model: Model, n: int) -> None:
        if n < 1:
            raise UsageError(f"{n} calls at once are too few", help="use 1 or more")
        super().__init__(model)
        self._n = n
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(n)
        self._paused_until = 0.0

    async def complete(self, request: Request) -> Completion:
        """Carry out one request as soon as there is a place.

        Raises:
            ModelError: There is no usable reply.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a semaphore and a clock belong to one event loop
            self._loop, self._places, self._paused_until = loop, asyncio.Semaphore(self._n), 0.0
        async with self._places:
            await asyncio.sleep(max(0.0, self._paused_until - loop.time()))
            try:
                return await self._model.complete(request)
            except ModelError as error:
                if error.kind == "rate_limited" and (error.retry_after_s or 0) <= LONGEST_PAUSE_S:
                    until = loop.time() + (error.retry_after_s or 0)
                    self._paused_until = max(self._paused_until, until)
                raise
