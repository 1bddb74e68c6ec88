"""A running run: its callbacks, its summary and its iterator."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from pearl.errors import BudgetError, PearlError
from pearl.llm.middleware.limiter import LimiterStatus
from pearl.runs.executors import Listener, Outcome
from pearl.runs.store import Run, Status

__all__ = ["SessionRun", "Summary", "Watcher"]


@dataclass(frozen=True, slots=True)
class Watcher:
    """Callbacks of a run.

    Attributes:
        is_stopping: Whether no more tasks are to be begun; those under way are finished.
        on_begun: Given the run once it is this process that writes it, before any call.
        on_known: Callback with the key of every unit that has a row from before, for `Run.outcome`.
        on_notice: Told, in a line, what people should know: of batches, of a damaged store.
    """

    listener: Listener | None = None
    is_stopping: Callable[[], bool] = lambda: False
    on_begun: Callable[[Run], None] = lambda run: None
    on_known: Callable[[bytes], None] = lambda key: None
    on_notice: Callable[[str], None] = lambda line: None


@dataclass(slots=True)
class Summary:
    """Summary of a run so far.

    Attributes:
        id: Of the run in the store; "" where no rows are kept.
        status: How the run ended; `running` until then.
        n_done: Tasks with an outcome, failures included.
        n_known: Tasks whose rows are from before.
        n_unfinished: Tasks that the end of the run has cut off; they are done when it goes on.
        n_unsure: Outcomes that are undecided, or may lack something.
        statuses: How many rows of the run have which status, those from before included.
        error: What ended the run for all tasks: a limit that is reached, no credit, ...
        limits: What the server bore of the calls.
    """

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
        """Run all tasks.

        Raises:
            PearlError: What no task could get past but a limit that was set: no credit, a wrong key, ...
        """
        async with aclosing(self._work) as outcomes:
            async for _ in outcomes:
                pass
        error = self.summary.error
        if error is not None and not isinstance(error, BudgetError):
            raise error
        return self.summary
