"""Tasks → printed or written outcomes: shared by `ask`, `execute` and `demo`."""

from __future__ import annotations

import asyncio
import gc
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, aclosing, contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pearl.cli.citing import Surroundings
from pearl.cli.growing import GrowingFile, told_too
from pearl.cli.options import model_opened, new_pearl, report_refused
from pearl.cli.output import print_answer, print_steps
from pearl.cli.progress import Reporter
from pearl.cli.storing import opened_folder, written_store
from pearl.cli.telemetry import opened_telemetry
from pearl.cli.terminal import notice
from pearl.cli.writing import OutputWriter
from pearl.errors import BudgetError, ExecutionError, ModelError, PearlError, StoreError, UsageError
from pearl.errors.escaping import escaped, to_json
from pearl.errors.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from pearl.interpreter.answer import RowEvidence
    from pearl.pipeline import Pearl
    from pearl.runs.executors import Outcome, Task, Unit
    from pearl.runs.session import Session, Summary
    from pearl.runs.store import Run, RunSpec, Store

_LIMITS = ("max_cost", "max_tokens", "max_time", "max_calls")


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Leave all that is loaded so far out of garbage collections, which walk through it again and again."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def run_tasks(tasks: Iterable[Task], options: dict[str, Any], *, told: str | None = None) -> int:
    """Run the tasks, keep no rows, and print the outcomes; with `dry_run`, print the forecast."""
    if options.get("dry_run"):
        pearl, folder = new_pearl(options, is_asked=False), opened_folder(options["store"])
        return show_forecast(new_session(pearl, options, folder, keeps_rows=False), tasks, options)
    if options["as_json"] and options.get("context_lines"):
        raise UsageError("--context-lines is for people", help="leave it out, or --json")
    with ExitStack() as stack:
        writer = OutputWriter.of_command(options.get("store"), is_forced=options["force"])
        writer.check(told, options["trace"], options.get("page"))
        if options.get("page") and known_length(tasks) != 1:
            raise UsageError("--page is of one answer", help="name one document, or use --together")
        store = stack.enter_context(reply_store(options["store"])) if "store" in options else None
        pearl = new_pearl(options)
        session = new_session(pearl, options, store, keeps_rows=False)
        stack.callback(report_spent_by, session)
        trace = options["trace"]
        events = stack.enter_context(GrowingFile(writer, trace)) if trace else None
        with frozen_heap():
            return asyncio.run(_run_reported(pearl, session, tasks, options, writer, told, events))


def known_length(units: Iterable[object]) -> int | None:
    """How many units there are, where that is known without going through them."""
    return len(units) if isinstance(units, Sized) else None


def new_session(
    pearl: Pearl, options: Mapping[str, Any], store: Store | Path | None, *, keeps_rows: bool
) -> Session:
    """A `Session` with the limits, prices and concurrency of the options."""
    from pearl.llm.prices import read_prices
    from pearl.runs.session import Session

    max_time_s = options.get("max_time")
    return Session(
        pearl,
        store=store,
        keeps_rows=keeps_rows,
        is_fresh=options.get("fresh", False),
        max_cost_usd=options.get("max_cost"),
        max_tokens=options.get("max_tokens"),
        max_calls=options.get("max_calls"),
        max_minutes=None if max_time_s is None else max_time_s / 60,
        price=options.get("price") or read_prices(options.get("prices")),
        executor=options.get("executor", "local"),
        shard=options.get("shard"),
        max_errors=options.get("max_errors"),
        telemetry=opened_telemetry(options),
    )


def show_forecast(
    session: Session,
    units: Iterable[Unit],
    options: Mapping[str, Any],
    asked: RunSpec | None = None,
    redo: Callable[[Mapping[str, Any]], bool] | None = None,
) -> int:
    """Print what the units take that have no row yet, or one that `redo` says is made again."""
    from pearl.cli.forecasts import print_forecast

    found = session.forecast(
        units, asked, id=options.get("run"), seconds_per_call=options["seconds_per_call"], redo=redo
    )
    limits = {name: options[name] for name in _LIMITS if options[name] is not None}
    print_forecast(found, limits, as_json=options.get("as_json", False))
    return 1 if found.n_problems else 0


def report_spent_by(session: Session) -> None:
    """Print the predicted and actual usage, if counted."""
    from pearl.cli.forecasts import report_spent

    if session.budget is not None:
        report_spent(session.predicted, session.budget)


@contextmanager
def reply_store(store: str | None) -> Iterator[Store | None]:
    """Where replies are kept while nothing else is; None where there is no place for the default store."""
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(written_store(store))
        except StoreError as error:
            if store is not None:
                raise
            notice(f"no reply is kept, for there is no store: {error.message}")
            opened = None
        yield opened


