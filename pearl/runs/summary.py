"""A running run: its callbacks, its summary and its iterator."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from pearl.errors import BudgetError, PearlError
from pearl.llm.middleware.rate import LimiterStatus
from pearl.runs.executors import Listener, Outcome
from pearl.runs.store import Run, Status


@dataclass(frozen=True, slots=True)
class Watcher:
    """Callbacks of a run."""

    listener: Listener | None = None
    is_stopping: Callable[[], bool] = lambda: False
    on_begun: Callable[[Run], None] = lambda run: None
    on_known: Callable[[bytes], None] = lambda key: None
    on_notice: Callable[[str], None] = lambda line: None


@dataclass(slots=True)
class Summary:
    """Summary of a run so far."""

    id: str = ""
    status: Status = "running"
    n_done: int = 0
    n_known: int = 0
    n_failed: int = 0
    n_unfinished: int = 0
    n_unsure: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    first_failure: Outcome[Any] | None = None
    last: Outcome[Any] | None = None
    error: PearlError | None = None
    limits: LimiterStatus | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the run, those from before included."""
        return sum(self.statuses.values())

    def add(self, outcome: Outcome[Any]) -> None:
        """Count an outcome."""
        self.n_done += 1
        self.last = outcome
        if outcome.is_unfinished:
            assert isinstance(outcome.error, PearlError)
            self.error = self.error or outcome.error
            self.n_unfinished += 1
        elif outcome.error is not None and not outcome.has_row:
            self.n_unfinished += 1  # ended by what ends the run for all
        elif outcome.is_failed:
            self.n_failed += 1
            self.first_failure = self.first_failure or outcome
        elif outcome.unit.is_unsure(outcome.result):
            self.n_unsure += 1


class SessionRun:
    """A running run: iterate over its outcomes in the order of the tasks, or await it."""

    def __init__(self, work: AsyncGenerator[Outcome[Any], None], summary: Summary) -> None:
        self.summary = summary
        self._work = work

    def __aiter__(self) -> AsyncIterator[Outcome[Any]]:
        return self._work

    async def aclose(self) -> None:
        """Cancel it; running tasks are repeated when it is resumed."""
        await self._work.aclose()

    def __await__(self) -> Generator[Any, None, Summary]:
        return self._finished().__await__()

    async def _finished(self) -> Summary:
        """Run all tasks."""
        async with aclosing(self._work) as outcomes:
            async for _ in outcomes:
                pass
        error = self.summary.error
        if error is not None and not isinstance(error, BudgetError):
            raise error
        return self.summary
