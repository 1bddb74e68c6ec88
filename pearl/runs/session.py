"""Many tasks within limits: forecast, run, stopped, and gone on with where they stopped.

The way of a task: left out if its row is kept; carried out by an executor, with replies found and kept
in the store and every call within the budget; its row kept in the run before its outcome is given.
"""

from __future__ import annotations

import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import ExitStack, aclosing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from pearl import plugins
from pearl.errors import BudgetError, PearlError, StoreError, UsageError
from pearl.llm.digest import digest
from pearl.llm.middleware.budget import Budget, Budgeted
from pearl.llm.middleware.dedup_cache import Replies
from pearl.llm.middleware.limiter import LimiterStatus
from pearl.llm.prices import Price, Prices, read_prices
from pearl.pipeline import Pearl
from pearl.runs.executors import Execute, Listener, Outcome, Unit
from pearl.runs.executors.shard import Shard, parse_shard
from pearl.runs.forecast import Forecast, Forecaster
from pearl.runs.identity import fingerprint
from pearl.runs.recording import keyed, run_recorded, unrecorded
from pearl.runs.spending import Spending
from pearl.runs.store import Run, RunSpec, Status, Store

__all__ = ["Session", "SessionRun", "Summary", "Watcher", "opened_store"]

U = TypeVar("U", bound=Unit)


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who is told of what happens in a run, and may end it.

    Attributes:
        listener: Told of every event of every task.
        is_stopping: Whether no more tasks are to be begun; those under way are finished.
        on_begun: Given the run once it is this process that writes it, before any call.
        on_known: Told the key of every unit that has a row from before, for `Run.outcome`.
        on_notice: Told, in a line, what people should know: of batches, of a damaged store.
    """

    listener: Listener | None = None
    is_stopping: Callable[[], bool] = lambda: False
    on_begun: Callable[[Run], None] = lambda run: None
    on_known: Callable[[bytes], None] = lambda key: None
    on_notice: Callable[[str], None] = lambda line: None


@dataclass(slots=True)
class Summary:
    """What has come of a run so far.

    Attributes:
        id: Of the run in the store; "" where no rows are kept.
        status: How the run ended; `running` until then.
        n_done: Tasks with an outcome, failures included.
        n_known: Tasks whose rows are from before.
        n_failed: Tasks that failed.
        n_unfinished: Tasks that the end of the run has cut off; they are done when it goes on.
        statuses: How many rows of the run have which status, those from before included.
        first_failure: The first task that failed.
        last: The latest outcome.
        error: What ended the run for all tasks: a limit that is reached, no credit, ...
        limits: What the server bore of the calls.
    """

    id: str = ""
    status: Status = "running"
    n_done: int = 0
    n_known: int = 0
    n_failed: int = 0
    n_unfinished: int = 0
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
        """One more outcome."""
        self.n_done += 1
        self.last = outcome
        if outcome.is_unfinished:
            assert isinstance(outcome.error, PearlError)
            self.error = self.error or outcome.error
            self.n_unfinished += 1
        elif outcome.is_failed:
            self.n_failed += 1
            self.first_failure = self.first_failure or outcome


class SessionRun:
    """A run under way: iterate over it for its outcomes, in the order of the tasks, or await it.

    Attributes:
        summary: What has come of it so far.
    """

    def __init__(self, work: AsyncGenerator[Outcome[Any], None], summary: Summary) -> None:
        self.summary = summary
        self._work = work

    def __aiter__(self) -> AsyncIterator[Outcome[Any]]:
        return self._work

    async def aclose(self) -> None:
        """End it at once; what is under way is lost, and done when the run goes on."""
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


class Session:
    """Runs tasks with a `Pearl`, within limits, and keeps what they came to.

    The same tasks with the same settings are the same run: running them again goes on where it
    stopped, however it was stopped, and does again only what failed. Limits hold for all runs of the
    session together.

    Args:
        pearl: Model and library.
        store: Where replies and rows are kept: a folder, or an open store; None to keep nothing.
        keeps_rows: Whether rows are kept, so that runs can be gone on with; replies are in any case.
        is_fresh: Begin a new run, and ask for replies anew that are kept from before.
        max_cost_usd: No call is started that could take the cost beyond this; None for no limit.
        max_tokens: Likewise input and output tokens together.
        max_calls: Likewise calls, failed ones included.
        max_minutes: No call is started after this, and those under way then are ended.
        price: What tokens cost, or a table of that by the names of models; None for the shipped one.
        executor: Where tasks are carried out: `local`, `ray`, `batch`.
        shard: Only a part of the tasks, as `1/8`.
        max_errors: No more tasks are begun once more than this have failed; None to go on.

    Attributes:
        price: What a token costs; None where that is not known.

    Raises:
        UsageError: Money is limited and the price is not known, or there is no such executor or shard.
        DataError: The table of prices cannot be read.

    Example:
        >>> import pearl
        >>> session = pearl.Session(pearl.Pearl(), max_calls=10)
        >>> tasks = [pearl.Task("a", lambda: pearl.Document("It rained. She left."), "Why did she leave?")]
        >>> session.forecast(tasks).n_tasks
        1
        >>> pearl.run(session.run(tasks)).status
        'done'
    """

    def __init__(
        self,
        pearl: Pearl,
        *,
        store: Store | str | Path | None = None,
        keeps_rows: bool = True,
        is_fresh: bool = False,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        max_calls: int | None = None,
        max_minutes: float | None = None,
        price: Price | Prices | None = None,
        executor: str = "local",
        shard: Shard | str | None = None,
        max_errors: int | None = None,
    ) -> None:
        if not isinstance(price, Price):
            price = (price or read_prices()).of(pearl.model.name)
        self.price = price
        if max_cost_usd is not None and self.price is None:
            raise UsageError(
                f"a limit of cost needs a price, and the price of '{pearl.model.name}' is not known",
                help="--price IN/OUT in US dollars per million tokens, or --prices FILE",
            )
        self._pearl = pearl
        self._store = Path(store) if isinstance(store, str) else store
        self._keeps_rows = keeps_rows and store is not None
        self._is_fresh = is_fresh
        self._limits = {
            "max_cost_usd": max_cost_usd,
            "max_tokens": max_tokens,
            "max_calls": max_calls,
            "max_time_s": None if max_minutes is None else max_minutes * 60,
        }
        self._executor = executor
        self._execute: Execute = plugins.load("pearl.runs.executors", executor).run
        self._shard = parse_shard(shard) if isinstance(shard, str) else shard
        self._max_errors = max_errors
        self._spending: Spending | None = None

    @property
    def budget(self) -> Budget | None:
        """What was spent so far; None before the first run, and where nothing is counted.

        Calls are counted where a limit is set or the price is known, by the executor `local`.
        """
        return None if self._spending is None else self._spending.budget

    @property
    def predicted(self) -> Forecast | None:
        """What the tasks that were begun were predicted to take, beside what `budget` says."""
        return None if self._spending is None else self._spending.predicted

    def forecast(
        self,
        tasks: Iterable[Unit],
        asked: RunSpec | None = None,
        *,
        id: str | None = None,
        seconds_per_call: float | None = None,
    ) -> Forecast:
        """What it takes to run those tasks that have no row yet; nothing is sent, nothing is written.

        Args:
            tasks: As in `run`.
            asked: As in `run`.
            id: As in `run`.
            seconds_per_call: How long a call takes, for an estimate of the time.
        """
        tasks = self._repeatable(tasks, asked)
        forecaster = Forecaster(self._pearl, price=self.price, seconds_per_call=seconds_per_call)
        n_known = 0

        def on_known(key: bytes) -> None:
            nonlocal n_known
            n_known += 1

        with self._readable() as store:
            numbered = self._numbered(tasks)
            if store is None:
                left = (task for _, task in numbered)
            else:
                key = self.spec(tasks, asked).key
                same = (info.id for info in store.runs() if info.spec_key == key)
                run_id = id or next(same, None)

                def has(key: bytes) -> bool:
                    return run_id is not None and store.is_done(run_id, key)

                missing = unrecorded(self._pearl, numbered, has, on_known)
                left = (task for _, task, _ in missing)
            for task in left:
                forecaster.add(task)
        return replace(forecaster.result(), n_known=n_known)

    def run(
        self,
        tasks: Iterable[Unit],
        asked: RunSpec | None = None,
        *,
        id: str | None = None,
        watcher: Watcher | None = None,
        redo: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> SessionRun:
        """Run the tasks that have no row yet.

        Args:
            tasks: Read one by one. Where rows are kept they are gone through twice; what can be gone
                through but once is held in memory.
            asked: What makes the work the one it is; None for the tasks themselves.
            id: The run to go on with; None for the latest of the same work, or a new one.
            watcher: Who is told of what happens.
            redo: Rows that are made again though they are no failures; none of their replies is
                taken from before.

        Returns:
            The run: iterate over it, or await it. What it raises then is a `StoreError`, for a store
            that cannot be used, or a `UsageError`, for limits that the executor cannot keep.
        """
        summary = Summary()
        tasks = self._repeatable(tasks, asked)
        work = self._work(tasks, asked, id, watcher or Watcher(), summary, redo)
        return SessionRun(work, summary)

    def resume(
        self, run_id: str, tasks: Iterable[Unit], *, watcher: Watcher | None = None
    ) -> SessionRun:
        """Go on with a run of the store, wherever and however it was begun.

        Args:
            run_id: Its id, or how that begins, with its day or without.
            tasks: Its tasks.
            watcher: Who is told of what happens.

        Raises:
            StoreError: There is no such run.
            UsageError: The session has no store.

        Returns:
            As `run`; a `StoreError` comes where the run was begun with other settings.
        """
        with self._readable(is_needed=True) as store:
            assert store is not None
            info = store.run(run_id)
        settings = {"command": info.settings.get("command")}
        asked = RunSpec(info.command, settings, info.inputs, info.folder, info.work)
        return self.run(tasks, asked, id=info.id, watcher=watcher)

    def rows(self, run_id: str) -> Iterator[dict[str, Any]]:
        """Every row of a run once, in the order of the work, read as they are taken.

        Raises:
            StoreError: The store cannot be read, or has no such run.
            UsageError: The session has no store.
        """
        with self._readable(is_needed=True) as store:
            assert store is not None
            yield from store.rows(store.run(run_id).id)

    def kept(self, units: Iterable[U], run_id: str) -> Iterator[tuple[U, dict[str, Any]]]:
        """The rows of those units that have one in a run, failures included, in their order.

        Raises:
            StoreError: The store cannot be read.
            UsageError: The session has no store.
        """
        with self._readable(is_needed=True) as store:
            assert store is not None
            for _, unit, key in keyed(self._pearl, self._numbered(units)):
                row = store.outcome(run_id, key)
                if row is not None:
                    yield unit, row

    def count(self, units: Iterable[Unit]) -> int:
        """How many of the units are those of this session's shard."""
        return sum(1 for _ in self._numbered(units))

    def spec(self, tasks: Iterable[Unit], asked: RunSpec | None = None) -> RunSpec:
        """What makes a run the one it is: the work, and what of the `Pearl` decides its results."""
        if asked is None:
            asked = RunSpec(
                ("python", Path(sys.argv[0]).name), {"command": "session"}, _inputs(tasks)
            )
        shard = {} if self._shard is None else {"shard": str(self._shard)}
        return replace(asked, settings={**asked.settings, **fingerprint(self._pearl), **shard})

    async def _work(
        self,
        tasks: Iterable[Unit],
        asked: RunSpec | None,
        id: str | None,
        watcher: Watcher,
        summary: Summary,
        redo: Callable[[Mapping[str, Any]], bool] | None,
    ) -> AsyncGenerator[Outcome[Any], None]:
        with ExitStack() as stack:
            store = stack.enter_context(self._opened(watcher))
            pearl, execute = self._equipped(store, watcher, is_fresh=redo is not None)
            run: Run | None = None
            if store is not None and self._keeps_rows:
                run = store.begin(self.spec(tasks, asked), fresh=self._is_fresh, id=id)
                stack.callback(_let_go, run)
                summary.id = run.id
                watcher.on_begun(run)

            def is_stopping() -> bool:
                is_over = summary.error is not None or pearl.halt.error is not None
                return watcher.is_stopping() or is_over or self.is_too_much(summary.n_failed)

            def on_known(key: bytes) -> None:
                summary.n_known += 1
                watcher.on_known(key)

            def has(key: bytes) -> bool:
                assert run is not None
                return run.has(key) and (redo is None or not redo(run.outcome(key) or {}))

            options: dict[str, Any] = {"listener": watcher.listener, "is_stopping": is_stopping}
            numbered = self._numbered(tasks)
            if run is None:
                outcomes = execute(pearl, (task for _, task in numbered), **options)
            else:
                outcomes = run_recorded(
                    pearl, numbered, run, execute=execute, on_known=on_known, has=has, **options
                )
            try:
                async with aclosing(outcomes):
                    async for outcome in outcomes:
                        summary.add(outcome)
                        yield outcome
            finally:
                summary.limits = pearl.limiter.limits
            summary.error = pearl.halt.error or summary.error
            is_paused = summary.error is not None and not isinstance(summary.error, BudgetError)
            summary.status = "done"
            if is_stopping():
                summary.status = "paused" if is_paused and not watcher.is_stopping() else "stopped"
            if store is not None and run is not None:
                summary.statuses = store.tally(run.id)
                counts = {
                    "rows": summary.n_rows,
                    "failed": summary.n_failed,
                    "from_before": summary.n_known,
                }
                run.finish(summary.status, counts)

    def is_too_much(self, n_failed: int) -> bool:
        """Whether so many failures end a run."""
        return self._max_errors is not None and n_failed > self._max_errors

    def _equipped(
        self, store: Store | None, watcher: Watcher, *, is_fresh: bool
    ) -> tuple[Pearl, Execute]:
        """What the tasks are run with and by: with the store's replies, within the budget.

        Raises:
            UsageError: The executor cannot keep the limits.
        """
        has_limits = any(limit is not None for limit in self._limits.values())
        is_local = self._executor == "local"
        if has_limits and not is_local:
            raise UsageError(
                f"limits of a run are kept by the executor local, not by {self._executor}",
                help="a forecast (--dry-run) tells what it takes; the server's own limits hold everywhere",
            )
        replies: Replies | None = store.fresh() if store and (self._is_fresh or is_fresh) else store
        model, execute = self._pearl.model, self._execute
        if is_local and (has_limits or self.price is not None):
            if self._spending is None:
                limits = self._pearl.limits
                budget = Budget(
                    limits.counter, price=self.price, reply_tokens=limits.reply_tokens,
                    **self._limits,  # type: ignore[arg-type]
                )  # fmt: skip
                self._spending = Spending(self._pearl, budget)
            model = Budgeted(model, self._spending.budget)
            execute = self._spending.watched(execute)
        pearl = Pearl(**{**self._pearl.settings, "model": model}, replies=replies)
        pearl.settings = self._pearl.settings  # by which nodes of a cluster make their own
        offered = {
            "replies": replies,
            "folder": None if store is None else store.folder,
            "on_progress": lambda progress: watcher.on_notice(str(progress)),
            "on_trouble": lambda error, wait_s: watcher.on_notice(
                f"{error.message}; asked again for {wait_s / 60:.0f} minutes at most"
            ),
        }
        takes = signature(self._execute).parameters
        return pearl, partial(execute, **{k: v for k, v in offered.items() if k in takes})

    def _repeatable(self, tasks: Iterable[Unit], asked: RunSpec | None) -> Iterable[Unit]:
        """The tasks, to be gone through twice where it is they that make the run the one it is."""
        is_twice = asked is None and self._keeps_rows
        return list(tasks) if is_twice and isinstance(tasks, Iterator) else tasks

    def _numbered(self, tasks: Iterable[U]) -> Iterator[tuple[int, U]]:
        """The tasks to run, with their places in the whole work."""
        return enumerate(tasks) if self._shard is None else self._shard.of(tasks)

    @contextmanager
    def _opened(self, watcher: Watcher) -> Iterator[Store | None]:
        """The store to write, where there is one.

        Raises:
            StoreError: It cannot be used.
        """
        if self._store is None or isinstance(self._store, Store):
            yield self._store
        else:
            with opened_store(self._store, watcher.on_notice) as store:
                yield store

    @contextmanager
    def _readable(self, *, is_needed: bool = False) -> Iterator[Store | None]:
        """The store to read; None where no row can be there.

        Raises:
            UsageError: One is needed, and the session has none.
            StoreError: One is needed, and cannot be read.
        """
        if self._store is None and is_needed:
            raise UsageError("the session has no store", help="Session(pearl, store=FOLDER)")
        if self._store is None or not (is_needed or (self._keeps_rows and not self._is_fresh)):
            yield None
        elif isinstance(self._store, Store):
            yield self._store
        else:
            with ExitStack() as stack:
                store = None
                # None was made yet, or the run itself will say what is wrong with it.
                with nullcontext() if is_needed else suppress(StoreError):
                    store = stack.enter_context(Store.open(self._store, read_only=True))
                yield store


@contextmanager
def opened_store(folder: Path, on_notice: Callable[[str], None]) -> Iterator[Store]:
    """A store to write.

    Args:
        folder: Where it is.
        on_notice: Told what people should know of it: of its disk, of damaged replies.

    Raises:
        StoreError: It cannot be used.
    """
    with Store.open(folder) as store:
        if store.warning:
            on_notice(store.warning)
        yield store
        if n := store.n_bad_replies:
            on_notice(f"{n} kept replies were damaged and asked for again")


def _inputs(tasks: Iterable[Unit]) -> dict[str, str]:
    """What tells tasks from others, but for what is in their documents: their rows tell that."""
    parts = (part for task in tasks for part in (task.id, *task.depends_on))
    return {"tasks": digest(parts).hex()}


def _let_go(run: Run) -> None:
    """Let go of a run that has not come to its end; what is wrong with the store was told before."""
    with suppress(StoreError):
        run.finish("stopped")