async def _run_reported(
    pearl: Pearl,
    session: Session,
    tasks: Iterable[Task],
    options: dict[str, Any],
    writer: OutputWriter,
    told: str | None,
    events: GrowingFile | None,
) -> int:
    """Outcomes as they come; that of a single task once the progress is off the screen."""
    from pearl.runs.session import Watcher

    n_tasks = known_length(tasks)
    as_json, verbose = options["as_json"], options.get("verbose", False)
    rows: list[tuple[str, Sequence[RowEvidence]]] = []
    with writer.open(told) as file:
        with ExitStack() as stack:
            tells_plans = options.get("tells_plans", False)
            reporter = Reporter(n_tasks, tells_plans=tells_plans, price=session.price)
            stack.enter_context(reporter)
            watcher = Watcher(told_too(reporter, events), on_notice=notice)
            run = session.run(tasks, watcher=watcher)
            summary = run.summary
            async with model_opened(pearl, options), aclosing(run):
                try:
                    async for outcome in run:  # what is written to may be closed at any time
                        if options.get("rows_out") and outcome.result is not None:
                            rows.append((outcome.unit.id, outcome.result.rows))
                        if n_tasks != 1:
                            if as_json:
                                file.write(to_json(outcome.to_json()) + "\n")
                            else:
                                around = await asyncio.to_thread(_surroundings, outcome, options)
                                with reporter.aside():
                                    _print(outcome, file, around, verbose, summary.n_done == 1)
                        reporter.advance(is_failure=outcome.error is not None)
                finally:
                    report_refused(summary.limits, pearl.client.settings.concurrency)
        last = summary.last
        if n_tasks == 1 and last is not None and last.error is None:
            if as_json:
                file.write(to_json(last.result.to_json(), indent=2) + "\n")
            else:
                around = _surroundings(last, options)
                print_answer(last.result, file, with_steps=verbose, surroundings=around)
        elif n_tasks == 1 and not as_json and last is not None:
            finished = last.error.finished if isinstance(last.error, ExecutionError) else ()
            if finished:
                notice("these steps had finished:")
                print_steps(finished, file)
    if options.get("page") and last is not None:
        with writer.open(options["page"]) as file:
            file.write(_page(last))
    if options.get("rows_out"):
        from pearl.interpreter.answer import write_rows

        with writer.open(options.get("rows_out")) as file:
            write_rows(file, rows)
    return tasks_code(session, summary, n_tasks, summary.n_done)


def _page(outcome: Outcome[Task]) -> str:
    """The page of an answer, or of how far a task came that failed."""
    from pearl.view.answer_page import result_page
    from pearl.view.sources import ResultRecord

    document = None
    if outcome.unit.document is not None:
        with suppress(PearlError):  # where it cannot be read, that is why the task failed
            document = outcome.unit.document()
    row = outcome.to_json()
    return result_page(ResultRecord(outcome.unit.id, row, tuple(outcome.trace), document))


async def run_into_store(
    pearl: Pearl,
    session: Session,
    units: Iterable[Unit],
    options: Mapping[str, Any],
    asked: RunSpec,
    redo: Callable[[Mapping[str, Any]], bool] | None,
    on_begun: Callable[[Run], None],
    events: GrowingFile | None = None,
) -> tuple[Summary, bool]:
    """Run units whose rows are kept, with progress; the first Ctrl-C lets those under way finish.

    Returns the summary, and whether the user stopped it.
    """
    from pearl.cli.stopping import Stopper
    from pearl.runs.session import Watcher

    stopper, reporter = Stopper(), Reporter(known_length(units))
    watcher = Watcher(
        told_too(reporter, events),
        is_stopping=lambda: stopper.is_stopping,
        on_begun=on_begun,
        on_known=lambda key: reporter.advance(),
        on_notice=notice,
    )
    run = session.run(units, asked, id=options["run"], watcher=watcher, redo=redo)
    async with model_opened(pearl, options):
        try:
            with stopper, reporter:
                async with aclosing(run):
                    async for outcome in run:
                        reporter.advance(is_failure=outcome.is_failed)
        except KeyboardInterrupt:
            click.echo(f"  to go on: {resume_command(run.summary.id)}", err=True)
            raise
        finally:
            report_refused(run.summary.limits, pearl.client.settings.concurrency)
    return run.summary, stopper.is_stopping


