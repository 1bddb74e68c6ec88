"""A simulated clock: waits take no time, and their lengths are exact."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from pearl.llm.middleware import budget as budgeting
from pearl.llm.middleware import prefix_warmup, rate
from pearl.llm.middleware import retry as retrying

Result = TypeVar("Result")

__all__ = ["ComputedLoop", "computed"]


class _JumpingSelector(selectors.DefaultSelector):
    """Where nothing happens before the next thing is due, it is that time at once."""

    def __init__(self, under_way_s: float) -> None:
        super().__init__()
        self.now = 0.0
        self._under_way_s = under_way_s

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(timeout and self._under_way_s)
        if not events:
            self.now += timeout or 0
        return events


class ComputedLoop(asyncio.SelectorEventLoop):
    """An event loop on a computed clock, which starts at 0.

    Args:
        under_way_s: Real seconds in which bytes between two sockets of the loop arrive.
    """

    def __init__(self, under_way_s: float = 0.0) -> None:
        self._jumping = _JumpingSelector(under_way_s)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    async def shutdown_default_executor(self, *_: Any) -> None:
        """Wait for the threads without a limit: they do not keep to this clock."""
        await super().shutdown_default_executor()

    def run(self, main: Coroutine[Any, Any, Result], patch: pytest.MonkeyPatch) -> Result:
        """Run to its end what keeps to this clock, limits and retries included."""
        with computed(patch, self) as runner:
            return runner.run(main)


@contextmanager
def computed(
    patch: pytest.MonkeyPatch, loop: ComputedLoop | None = None
) -> Iterator[asyncio.Runner]:
    """Runs things on a computed clock, which budgets, retries and limits use, too."""
    with asyncio.Runner(loop_factory=lambda: loop or ComputedLoop()) as runner:
        for module in (budgeting, prefix_warmup, rate, retrying):
            if hasattr(module, "monotonic"):
                patch.setattr(module, "monotonic", runner.get_loop().time)
        yield runner
