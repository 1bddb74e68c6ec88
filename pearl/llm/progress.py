"""Progress reports of calls, waits and attempts. The listener is a context variable of tasks and threads; a shared call reports to its first caller's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from msgspec import Struct, field

from pearl.errors import ModelErrorKind
from pearl.llm import Completion, Request, Usage

Phase = Literal["asked", "loading", "reading", "embedding", "writing"]
"""`asked`: sent, no response yet; `loading` the model into memory; `reading` the prompt;
`embedding` the sentences of a document; `writing` the reply."""

MAX_TAIL = 400  # Maximum characters reported from the end of a partial reply
REPORT_S = 10.0  # Seconds between two reports of a wait


class CallProgress(Struct, frozen=True):
    """Progress of a call."""

    phase: Phase
    n_tokens: int = 0
    n_total: int | None = None
    text: str = ""


class CallWait(Struct, frozen=True):
    """Why a call waits."""

    reason: str
    wait_s: float
    attempt: int = 0
    n_attempts: int = 0
    n_failed: int = 0
    """1 in the first report of a wait that follows a sent attempt."""
    usage: Usage = field(default_factory=Usage)  # Tokens of that attempt


AttemptError = ModelErrorKind | Literal["cancelled", "internal"]
"""Why an attempt gave no usable reply: a kind of `ModelError`, the call was cancelled (also
by a time limit), or the backend has a bug."""


class CallAttempt(Struct, frozen=True):
    """A finished attempt of a call: one request to the server."""

    model: str
    identity: str
    request: Request
    number: int
    duration_s: float
    completion: Completion | None = None
    error: AttemptError | None = None
    reply: str = ""
    usage: Usage = field(default_factory=Usage)


class CallReplied(Struct, frozen=True):
    """A reply that belongs to measured work, with its key in the store; "" without a store."""

    completion: Completion
    key: str = ""


News = CallProgress | CallWait | CallAttempt | CallReplied

Listener = Callable[[News], None]

n_failed_attempts: ContextVar[int] = ContextVar("n_failed_attempts", default=0)
"""Number of failed attempts of the current call; set by retries."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(event: News) -> None:
    """Report to the listener of this call, if it has one, in the thread of the event loop."""
    listener = _listener.get()
    if listener is not None:
        listener(event)


def is_heard() -> bool:
    """Whether this call has a listener."""
    return _listener.get() is not None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Listen to the calls made within this context."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def reporting_wait(why: Callable[[], tuple[str, float]]) -> Iterator[None]:
    """Report a wait every `REPORT_S` seconds: `why` returns its reason and seconds; "" reports nothing."""
    if _listener.get() is None:
        yield
        return
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle

    def again() -> None:
        nonlocal timer
        timer = loop.call_later(REPORT_S, again)
        reason, wait_s = why()
        if reason:
            report(CallWait(reason, wait_s))

    timer = loop.call_later(REPORT_S, again)
    try:
        yield
    finally:
        timer.cancel()