def tasks_code(session: Session, summary: Summary, n_tasks: int | None, n_done: int) -> int:
    """Report failures, and that a limit is reached; returns the exit code of a run of tasks."""
    from pearl.interpreter.answer import UNSURE
    from pearl.llm.middleware.budget import GO_ON

    last = summary.last
    if summary.error is not None and not isinstance(summary.error, BudgetError):
        raise summary.error
    if n_tasks == 1 and last is not None and last.error is not None:
        raise last.error
    if summary.first_failure is not None:
        report_failures(summary.n_failed, _reason(summary.first_failure), n_done)
    if session.budget is not None and session.budget.n_refused:
        notice(f"a limit of the run is reached\n  help: {GO_ON}")
        return BudgetError.exit_code
    statuses = {status for status, n in summary.statuses.items() if n}  # of rows from before, too
    if last is not None and last.result is not None:
        statuses.add(last.result.status)
    if n_tasks == 1 and "refused" in statuses:
        return ModelError.exit_code
    is_sure = not summary.n_unsure and not statuses & {*UNSURE, "failed"}
    return 0 if summary.first_failure is None and is_sure else 1


def resume_command(id: str) -> str:
    """The command that resumes a run of the command that is running."""
    from pearl.llm.backends.openai.endpoint import Endpoint

    context = click.get_current_context()
    words = ["pearl", "runs", "resume", id]
    if context.params.get("store") is not None:
        words += ["--store", context.params["store"]]
    url = str(context.params["base_url"])
    is_flag = context.get_parameter_source("base_url") is ParameterSource.COMMANDLINE
    # Where only the store names it, a key for OpenAI is not sent there. A password is not shown.
    if is_flag and Endpoint(url, "", "").shown == url.rstrip("/"):
        words += ["--base-url", url]
    if context.params.get("allow_outside"):
        words.append("--allow-outside")
    return shlex.join(words)


def _reason(outcome: Outcome[Task]) -> str:
    id = " ".join(outcome.unit.id.splitlines())
    help = getattr(outcome.error, "help", None)
    told = f"\n  help: {help.partition(chr(10))[0]}" if help else ""
    return f"{id}: {str(outcome.error).partition(chr(10))[0]}{told}"


def report_max_errors(summary: Summary, max_errors: int | None) -> None:
    """Report on stderr that a run was stopped by `--max-errors`, where it was."""
    if max_errors is not None and summary.n_failed > max_errors:
        click.echo(f"  stopped, for more than {max_errors:,} failed (--max-errors)", err=True)


def report_failures(n_failed: int, first: str, n_done: int) -> None:
    """Report on stderr how many rows failed, with the first reason."""
    notice(f"{n_failed} of {n_done} failed")
    click.echo(f"  first: {first}", err=True)


def report_left_out(problems: Sequence[PearlError]) -> None:
    """Report on stderr how many rows are skipped, with the first reason."""
    if problems:
        rows = counted(len(problems), "row")
        first = str(problems[0]).partition("\n")[0]
        notice(f"{rows} left out; the first: {first}")


def report_reasons(reasons: Iterable[str | None], n: int = 3) -> None:
    """Report on stderr the reasons of failures, most frequent first."""
    counts = Counter(reason or "no reason was given" for reason in reasons)
    for reason, times in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]:
        click.echo(f"failed {times} time{'s' if times > 1 else ''}: {reason}", err=True)


def no_reply(n: int, what: str, first: str | None) -> ModelError:
    """The error of a run in which no call got a reply."""
    return ModelError(
        f"not one of {n} {what} got a reply; the first: {first or 'no reason was given'}",
        kind="transport",
        help="nothing is lost: run it again when the model can be reached",
    )


def _surroundings(outcome: Outcome[Task], options: Mapping[str, Any]) -> Surroundings | None:
    """The document of an answer again, where its lines are wanted."""
    n = options.get("context_lines", 0)
    if not n or outcome.result is None or outcome.unit.document is None:
        return None
    try:
        return Surroundings(outcome.unit.document(), n)
    except PearlError as error:
        notice(f"no lines are shown around the evidence: {error}")
        return None


def _print(
    outcome: Outcome[Task], file: IO[str], around: Surroundings | None, verbose: bool, first: bool
) -> None:
    """An answer below what tells it from the others: its id; of a row, its document and question, too."""
    task = outcome.unit
    document = task.extra.get("document")
    said = [task.id, document, task.question if document or task.plan else None]
    head = escaped(" ".join(": ".join(filter(None, said)).split()))
    file.write(f"{'' if first else chr(10)}== {head}\n")
    if outcome.result is not None:
        print_answer(outcome.result, file, with_steps=verbose, surroundings=around)
    else:
        file.write("(failed)\n")
