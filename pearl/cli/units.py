"""Units of work → rows of a run of the store, whatever ends it: what `execute`, `eval`, `mine` and `refine fewshot` share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from pearl.cli.growing import GrowingFile, is_plain
from pearl.cli.options import new_pearl
from pearl.cli.storing import opened_folder, written_store
from pearl.cli.terminal import notice
from pearl.cli.work import (
    frozen_heap,
    new_session,
    report_max_errors,
    report_spent_by,
    resume_command,
    run_into_store,
    show_forecast,
)
from pearl.cli.writing import OutputWriter
from pearl.errors import BudgetError, UsageError
from pearl.errors.escaping import escaped

if TYPE_CHECKING:
    from pearl.pipeline import Pearl
    from pearl.runs.executors import Unit
    from pearl.runs.session import Session, Summary
    from pearl.runs.store import Run, RunSpec, Store

U = TypeVar("U", bound="Unit")
V = TypeVar("V", bound="Unit")


@dataclass(frozen=True, slots=True)
class Work(Generic[U]):
    """The work of a command."""

    units: Iterable[U]
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    header: Any = None


@dataclass(frozen=True, slots=True)
class Finished(Generic[U]):
    """The state of the work."""

    work: Work[U]
    store: Store
    session: Session
    writer: OutputWriter
    summary: Summary
    is_interrupted: bool
    max_errors: int | None

    def kept(self, units: Iterable[V]) -> list[tuple[V, dict[str, Any]]]:
        """Units with a row, in order."""
        return list(self.session.kept(units, self.summary.id))

    def write_trace(self, path: str | None) -> None:
        """Write what happened in all units with a row, if a file is named for it."""
        if path is not None:
            with self.writer.open(path) as file:
                file.writelines(map(escaped, self.store.traces(self.summary.id)))

    @property
    def n_left(self) -> int:
        """Number of units without a row."""
        n_begun = self.summary.n_known + self.summary.n_done - self.summary.n_unfinished
        return self.session.count(self.work.units) - n_begun

    def code(self, own: int) -> int:
        """The exit code, `own` where the work came to its end; what is left is said."""
        error = self.summary.error
        if not self.is_interrupted and error is not None and not isinstance(error, BudgetError):
            raise error
        if not self.n_left:
            return own
        if error is not None:
            notice(error.message)
        notice(
            f"stopped with {self.n_left} left; to go on: the same command, or "
            f"{resume_command(self.summary.id or '')}"
        )
        report_max_errors(self.summary, self.max_errors)
        if self.is_interrupted:
            return 130
        return 1 if error is None else BudgetError.exit_code


def run_units(
    command: str,
    prepare: Callable[[Pearl], Work[U]],
    options: dict[str, Any],
    finish: Callable[[Finished[U]], int],
    *,
    outs: Sequence[str | None] = (),
    redo: Callable[[Mapping[str, Any]], bool] | None = None,
) -> int:
    """Run the units without a row, then process all rows; returns the exit code."""
    from pearl.runs.request import REQUESTS

    context = click.get_current_context()
    arguments: tuple[str, ...] = context.find_root().obj or ()
    request = REQUESTS[command].of(context.params)
    if command != "execute":
        _refuse_unfit(options["executor"])

    def asked(work: Work[U]) -> RunSpec:
        return request.spec(arguments, work.settings, work.inputs)

    if options["dry_run"]:
        pearl, folder = new_pearl(options, is_asked=False), opened_folder(options["store"])
        session = new_session(pearl, options, folder, keeps_rows=True)
        work = prepare(pearl)
        return show_forecast(session, work.units, options, asked(work), redo)
    with ExitStack() as stack:
        store = stack.enter_context(written_store(options["store"]))
        pearl = new_pearl(options)
        session = new_session(pearl, options, store, keeps_rows=True)
        stack.callback(report_spent_by, session)
        work = prepare(pearl)
        spec = asked(work)
        key = session.spec(work.units, spec).key.hex()
        writer = OutputWriter(key, options["store"], is_forced=options["force"])
        if options["run"] is None:
            writer.check(*outs)

        events: GrowingFile | None = None
        begun: list[str] = []

        def on_begun(run: Run) -> None:
            writer.check(*outs)  # of a run that goes on: the store says first where it is another
            begun.append(run.id)

        def earlier() -> Iterable[str]:
            return chain.from_iterable(map(escaped, store.traces(id)) for id in begun)

        if (trace := options.get("trace")) and is_plain(trace):
            events = GrowingFile(writer, trace, earlier)
            stack.callback(events.close)
        into_store = run_into_store(
            pearl, session, work.units, options, spec, redo, on_begun, events
        )
        with frozen_heap():
            ran = asyncio.run(into_store)
        if events is not None:
            events.close()  # all that has a row is written anew, in order
        return finish(Finished(work, store, session, writer, *ran, options["max_errors"]))


def _refuse_unfit(name: str) -> None:
    """Make sure that an executor runs other work than questions and plans."""
    from pearl.runs.executors import Unit, load_executor

    if load_executor(name).UNITS is not Unit:
        raise UsageError(
            f"the executor '{name}' runs questions and plans over documents, and nothing else",
            help="--executor local; 'pearl execute' can be run by it",
        )
