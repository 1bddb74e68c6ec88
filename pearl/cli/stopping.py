"""Ctrl-C once: start no new work and finish running work. Twice: stop at once."""

from __future__ import annotations

import asyncio
import signal
from typing import Self

import click

ONCE_S = 0.2
"""Seconds within which signals count as one: `timeout` signals both the process and its group."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopper:
    """Turns the first Ctrl-C (or SIGTERM) into the end of the work; use it inside the event loop."""

    def __init__(self) -> None:
        self.is_stopping = False
        self._since = 0.0

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        for number in _SIGNALS:
            self._loop.add_signal_handler(number, self._stop)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number in _SIGNALS:
            self._loop.remove_signal_handler(number)
        if kind is asyncio.CancelledError and self.is_stopping:
            raise KeyboardInterrupt

    def _stop(self) -> None:
        now = self._loop.time()
        if self.is_stopping and self._task is not None:
            if now - self._since > ONCE_S:
                self._task.cancel()
            return
        self.is_stopping, self._since = True, now
        click.echo("finishing what is under way; once more to stop at once", err=True)
