"""Small wrappers: Model → Model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

from msgspec.structs import replace

from pearl.errors import ModelError
from pearl.errors.callers import DEBUG, TEXTS, log
from pearl.errors.privacy import is_private
from pearl.llm import Completion, Constrains, Model, Request, Task, Usage, parameters_of
from pearl.llm.flaws import trimmed, usable
from pearl.llm.messages import restored
from pearl.llm.progress import (
    CallAttempt,
    CallProgress,
    News,
    is_heard,
    listening,
    n_failed_attempts,
    report,
)


class Wrapper:
    """A model that delegates to another one."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    # Cached, because every call reads them through all wrappers.
    @cached_property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    @cached_property
    def identity(self) -> str:
        """The wrapped model's identity."""
        return self._model.identity

    @property
    def window(self) -> int | None:
        """The wrapped model's window, in tokens."""
        return self._model.window

    @property
    def notice(self) -> str:
        """The wrapped model's notice."""
        return self._model.notice

    @property
    def constrains(self) -> Constrains:
        """The wrapped model's support for constraints."""
        return self._model.constrains

    @cached_property
    def reads_prompts(self) -> bool:
        """Whether the wrapped model reads the messages of a request."""
        return self._model.reads_prompts

    @property
    def is_small(self) -> bool:
        """Whether the wrapped model is declared too small to plan and to check claims."""
        return getattr(self._model, "is_small", False)

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        return await self._model.complete(request)

    async def aclose(self) -> None:
        """Close the wrapped model's connections."""
        await self._model.aclose()


class ReplyGuard(Wrapper):
    """Removes reasoning from replies, and rejects unusable ones before they are cached; batches check their own replies."""

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        began, task = time.monotonic(), type(request.task).__name__
        try:
            completion = await self._model.complete(request)
        except ModelError as error:
            log(DEBUG, "%s: %s has no usable reply: %s", self.name, task, error.kind)
            raise trimmed(error, self.name) from None
        used, took_s = completion.usage, time.monotonic() - began
        log(DEBUG, "%s: %s took %.2f s, %d tokens in, %d out",
            self.name, task, took_s, used.n_input_tokens, used.n_output_tokens)  # fmt: skip
        if not is_private():
            log(TEXTS, "%s: %s\nreply: %s", self.name, request.messages, completion.text)
        return usable(completion, request, is_computed=not self.reads_prompts)


class MarksRestored(Wrapper):
    """Restores the characters that prompts escape in texts of documents. The outermost layer, because replies are cached as they were sent."""

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        completion = await self._model.complete(request)
        text = restored(completion.text)
        return completion if text == completion.text else replace(completion, text=text)


class Sampled(Wrapper):
    """Adds the parameters in the settings to requests that do not set them."""

    def __init__(self, model: Model, parameters: Mapping[str, Any]) -> None:
        super().__init__(model)
        self._parameters = parameters

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        return await self._model.complete(
            replace(request, **{**self._parameters, **parameters_of(request)})
        )


class AttemptReporter(Wrapper):
    """Reports each request to the server and its outcome. It wraps the model directly, because cache hits, waits and budget refusals are no attempts."""

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        if not is_heard():
            return await self._model.complete(request)
        ended = partial(CallAttempt, self.name, self.identity, request, n_failed_attempts.get())
        began = time.monotonic()
        try:
            completion = await self._model.complete(request)
        except (Exception, asyncio.CancelledError) as error:
            took_s = time.monotonic() - began
            if not isinstance(error, ModelError):
                is_cancelled = isinstance(error, asyncio.CancelledError)
                report(ended(took_s, error="cancelled" if is_cancelled else "internal"))
            elif error.is_sent or error.kind == "transport":
                usage = error.usage or Usage()
                report(ended(took_s, error=error.kind, reply=error.reply, usage=usage))
            raise
        took_s = time.monotonic() - began
        report(ended(took_s, completion, reply=completion.text, usage=completion.usage))
        return completion


class TimeLimit(Wrapper):
    """Ends a call after `timeout_s` seconds. For custom models: backends limit their own calls."""

    def __init__(self, model: Model, timeout_s: float) -> None:
        super().__init__(model)
        self._timeout_s = timeout_s

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        deadline = asyncio.timeout(self._timeout_s)
        try:
            async with deadline:
                return await self._model.complete(request)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise ModelError(
                f"no complete reply from {self.name} within {self._timeout_s:g} s",
                kind="deadline",
                help="allow more with timeout_s",
            ) from None


OnProgress = Callable[[Task, News], None]
"""Called with the task of a call, and its progress, its wait, or a finished attempt."""


class ProgressListener(Wrapper):
    """Reports each call: when it is requested, and every event of it."""

    def __init__(self, model: Model, on_progress: OnProgress) -> None:
        super().__init__(model)
        self._on_progress = on_progress

    async def complete(self, request: Request) -> Completion:
        """Send one request."""
        self._on_progress(request.task, CallProgress("asked"))
        with listening(lambda event: self._on_progress(request.task, event)):
            return await self._model.complete(request)
