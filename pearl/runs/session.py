"""Sessions forecast, run and resume many tasks within limits. A row is stored before its outcome is yielded, and stored rows are not run again."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sized,
)
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack, aclosing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.digest import DigestTable, digest, text_sha256
from pearl.errors import BudgetError, PearlError, StoreError, UsageError
from pearl.interpreter.answer import Answer
from pearl.llm.client import Client
from pearl.llm.concurrency import background_loop
from pearl.llm.middleware.budget import Budget, check_limits
from pearl.llm.middleware.caching import Replies
from pearl.llm.middleware.rate import LimiterStatus
from pearl.llm.prices import PRICE_HELP, Price, Prices, read_prices, table_help
from pearl.pipeline import Pearl
from pearl.runs import executors
from pearl.runs.executors import DEFAULT
from pearl.runs.executors.local import each_kept
from pearl.runs.executors.local import run as run_here
from pearl.runs.identity import fingerprint
from pearl.runs.sinks import RowStore
from pearl.runs.store import Run, RunInfo, RunSpec, Status, Store
from pearl.runs.tasks import DocumentTasks

if TYPE_CHECKING:
    from pearl.runs.forecast import Forecast
    from pearl.trace.exporters import TraceExporter

U = TypeVar("U", bound=executors.Unit)


class Shard(Struct, frozen=True):
    """Part `index` of `n`, counted from 1."""

    index: int
    n: int

    def __post_init__(self) -> None:
        if self.n < 1 or not 1 <= self.index <= self.n:
            raise UsageError(
                f"shard {self.index} of {self.n} does not exist",
                help=f"shards are 1/{self.n} to {self.n}/{self.n}" if self.n > 0 else "1/1 is all",
            )

    def __str__(self) -> str:
        return f"{self.index}/{self.n}"

    def takes(self, key: str) -> bool:
        """Whether a unit with this `shard_key` belongs to this shard; every unit belongs to exactly one."""
        # Depends on the key only, so that all machines with the same input agree.
        return int(text_sha256(key)[:16], 16) % self.n == self.index - 1


def parse_shard(text: str) -> Shard:
    """Parse a shard `i/n`."""
    numbers = [number.strip() for number in text.split("/")]
    if len(numbers) != 2 or not all(n.isascii() and n.isdecimal() and len(n) < 10 for n in numbers):
        raise UsageError(
            f"'{text[:40]}' is not a shard", help="use i/n with i from 1 to n, such as 1/8"
        )
    return Shard(*map(int, numbers))


RETRIED = ("undecided", "failed", "degraded")
"""Statuses of rows that a retry repeats by default."""


class Watcher(Struct, frozen=True):
    """Callbacks for events of a run."""

    listener: executors.Listener | None = None
    is_stopping: Callable[[], bool] = lambda: False
    on_begun: Callable[[Run], None] = lambda run: None
    on_known: Callable[[bytes], None] = lambda key: None
    on_notice: Callable[[str], None] = lambda line: None


class Summary(Struct):
    """Counts and costs of a run so far."""

    id: str = ""
    status: Status = "running"
    n_done: int = 0
    n_known: int = 0
    n_failed: int = 0
    n_unfinished: int = 0
    n_unsure: int = 0
    statuses: dict[str, int] = {}
    first_failure: executors.Outcome[Any] | None = None
    last: executors.Outcome[Any] | None = None
    error: PearlError | None = None
    limits: LimiterStatus | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the run, including earlier ones."""
        return sum(self.statuses.values())

    def add(self, outcome: executors.Outcome[Any]) -> None:
        """Count an outcome."""
        self.n_done += 1
        self.last = outcome
        if outcome.is_unfinished:
            assert isinstance(outcome.error, PearlError)
            self.error = self.error or outcome.error
            self.n_unfinished += 1
        elif outcome.error is not None and outcome.unit.row(outcome.result, outcome.error) is None:
            self.n_unfinished += 1  # An error that ends the whole run
        elif outcome.is_failed:
            self.n_failed += 1
            self.first_failure = self.first_failure or outcome
        elif outcome.unit.is_unsure(outcome.result):
            self.n_unsure += 1


