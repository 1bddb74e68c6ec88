"""What a call to a model is doing, told by whoever knows to whoever listens.

Backends `report` how far they are; limits and retries report what a call waits for. A caller listens
around its call. It goes by a context variable, so that nothing in between has to pass it on, and
tasks and threads started with the context of a call report to its listener. A reply that several
share is reported to the first who asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

__all__ = ["REPORT_S", "CallProgress", "CallWait", "Phase", "listening", "report", "reporting_wait"]

Phase = Literal["asked", "loading", "reading", "writing"]
"""`asked`: sent, and nothing heard since; `loading` the model into memory; `reading` the prompt;
`writing` the reply."""

REPORT_S = 10.0
"""Seconds after which a wait is reported again: none is silent for long."""


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a call is.

    Attributes:
        phase: What is being done.
        n_tokens: Tokens of the prompt that are read, or of the reply that are written, hidden ones
            included.
        n_total: Tokens of the prompt; None while writing, for nobody knows.
    """

    phase: Phase
    n_tokens: int = 0
    n_total: int | None = None


@dataclass(frozen=True, slots=True)
class CallWait:
    """Why a call is not sent now.

    Attributes:
        reason: In words.
        wait_s: Seconds that are left, at least.
        attempt: Which attempt has failed, from 1; 0 where a limit holds the call back.
    """

    reason: str
    wait_s: float
    attempt: int = 0


Listener = Callable[[CallProgress | CallWait], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(news: CallProgress | CallWait) -> None:
    """Tell the listener of this call, if there is one; in the thread of the event loop."""
    listener = _listener.get()
    if listener is not None:
        listener(news)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Be told what the calls are doing that are made within.

    Example:
        >>> with listening(print):
        ...     report(CallProgress("writing", 3))
        CallProgress(phase='writing', n_tokens=3, n_total=None)
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def reporting_wait(why: Callable[[], tuple[str, float]]) -> Iterator[None]:
    """Report a wait every `REPORT_S` seconds, for the length of a block.

    Args:
        why: The reason and the seconds left; the reason is "" where there is nothing to report.
    """
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
