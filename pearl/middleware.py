"""Model → Model: what every backend would otherwise do for itself.

A wrapper is a `Model` with the name, window and notice of the one it wraps. Wait outside of the
limit, `Retrying(Limited(model, 8))`: a call that waits then leaves its place to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Constrains, Model, Request

__all__ = ["Limited", "OnWait", "Retrying", "Sampling"]

OnWait = Callable[[str, float, int], None]
"""Told before each wait: the reason, the seconds, and which attempt has failed, from 1."""


LONGEST_PAUSE_S = 60.0
"""Seconds that a server may ask of all calls; a longer wait is left to the call that was told."""


class _Wrapper:
    """What a wrapper leaves as it is."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def window(self) -> int | None:
        return self._model.window

    @property
    def notice(self) -> str:
        return self._model.notice

    @property
    def constrains(self) -> Constrains:
        return self._model.constrains

    async def aclose(self) -> None:
        """Let go of the wrapped model's connections."""
        await self._model.aclose()


class Retrying(_Wrapper):
    """Asks again where the same request may succeed later, and says so.

    The server's own `retry_after_s` is kept to. A server that wants a longer wait than
    `longest_wait_s` is not waited for: asking it earlier would be refused again.

    Args:
        model: The model to ask.
        attempts: Calls of one request at most, the first included.
        on_wait: Told before each wait.
        first_wait_s: Seconds before the second call where the server names none; doubles with
            each further call up to a minute, plus up to as much again at random.
        longest_wait_s: Seconds that a server may ask to wait.

    Raises:
        UsageError: `attempts` is less than 1.

    Example:
        >>> from pearl.llm.scripted import Scripted
        >>> Retrying(Scripted(lambda request: "yes")).name
        'scripted'
    """

    def __init__(
        self,
        model: Model,
        attempts: int = 4,
        on_wait: OnWait | None = None,
        *,
        first_wait_s: float = 1.0,
        longest_wait_s: float = 600.0,
    ) -> None:
        if attempts < 1:
            raise UsageError(f"{attempts} attempts are too few", help="1 is a call without retries")
        super().__init__(model)
        self._attempts = attempts
        self._on_wait = on_wait
        self._longest_wait_s = longest_wait_s
        self._growing = wait_exponential(multiplier=first_wait_s, max=60) + wait_random(
            0, first_wait_s
        )

    async def complete(self, request: Request) -> Completion:
        """Carry out one request.

        Raises:
            ModelError: There is no usable reply; the error of the last call.
        """
        return await AsyncRetrying(
            stop=stop_after_attempt(self._attempts),
            retry=retry_if_exception(self._may_succeed_later),
            wait=self._wait_s,
            before_sleep=self._report,
            reraise=True,
        )(self._model.complete, request)

    def _may_succeed_later(self, error: BaseException) -> bool:
        return (
            isinstance(error, ModelError)
            and error.is_retryable
            and (error.retry_after_s or 0) <= self._longest_wait_s
        )

    def _wait_s(self, state: RetryCallState) -> float:
        # A server that says "0" says nothing about when it is worth while to ask again.
        return _error(state).retry_after_s or self._growing(state)

    def _report(self, state: RetryCallState) -> None:
        if self._on_wait and state.next_action:
            self._on_wait(_error(state).message, state.next_action.sleep, state.attempt_number)


def _error(state: RetryCallState) -> ModelError:
    """What the call failed with; asked only where `_may_succeed_later` has seen it."""
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ModelError)
    return error


class Limited(_Wrapper):
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


class Sampling(_Wrapper):
    """Asks every request with a seed, and with a temperature of its own if one is given.

    Args:
        model: The model to ask.
        seed: For servers that take one; others ignore it.
        temperature: 0 for the most likely reply; None leaves the request's own.
    """

    def __init__(self, model: Model, seed: int, temperature: float | None = None) -> None:
        super().__init__(model)
        self._seed = seed
        self._temperature = temperature

    async def complete(self, request: Request) -> Completion:
        """Carry out one request.

        Raises:
            ModelError: There is no usable reply.
        """
        temperature = request.temperature if self._temperature is None else self._temperature
        return await self._model.complete(
            replace(request, seed=self._seed, temperature=temperature)
        )