class SessionRun:
    """A running run: iterate over its outcomes in the order of the tasks, or await it."""

    def __init__(
        self, work: AsyncGenerator[executors.Outcome[Any], None], summary: Summary
    ) -> None:
        self.summary = summary
        self._work = work

    def __aiter__(self) -> AsyncIterator[executors.Outcome[Any]]:
        return self._work

    async def aclose(self) -> None:
        """Cancel the run; running tasks are repeated when it is resumed."""
        await self._work.aclose()

    def __await__(self) -> Generator[Any, None, Summary]:
        async def finished() -> Summary:
            async with aclosing(self._work) as outcomes:
                async for _ in outcomes:
                    pass
            error = self.summary.error
            if error is not None and not isinstance(error, BudgetError):
                raise error
            return self.summary

        return finished().__await__()


async def run_recorded(
    pearl: Pearl,
    units: Iterable[tuple[int, U]],
    run: RowStore,
    *,
    execute: executors.Execute = run_here,
    listener: executors.Listener | None = None,
    is_stopping: Callable[[], bool] = lambda: False,
    on_known: Callable[[bytes], None] = lambda key: None,
    has: Callable[[bytes], bool] | None = None,
) -> AsyncGenerator[executors.Outcome[U], None]:
    """Run the units that have no row. When an outcome is yielded, its row is on disk."""
    # Matched by identity, not by order: an executor that stops yields no outcome for some units.
    taken: dict[Hashable, deque[tuple[int, bytes]]] = {}

    def todo() -> Iterator[U]:
        for place, unit, key in unrecorded(pearl, units, has or run.has, on_known):
            taken.setdefault(_identity(unit), deque()).append((place, key))
            yield unit

    async def keep(outcome: executors.Outcome[U]) -> None:
        unit = outcome.unit
        name = _identity(unit)
        place, key = taken[name].popleft()
        if not taken[name]:
            del taken[name]
        row = unit.row(outcome.result, outcome.error)
        if row is not None:
            await run.record(key, place, unit.id, row, outcome.trace.to_jsonl())
        elif not outcome.is_unfinished and pearl.client.breaker.error is None:
            assert outcome.error is not None
            raise outcome.error

    outcomes = execute(pearl, todo(), listener=listener, is_stopping=is_stopping)
    async with aclosing(outcomes), aclosing(each_kept(outcomes, keep)) as kept:
        async for outcome in kept:
            yield outcome


def unrecorded(
    pearl: Pearl,
    units: Iterable[tuple[int, U]],
    has: Callable[[bytes], bool] | None,
    on_known: Callable[[bytes], None] = lambda key: None,
) -> Iterator[tuple[int, U, bytes]]:
    """Yield the units that have no row, with positions and keys; call `on_known` with the keys of the others."""
    for place, unit, key in keyed(pearl, units):
        if has is not None and unit.source and has(key):
            on_known(key)
        else:
            yield place, unit, key


def keyed(pearl: Pearl, units: Iterable[tuple[int, U]]) -> Iterator[tuple[int, U, bytes]]:
    """Yield the units with their positions and the keys of their rows."""
    # A key depends on everything the row depends on (id, document, settings that affect results),
    # but not on the position of the unit.
    settings = digest(map(repr, sorted(fingerprint(pearl).items()))).hex()
    n_alike = DigestTable()
    for place, unit in units:
        # A unit without a source is identified by its position, and is always run.
        source = unit.source or f"#{place}"
        key = digest((settings, type(unit).__name__, unit.id, source, *unit.depends_on))
        if (n := n_alike.add(key)) > 1:  # Equal units have separate rows
            key = digest((key.hex(), str(n - 1)))
        yield place, unit, key


def _identity(unit: executors.Unit) -> Hashable:
    """A key that is equal for equal units: an executor may return a copy."""
    return type(unit), unit.id, unit.source, *unit.depends_on


