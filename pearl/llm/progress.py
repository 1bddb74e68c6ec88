"""How far a call to a model is, told by whoever knows to whoever listens.

Backends `report`; a caller listens around its call. It goes by a context variable, so that nothing
in between has to pass it on, and tasks and threads started with the context of a call report to its
listener. A reply that several share is reported to the first who asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

__all__ = ["CallProgress", "Phase", "listening", "report"]

Phase = Literal["asked", "loading", "reading", "writing"]
"""`asked`: sent, and nothing heard since; `loading` the model into memory; `reading` the prompt;
`writing` the reply."""


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


_listener: ContextVar[Callable[[CallProgress], None] | None] = ContextVar("listener", default=None)


def report(progress: CallProgress) -> None:
    """Tell the listener of this call, if there is one; in the thread of the event loop."""
    listener = _listener.get()
    if listener is not None:
        listener(progress)


@contextmanager
def listening(listener: Callable[[CallProgress], None]) -> Iterator[None]:
    """Be told how far the calls are that are made within.

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
