"""Python's garbage collector while many rows are made, none of which is garbage."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pause:
    """How many pauses there are at the moment, in any thread: the first begins it, the last ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n = 0
        self._was_enabled = True

    def begin(self) -> None:
        with self._lock:
            if not self._n:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._n += 1

    def end(self) -> None:
        with self._lock:
            self._n -= 1
            if not self._n and self._was_enabled:
                gc.enable()


_pause = _Pause()


@contextmanager
def collection_paused() -> Iterator[None]:
    """Put off collections, each of which walks through all rows that there are so far.

    The collector is one for the process: it goes on after the last pause of any thread, if it was on
    before the first.
    """
    _pause.begin()
    try:
        yield
    finally:
        _pause.end()