class Session:
    """Runs tasks with a `Pearl` within limits, and stores the results.

    The same tasks with the same settings are the same run: running them again resumes it where it
    stopped, for whatever reason, and repeats only failed tasks. Limits apply to all runs of the
    session together.

    Args:
        pearl: Model and library.
        store: Stores replies and rows: a folder, or an open store; None to store nothing.
        keeps_rows: Whether to store rows, so that runs can be resumed; replies are always stored.
        is_fresh: Start a new run, and ignore stored replies.
        max_cost_usd: No call starts that could raise the cost above this; None for no limit.
        max_tokens: The same limit for input and output tokens together.
        max_calls: The same limit for calls, including failed ones.
        max_minutes: After this time no call starts, and running calls are cancelled.
        price: Price of tokens, as `input=2,output=10` or a `Price`, or a table of prices by model name;
            None for `prices`.
        prices: Table of prices of all models; None for the shipped one.
        executor: Where tasks run: `local`, `ray`, `batch`.
        batch_threshold: For `batch`: rounds of fewer requests are sent directly, at the full price;
            None for 20.
        shard: Only a part of the tasks, as `1/8`.
        max_errors: No task starts after more than this many failures; None for no limit.
        telemetry: Exports the traces of the tasks; None for no export.

    Attributes:
        pearl, telemetry: As they were given.
        price: Price of tokens, if known.
        budget: Spending so far; None before the first run, and if nothing is counted: calls are
            counted if a limit is set or the price is known.

    Raises:
        UsageError: The cost is limited and the price is unknown, a limit is not a number from 0, or the
            executor or the shard does not exist.
        DataError: The table of prices cannot be read.

    Example:
        >>> import pearl
        >>> from pearl.runs.executors import Task
        >>> session = pearl.Session(pearl.Pearl(), max_calls=10)
        >>> tasks = [Task("a", lambda: pearl.Document("It rained. She left."), "Why did she leave?")]
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
        price: str | Price | Prices | None = None,
        prices: Prices | None = None,
        executor: str = DEFAULT,
        batch_threshold: int | None = None,
        shard: Shard | str | None = None,
        max_errors: int | None = None,
        telemetry: TraceExporter | None = None,
    ) -> None:
        check_limits(max_cost_usd, max_tokens, max_calls, max_minutes, max_errors)
        if isinstance(price, str):
            with suppress(ValueError):
                price = Price.read(price)
        if not isinstance(price, Price | Prices | None):
            raise UsageError(f"{price!r} is not a price", help=PRICE_HELP)
        others = {c.name: c for c in pearl.clients.values() if c.name != pearl.client.name}
        table = price if isinstance(price, Prices) else prices or read_prices()
        self.price = price if isinstance(price, Price) else table.of(pearl.client.name)
        self._prices = {
            name: table.of(name) if client.reads_prompts else Price(input_usd=0, output_usd=0)
            for name, client in others.items()
        }
        of_all = {pearl.client.name: self.price, **self._prices}
        unknown = [name for name, known in of_all.items() if known is None]
        if max_cost_usd is not None and unknown:
            raise UsageError(
                f"a cost limit needs a price, and the price of {', '.join(map(repr, unknown))} is unknown",
                help="; ".join(
                    table_help(name) if name in self._prices else PRICE_HELP for name in unknown
                ),
            )
        self.pearl = pearl
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
        self._plugin = executors.load_executor(executor)
        self._batches: executors.Offered = {}
        if batch_threshold is not None:
            self._batches["batch_threshold"] = batch_threshold
        if self._batches and executor != "batch":
            raise UsageError(
                "--batch-threshold needs --executor batch", help="add that, or leave the option out"
            )
        self._shard = parse_shard(shard) if isinstance(shard, str) else shard
        self._max_errors = max_errors
        self.telemetry = telemetry
        self.budget: Budget | None = None

    @property
    def only_price(self) -> Price | None:
        """The price of tokens, if all models have the same known price; else None."""
        return None if self._prices else self.price

    @property
    def store(self) -> Store:
        """The open store."""
        if not isinstance(self._store, Store):
            raise UsageError("the store is not open", help="with Store.open(FOLDER) as store: ...")
        return self._store

    def forecast(
        self,
        tasks: Iterable[executors.Unit],
        asked: RunSpec | None = None,
        *,
        id: str | None = None,
        redo: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> Forecast:
        """Estimate the cost of the tasks that have no row; the arguments are those of `run`. Nothing is sent or written."""
        from pearl.runs.forecast import Forecast

        tasks = self._repeatable(tasks, asked)
        forecast = Forecast(
            self.pearl, price=self.price, prices=self._prices, is_batched=self._executor == "batch"
        )  # fmt: skip
        known: list[bytes] = []
        with ExitStack() as stack:
            store: Store | None = None
            if self._keeps_rows and not self._is_fresh:
                # There is no store yet, or the run will report the error.
                with suppress(StoreError):
                    store = stack.enter_context(self._opened())
            if store is not None and id is None:
                id = next((run.id for run in store.runs(self.spec(tasks, asked).key)), None)
            has = _has_row(store, id, redo) if store is not None and id is not None else None
            numbered = self._numbered(enumerate(tasks))
            for _, task, _ in unrecorded(self.pearl, numbered, has, known.append):
                forecast.add(task)
        forecast.n_known = len(known)
        return forecast

    def run(
        self,
        tasks: Iterable[executors.Unit],
        asked: RunSpec | None = None,
        *,
        id: str | None = None,
        watcher: Watcher | None = None,
        redo: Callable[[Mapping[str, Any]], bool] | None = None,
        is_retry: bool = False,
        into: RowStore | None = None,
    ) -> SessionRun:
        """Run the tasks that have no row yet.

        Args:
            tasks: Or other units of work, read one by one. If rows are stored, they are iterated twice, and
                an iterator is held in memory.
            asked: Identity of the work; None to derive it from the tasks.
            id: The run to resume; None for the latest run of the same work, or a new one.
            watcher: Callbacks of the run.
            redo: Selects rows to repeat though they are not failures; their stored replies are not
                used.
            is_retry: Whether only the rows that `redo` selects are repeated, and no other task is run.
            into: Where the rows are kept, if the store keeps only replies.

        Returns:
            The run: iterate over it, or await it. It raises a `StoreError` if the store cannot be used,
            and a `UsageError` if the executor does not enforce the limits.
        """
        summary = Summary()
        tasks = self._repeatable(tasks, asked)
        work = self._work(
            tasks, asked, id, watcher or Watcher(), summary, redo, into, is_retry=is_retry
        )
        return SessionRun(work, summary)

    def retry(
        self,
        run_id: str,
        tasks: Iterable[executors.Unit],
        *,
        states: Collection[str] = RETRIED,
        rows: Collection[str] = (),
        watcher: Watcher | None = None,
    ) -> SessionRun:
        """Repeat some rows of a run: those with one of the statuses and, if `rows` is given, with one of these ids.

        The new rows replace them. Otherwise this is `resume`; an id that the run does not have is an error.
        """
        with self._opened() as store:
            info = store.run(run_id)
            selected = retried(store, info.id, states, rows)
        return self._resumed(info, tasks, watcher, selected)

    def resume(
        self, run_id: str, tasks: Iterable[executors.Unit], *, watcher: Watcher | None = None
    ) -> SessionRun:
        """Resume a run of the store.

        Args:
            run_id: Its id, or a prefix of it, with or without the day.
            tasks: Its tasks.
            watcher: Callbacks of the run.

        Raises:
            StoreError: The run does not exist.
            UsageError: The session has no store.

        Returns:
            As `run`; it raises a `StoreError` if the run was started with other settings.
        """
        with self._opened() as store:
            info = store.run(run_id)
        return self._resumed(info, tasks, watcher)

    def _resumed(
        self,
        info: RunInfo,
        tasks: Iterable[executors.Unit],
        watcher: Watcher | None,
        redo: Callable[[Mapping[str, Any]], bool] | None = None,
    ) -> SessionRun:
        settings = {"command": info.settings.get("command")}
        asked = RunSpec(info.command, settings, info.inputs, info.folder, info.work)
        return self.run(
            tasks, asked, id=info.id, watcher=watcher, redo=redo, is_retry=redo is not None
        )

    def equipped(self) -> Pearl:
        """Return the `Pearl` with the session's limits and its open store's replies, for work other than tasks."""
        if isinstance(self._store, Path):
            raise UsageError("the store is not open", help="with Store.open(FOLDER) as store: ...")
        equipped, _ = self._equipped(self._store, Watcher(), is_fresh=False)
        return equipped

    def rows(self, run_id: str) -> Iterator[dict[str, Any]]:
        """Every row of a run once, in the order of the tasks, read lazily.

        Raises:
            StoreError: The store cannot be read, or has no such run.
            UsageError: The session has no store.
        """
        with self._opened() as store:
            yield from store.rows(store.run(run_id).id)

    def kept(self, units: Iterable[U], run_id: str) -> Iterator[tuple[U, dict[str, Any]]]:
        """Yield the units that have a row in a run, each with its row; rows of failures are included."""
        with self._opened() as store:
            for _, unit, key in keyed(self.pearl, self._numbered(enumerate(units))):
                row = store.outcome(run_id, key)
                if row is not None:
                    yield unit, row

    def count(self, units: Iterable[executors.Unit]) -> int:
        """The number of units in this session's shard."""
        return sum(1 for _ in self._numbered(enumerate(units)))

    def spec(self, tasks: Iterable[executors.Unit], asked: RunSpec | None = None) -> RunSpec:
        """The identity of a run: its work, and the settings of the `Pearl` that affect results."""
        if asked is None:
            # Without the texts of documents: if these change, it is the same run with different
            # rows.
            parts = (part for unit in tasks for part in (unit.id, *unit.depends_on))
            inputs = {"tasks": digest(parts).hex()}
            command = ("python", Path(sys.argv[0]).name)
            asked = RunSpec(command, {"command": "session"}, inputs)
        shard = {} if self._shard is None else {"shard": str(self._shard)}
        return replace(asked, settings={**asked.settings, **fingerprint(self.pearl), **shard})

    async def _work(
        self,
        tasks: Iterable[executors.Unit],
        asked: RunSpec | None,
        id: str | None,
        watcher: Watcher,
        summary: Summary,
        redo: Callable[[Mapping[str, Any]], bool] | None,
        into: RowStore | None,
        *,
        is_retry: bool,
    ) -> AsyncGenerator[executors.Outcome[Any], None]:
        with ExitStack() as stack:
            store = stack.enter_context(self._opened(watcher)) if self._store else None
            pearl, execute = self._equipped(store, watcher, is_fresh=redo is not None)
            run: Run | None = None
            if store is not None and self._keeps_rows:
                run = store.begin(
                    self.spec(tasks, asked), fresh=self._is_fresh and id is None, id=id
                )
                stack.callback(run.release)
                summary.id = run.id
                watcher.on_begun(run)

            def is_stopping() -> bool:
                is_over = summary.error is not None or pearl.client.breaker.error is not None
                most = self._max_errors
                is_too_much = most is not None and summary.n_failed > most
                return watcher.is_stopping() or is_over or is_too_much

            def on_known(key: bytes) -> None:
                summary.n_known += 1
                if spans is not None and run is not None:
                    row = run.outcome(key) or {}
                    spans.kept(str(row.get("id", "")), str(row.get("status", "")))
                watcher.on_known(key)

            listener, spans = watcher.listener, None
            if self.telemetry is not None:
                spans = self.telemetry.run(summary.id)
                # Other executors report events only after a task, or collect calls.
                listener = spans.listening(listener) if self._executor == DEFAULT else listener
                stack.callback(spans.close)
            options: dict[str, Any] = {"listener": listener, "is_stopping": is_stopping}
            rows = run if into is None else into
            # A retry reads all tasks: those before the stored position of a large run may be
            # repeated, too.
            numbered = self._numbered(self._placed(tasks, asked, None if is_retry else run))
            if rows is None:
                outcomes = execute(pearl, (task for _, task in numbered), **options)
            else:
                options["on_known"] = on_known
                if store is not None and run is not None and into is None:
                    options["has"] = (
                        (lambda key: False)
                        if run.is_new
                        else _has_row(store, run.id, redo, is_retry=is_retry)
                    )
                outcomes = run_recorded(pearl, numbered, rows, execute=execute, **options)
            try:
                async with aclosing(outcomes):
                    async for outcome in outcomes:
                        summary.add(outcome)
                        if spans is not None:
                            answer = outcome.result if isinstance(outcome.result, Answer) else None
                            spans.finished(
                                outcome.unit.id, outcome.trace, error=outcome.error,
                                status=answer.status if answer else "", answer=answer.text if answer else "",
                            )  # fmt: skip
                        yield outcome
            finally:
                summary.limits = pearl.client.limiter.limits
            summary.error = pearl.client.breaker.error or summary.error
            is_paused = summary.error is not None and not isinstance(summary.error, BudgetError)
            summary.status = "done"
            if is_stopping():
                summary.status = "paused" if is_paused and not watcher.is_stopping() else "stopped"
            if store is not None and run is not None:
                summary.statuses = store.tally(run.id)
                n_failed, n_known = summary.n_failed, summary.n_known
                counts = {"rows": summary.n_rows, "failed": n_failed, "from_before": n_known}
                run.finish(summary.status, counts)

    def _equipped(
        self, store: Store | None, watcher: Watcher, *, is_fresh: bool
    ) -> tuple[Pearl, executors.Execute]:
        """The `Pearl` with the store's replies and the budget, and the executor."""
        client = self.pearl.client
        has_limits = any(limit is not None for limit in self._limits.values())
        keeps_limits = self._plugin.KEEPS_LIMITS
        if (has_limits or client.budget.is_limited) and not keeps_limits:
            raise UsageError(
                f"the executor {self._executor} does not enforce limits; {DEFAULT} does",
                help="use that executor, or leave the limits out: --dry-run forecasts the cost, and limits of the server still apply",
            )
        is_fresh = is_fresh or self._is_fresh
        replies: Replies | None = store.fresh() if store and is_fresh else store
        if store is None:
            replies = client.replies
        if keeps_limits and (has_limits or self.price is not None) and self.budget is None:
            self.budget = client.budget
            if has_limits or not client.budget.is_limited:  # Else the client keeps its limits
                self.budget = Budget(
                    client.counter,
                    price=self.price,
                    prices=self._prices,
                    **self._limits,  # type: ignore[arg-type]
                )
        offered: executors.Offered = {
            **self._batches,
            "on_progress": lambda progress: watcher.on_notice(str(progress)),
            "on_trouble": lambda error, wait_s: watcher.on_notice(
                f"{error.message}; retrying for at most {wait_s / 60:.0f} minutes"
            ),
        }
        if replies is not None:
            offered["replies"] = replies
        if store is not None:
            offered["folder"] = store.folder
        budget = self.budget or client.budget
        own = Client(
            client.settings, model=client.model, counter=client.counter, replies=replies,
            budget=budget,
        )  # fmt: skip
        return self.pearl.asking(own), executors.run_with(self._plugin, **offered)

    def _repeatable(self, tasks: Iterable[U], asked: RunSpec | None) -> Iterable[U]:
        """The tasks, copied to a list if they are an iterator that must be read twice."""
        is_twice = asked is None and self._keeps_rows
        return list(tasks) if is_twice and isinstance(tasks, Iterator) else tasks

    def _numbered(self, tasks: Iterable[tuple[int, U]]) -> Iterator[tuple[int, U]]:
        """Select the tasks of the shard; the numbers are positions among all tasks."""
        shard = self._shard
        return (each for each in tasks if shard is None or shard.takes(each[1].shard_key))

    def _placed(
        self, tasks: Iterable[Any], asked: RunSpec | None, run: Run | None
    ) -> Iterable[tuple[int, Any]]:
        """Number the tasks in the order in which the run reads them; a large file is read from the stored position."""
        is_large = isinstance(tasks, DocumentTasks) and not isinstance(tasks, Sized)
        if not is_large or run is None or asked is None:
            return enumerate(tasks)
        from pearl.runs.tasks import from_position  # Imported on use: only for large files

        assert isinstance(tasks, DocumentTasks)
        return from_position(tasks, run.position, self.spec(tasks, asked).key)

    @contextmanager
    def _opened(self, watcher: Watcher | None = None) -> Iterator[Store]:
        """The store: with a watcher for writing, else for reading."""
        if isinstance(self._store, Store):
            yield self._store
            return
        if self._store is None:
            raise UsageError("the session has no store", help="Session(pearl, store=FOLDER)")
        if watcher is None:
            opened: AbstractContextManager[Store] = Store.open(self._store, read_only=True)
        else:
            opened = opened_store(self._store, watcher.on_notice)
        with opened as store:
            yield store


