"""Limits to what a run may spend, and the forecast of it: the options, and what they are made into."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import click

from pearl.cli.options import price_option
from pearl.errors import BudgetError, UsageError

if TYPE_CHECKING:
    from pearl.cli.keeping import RunOptions
    from pearl.cli.work import Watch
    from pearl.documents.document import Document
    from pearl.llm.middleware.budget import Budget
    from pearl.llm.prices import Price
    from pearl.pipeline import Pearl
    from pearl.runs.executors import Task
    from pearl.runs.forecast import Forecaster

__all__ = ["BudgetOptions", "budget_options"]

Command = TypeVar("Command", bound=Callable[..., Any])

LIMITS = ("max_cost", "max_tokens", "max_time", "max_calls")


def budget_options(command: Command) -> Command:
    """Everything `BudgetOptions` takes."""
    options = [
        click.option(
            "--dry-run", is_flag=True,
            help="Print what it takes (calls, tokens, money, time) and ask no model.",
        ),
        click.option(
            "--max-cost", type=click.FloatRange(min=0), metavar="USD",
            help="Start no call that could take the run's cost beyond this.",
        ),
        click.option(
            "--max-tokens", type=click.IntRange(min=0), metavar="TOKENS",
            help="Start no call that could take the run's input and output tokens beyond this.",
        ),
        click.option(
            "--max-time", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
            help="Start no call after this, and end those that are under way then.",
        ),
        click.option(
            "--max-calls", type=click.IntRange(min=0), metavar="N",
            help="Start no more calls than this, failed ones included.",
        ),
        price_option,
        click.option(
            "--prices", envvar="PEARL_PRICES", type=click.Path(), metavar="FILE",
            help="TOML file of prices in place of the shipped one.",
        ),
        click.option(
            "--seconds-per-call", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
            help="How long a call takes, for the time of --dry-run.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


class BudgetOptions:
    """What one command may spend, and what it is expected to.

    Takes its options out of those of the command line; what is left goes on to `open_pearl`.

    Args:
        options: Of the command line: those of `budget_options` and of `setting_options`.

    Raises:
        DataError: The file of prices cannot be read.
        UsageError: Money is limited, and what tokens cost is not known.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.is_dry = options.pop("dry_run")
        self._limits = {name: options.pop(name) for name in LIMITS}
        self._call_s = options.pop("seconds_per_call")
        self._options = options
        self.price = _price(options.pop("price"), options.pop("prices"), options["model"])
        self._forecaster: Forecaster | None = None
        self._budget: Budget | None = None
        self._lock = threading.Lock()  # documents are loaded in threads
        self._documents: WeakValueDictionary[Hashable, Document] = WeakValueDictionary()
        self._waiting: dict[Hashable, list[Task]] = {}
        if self._limits["max_cost"] is not None and self.price is None:
            raise UsageError(
                f"--max-cost: the price of '{options['model']}' is not known",
                help="--price IN/OUT in US dollars per million tokens, or --prices FILE",
            )

    def run(
        self,
        tasks: Iterable[Task],
        n_tasks: int | None,
        *,
        out: str | None = None,
        told: str | None = None,
        keeping: RunOptions | None = None,
    ) -> int:
        """Run tasks within the limits, as `run_tasks` does; or say what they take.

        Returns:
            The exit code.
        """
        from pearl.cli.work import run_tasks
        from pearl.llm.middleware.budget import GO_ON
        from pearl.runs.executors import DEFAULT, load_executor

        if self.is_dry:
            return self._show(tasks, keeping if out else None)
        executor = DEFAULT if keeping is None else keeping.executor
        keeps_limits = load_executor(executor).KEEPS_LIMITS
        if not keeps_limits and self._asked():
            raise UsageError(
                f"limits of a run are kept by the executor {DEFAULT}, not by {executor}",
                help="--dry-run tells what it takes; the server's own limits hold everywhere",
            )
        with self._watching(is_here=keeps_limits) as (watch, options):
            code = asyncio.run(
                run_tasks(tasks, n_tasks, options, out=out, told=told, keeping=keeping, watch=watch)
            )
        if code in (0, 1) and self._budget is not None and self._budget.n_refused:
            click.echo(f"pearl: a limit of the run is reached\n  help: {GO_ON}", err=True)
            return BudgetError.exit_code
        return code

    def _show(self, tasks: Iterable[Task], keeping: RunOptions | None) -> int:
        """Print what the tasks take that have no row yet; no model is asked.

        Returns:
            The exit code: 1 where some of them cannot be run.
        """
        from pearl.cli.forecasts import print_forecast
        from pearl.runs.forecast import forecast

        n_known = 0

        def known() -> None:
            nonlocal n_known
            n_known += 1

        pearl = _pearl({**self._options, "is_asked": False})
        if keeping is not None:
            tasks = keeping.left(pearl, tasks, known)
        found = forecast(pearl, tasks, price=self.price, seconds_per_call=self._call_s)
        print_forecast(found, self._asked(), n_known=n_known, as_json=self._options["as_json"])
        return 1 if found.n_problems else 0

    @contextmanager
    def _watching(self, *, is_here: bool) -> Iterator[tuple[Watch | None, dict[str, Any]]]:
        """Run tasks within the limits; at the end people are told what was spent.

        Gives what every task that is run has to go through, and the options to run them with, the
        budget among them. A task is forecast when its document is loaded.
        """
        if not is_here or (not self._asked() and self.price is None):
            yield None, self._options
            return
        from pearl.cli.forecasts import tell_spent
        from pearl.llm.middleware.budget import Budget
        from pearl.runs.forecast import Forecaster

        pearl = _pearl(self._options)
        self._forecaster = Forecaster(pearl, price=self.price, seconds_per_call=self._call_s)
        self._budget = budget = Budget(
            pearl.limits.counter,
            max_cost_usd=self._limits["max_cost"],
            max_tokens=self._limits["max_tokens"],
            max_calls=self._limits["max_calls"],
            max_time_s=self._limits["max_time"],
            price=self.price,
        )
        try:
            yield self._forecast, {**self._options, "budget": budget}
        finally:
            tell_spent(self._forecaster.result(), budget)

    def _asked(self) -> dict[str, float]:
        """The limits that were set."""
        return {name: limit for name, limit in self._limits.items() if limit is not None}

    def _forecast(self, task: Task) -> Task:
        from pearl.runs.executors.local import document_of

        forecaster = self._forecaster
        assert forecaster is not None
        load = task.document
        if load is None or task.plan is None:
            forecaster.add(task)
            return task
        key = document_of(task) or object()
        with self._lock:
            document = self._documents.get(key)
            if document is None:
                self._waiting.setdefault(key, []).append(task)
        if document is not None:  # the executor has it, and does not load it again
            forecaster.add(task, document)
        return replace(task, document=_Loader(key, load, self._loaded))

    def _loaded(self, key: Hashable, document: Document) -> None:
        assert self._forecaster is not None
        with self._lock:
            self._documents[key] = document
            waiting = self._waiting.pop(key, [])
        for task in waiting:
            self._forecaster.add(task, document)


@dataclass(frozen=True, slots=True)
class _Loader:
    """Loads a document and tells of it; those that load the same one are equal, as for executors."""

    key: Hashable
    load: Callable[[], Document] = field(compare=False)
    tell: Callable[[Hashable, Document], None] = field(compare=False)

    def __call__(self) -> Document:
        document = self.load()
        self.tell(self.key, document)
        return document


def _pearl(options: dict[str, Any]) -> Pearl:
    from pearl.cli.options import SETTINGS
    from pearl.pipeline import Pearl

    return Pearl(**{key: value for key, value in options.items() if key in (*SETTINGS, "is_asked")})


def _price(said: Price | None, prices: str | None, model: str) -> Price | None:
    """The price that was said, or that of the table."""
    from pearl.llm.prices import read_prices

    return said if said is not None else read_prices(prices).of(model)
