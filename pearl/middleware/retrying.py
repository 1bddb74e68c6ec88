"""Ask again where the same request may succeed later."""

from __future__ import annotations

from collections.abc import Callable

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from pearl.errors import ModelError, UsageError
from pearl.llm import Completion, Model, Request
from pearl.middleware.wrapper import Wrapper

__all__ = ["OnWait", "Retrying"]

OnWait = Callable[[str, float, int], None]
"""Told before each wait: the reason, the seconds, and which attempt has failed, from 1."""


class Retrying(Wrapper):
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
