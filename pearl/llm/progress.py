"""Progress reports of calls, from backends and limits to listeners.

Backends `report` progress; limits and retries report waits. The listener is a context variable, so
tasks and threads started with the context of a call report to its listener. A shared call reports to
its first caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

__all__ = ["REPORT_S", "CallProgress", "CallWait", "Phase", "listening", "report", "reporting_wait"]

Phase = Literal["asked", "loading", "reading", "embedding", "writing"]
"""`asked`: sent, and nothing heard since; `loading` the model into memory; `reading` the prompt;
`embedding` the sentences of a document; `writing` the reply."""

REPORT_S = 10.0
"""Interval in seconds of reports of a wait."""


@dataclass(frozen=True, slots=True)
class CallProgress:
    """Progress of a call.

    Attributes:
        phase: What is being done.
        n_tokens: Tokens read of the prompt, or written of the reply, hidden ones included; sentences
            that are embedded.
        n_total: Tokens of the prompt, or sentences of the document; None while writing.
    """

    phase: Phase
    n_tokens: int = 0
    n_total: int | None = None


@dataclass(frozen=True, slots=True)
class CallWait:
    """Why a call waits.

    Attributes:
        reason: In words.
        wait_s: Minimum seconds left.
        attempt: Number of failed attempts; 0 if a limit delays the call.
    """

    reason: str
    wait_s: float
    attempt: int = 0


Listener = Callable[[CallProgress | CallWait], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


def report(event: CallProgress | CallWait) -> None:
    """Report to the listener of this call, if any, in the thread of the event loop."""
    listener = _listener.get()
    if listener is not None:
        listener(event)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Listen to the calls made within this context.

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
    """Report the reason and the seconds of a wait every `REPORT_S` seconds, unless the reason is ""."""
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