@contextmanager
def opened_store(folder: Path, on_notice: Callable[[str], None]) -> Iterator[Store]:
    """Open a store for writing."""
    with Store.open(folder) as store:
        for line in store.warnings:
            on_notice(line)
        yield store
        if n := store.n_bad_replies:
            on_notice(f"{n} stored replies were damaged and are requested again")


def _has_row(
    store: Store,
    run_id: str,
    redo: Callable[[Mapping[str, Any]], bool] | None = None,
    *,
    is_retry: bool = False,
) -> Callable[[bytes], bool]:
    """Return a function that takes a row's key and returns whether the run has this row and need not repeat it."""

    def has(key: bytes) -> bool:
        is_kept = is_retry or store.is_done(run_id, key)
        return is_kept and (redo is None or not redo(store.outcome(run_id, key) or {}))

    return has


def retried(
    store: Store, run_id: str, states: Collection[str], rows: Collection[str]
) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that selects rows of a run by status and, if ids are given, by id."""
    wanted = frozenset(rows)
    if missing := wanted - {str(row.get("id")) for row in (store.rows(run_id) if wanted else ())}:
        raise StoreError(
            f"run {run_id} has no row '{min(missing)}'",
            help=f"'pearl runs export {run_id}' shows its rows",
        )

    def is_retried(row: Mapping[str, Any]) -> bool:
        return row.get("status") in states and (not wanted or str(row.get("id")) in wanted)

    return is_retried


Result = TypeVar("Result")

LOOK_S = 0.5
"""Seconds between two checks for an interrupt: on Windows, a lock without a time limit cannot be interrupted."""


def run(awaitable: Awaitable[Result]) -> Result:
    """Wait for the result of a method of `Pearl`, or for a run of a `Session`; any thread may call this.

    The calls of all threads share one event loop, which runs in the background: one `Pearl` keeps its
    limits, its budget and its connections for all of them. An interrupt cancels the work.

    Raises:
        UsageError: The argument is not awaitable, or an event loop is running, as in a notebook: use `await` there.

    Example:
        >>> import pearl
        >>> document = pearl.Document("Ada sold the boat because it leaked.")
        >>> pearl.run(pearl.Pearl().ask("Why did Ada sell the boat?", document)).evidence[0].text
        'Ada sold the boat because it leaked.'
    """
    if not inspect.isawaitable(awaitable):
        raise UsageError(
            f"a {type(awaitable).__name__} cannot be awaited",
            help="call the method: pearl.run(pearl.Pearl().ask(...))",
        )
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_in_background(awaitable)
    if asyncio.iscoroutine(awaitable):
        awaitable.close()  # Otherwise Python warns that it was never awaited
    raise UsageError(
        "pearl.run is for scripts and threads, and an event loop is running here",
        help="in a notebook or in asynchronous code: await pearl.Pearl().ask(...)",
    )


def _run_in_background(awaitable: Awaitable[Result]) -> Result:
    loop = background_loop("run")
    outcome: Future[Result] = Future()
    tasks: list[asyncio.Task[Result]] = []

    async def awaited() -> Result:
        return await awaitable

    def begin() -> None:
        tasks.append(loop.create_task(awaited()))
        tasks[0].add_done_callback(end)

    def end(task: asyncio.Task[Result]) -> None:
        if task.cancelled():
            outcome.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(task.result())

    loop.call_soon_threadsafe(begin)
    try:
        while not outcome.done():
            wait((outcome,), LOOK_S)
    except BaseException:  # Such as an interrupt of this thread; a second one does not wait
        loop.call_soon_threadsafe(lambda: tasks[0].cancel())
        wait((outcome,))
        raise
    return outcome.result()
