"""An event loop on a clock that is computed: minutes of waiting take no time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from heapq import heappop
from typing import Any, TypeVar

import pytest

from pearl.middleware import halting, limiting, queueing, retrying

Result = TypeVar("Result")


class Computed(asyncio.SelectorEventLoop):
    """A loop whose time goes on to the next timer when there is nothing else to do.

    Attributes:
        now: Seconds, from 0.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        timers = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0].cancelled():  # else it would sleep until the next that is not
            heappop(timers)._scheduled = False
            self._timer_cancelled_count -= 1
        if timers and not self._ready:  # type: ignore[attr-defined]
            self.now = max(self.now, timers[0].when())
        super()._run_once()  # type: ignore[misc]

    def run(self, main: Coroutine[Any, Any, Result], monkeypatch: pytest.MonkeyPatch) -> Result:
        """Run to its end what keeps to this clock; limits and retries are made to."""
        for module in (limiting, queueing, retrying, halting):
            if hasattr(module, "monotonic"):
                monkeypatch.setattr(module, "monotonic", self.time)
        with asyncio.Runner(loop_factory=lambda: self) as runner:
            return runner.run(main)
