"""Runs tasks and prints their outcomes (`run_tasks`), or runs units and stores their rows (`run_units`)."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, aclosing, closing, contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct
from msgspec.structs import replace

from pearl import plugins
from pearl.cli.options import (
    model_opened,
    new_pearl,
    opened_folder,
    refuse,
    report_refused,
    written_store,
)
from pearl.cli.output import print_answer, print_records, print_steps
from pearl.cli.progress import Reporter
from pearl.cli.terminal import notice
from pearl.cli.writing import GrowingFile, OutputWriter, is_plain, output_options, traced_listener
from pearl.errors import BudgetError, ModelError, PearlError, StoreError, UsageError
from pearl.errors.escaping import counted, escaped, to_json
from pearl.errors.privacy import is_private
from pearl.llm.prices import money

if TYPE_CHECKING:
    from pearl.data.schemas import Schema
    from pearl.pipeline import Pearl
    from pearl.runs.executors import Outcome, Task, Unit
    from pearl.runs.forecast import Forecast
    from pearl.runs.session import Session, Summary
    from pearl.runs.store import Run, RunInfo, RunSpec, Store
    from pearl.trace.exporters import ExporterModule, TraceExporter

RETRY = "pearl.cli.retry"
"""Key of a context's `meta` with the rows that are repeated, as `Session.run` takes them."""

_LIMITS = ("max_cost", "max_tokens", "max_calls")


class Evaluating(Protocol):
    """Takes the rows of a run instead of printing them, and prints how good they are."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a row."""

    async def finish(self, pearl: Pearl) -> None:
        """Print the scores, after the last row."""


def run_tasks(
    tasks: Iterable[Task],
    options: Mapping[str, Any],
    *,
    out: str | None = None,
    schema: Schema | None = None,
    evaluation: Evaluating | None = None,
    tells_plans: bool = False,
) -> int:
    """Run tasks and print their outcomes; with `dry_run`, print the forecast."""
    # Some commands have no options for pages, rows and steps.
    options = {"page": None, "rows_out": None, "verbose": False, **options, "out": out}
    is_page = options["page"] and str(out).endswith(".html")
    refuse((is_page, "--page and --out name a page each", "leave one out"))
    n_tasks = known_length(tasks)
    options |= output_options(out, n_tasks)
    options["as_json"] = options["as_json"] or options["as_lines"]
    if options["dry_run"]:
        return show_forecast(unasked_session(options), tasks, options)
    page, trace, rows_out = options["page"], options["trace"], options["rows_out"]
    refuse(
        (page and n_tasks != 1,
         "--page needs exactly one answer", "name one document, or use --together"),
    )  # fmt: skip
    writer = OutputWriter(is_forced=options["force"])
    writer.check(options["out"], trace, page, rows_out)
    with opened_session(options) as session, ExitStack() as stack:
        events = stack.enter_context(GrowingFile(writer, trace)) if trace else None
        reporter = Reporter(n_tasks, tells_plans=tells_plans, price=session.only_price)
        with writer.open(options["out"]) as file:
            shown = _Outcomes(file, options, n_tasks, reporter, schema, evaluation)
            summary, _ = carry_out(
                session, tasks, options, events=events, reporter=reporter, on_outcome=shown.add,
                is_gentle=False,
            )  # fmt: skip
            # Files first: printing may end, as in `pearl ask ... | head`.
            if page and shown.last is not None:
                with writer.open(page) as html:
                    html.write(_page(shown.last, session.pearl.models))
            if rows_out:
                from pearl.runs.export import write_evidence

                with writer.open(rows_out) as table:
                    write_evidence(lambda: shown.evidence, table, Path(rows_out).suffix.lower())
            if evaluation is not None:
                asyncio.run(evaluation.finish(session.equipped()))
            else:
                shown.finish()
        if page and is_plain(page) and shown.last is not None and sys.stderr.isatty():
            notice(f"page: {page}")
        error = None if shown.last is None else shown.last.error
        is_printed = n_tasks == 1 and options["as_json"] and evaluation is None
        if is_printed and isinstance(error, PearlError):
            notice(str(error))
            return error.exit_code
        return tasks_code(session, summary, n_tasks, summary.n_done)


class _Outcomes:
    """Prints the outcomes of tasks: each of several when it arrives, a single one or a table at the end."""

    def __init__(
        self, file: IO[str], options: Mapping[str, Any], n_tasks: int | None, reporter: Reporter,
        schema: Schema | None, evaluation: Evaluating | None,
    ) -> None:  # fmt: skip
        self.last: Outcome[Any] | None = None
        self.evidence: list[Mapping[str, Any]] = []
        self._records: list[Mapping[str, Any]] = []
        self._file, self._options, self._reporter = file, options, reporter
        self._schema, self._evaluation = schema, evaluation
        self._is_only, self._n_printed = n_tasks == 1, 0

    def add(self, outcome: Outcome[Any]) -> None:
        """Take an outcome; with a schema, its answer is an instance of it."""
        if self._schema is not None and outcome.result is not None:
            answer = dataclasses.replace(outcome.result, schema=self._schema)
            outcome = replace(outcome, result=answer)
        self.last = outcome
        if self._options["rows_out"] and outcome.result is not None:
            found = outcome.to_dict()["evidence"]
            self.evidence.append({"id": outcome.unit.id, "evidence": found})
        if self._evaluation is not None:
            self._evaluation.add(outcome.to_dict())
        elif self._options["as_json"]:
            if not self._is_only:
                self._file.write(to_json(outcome.to_dict()) + "\n")
        elif self._schema is not None:
            row = outcome.to_dict()
            kept = ("id", "document", "record")
            self._records.append({key: row[key] for key in kept if key in row})
        elif not self._is_only:
            with self._reporter.aside():
                self._print(outcome)

    def _print(self, outcome: Outcome[Task]) -> None:
        """Print an answer below its id; for a row of tasks, also below its document and question."""
        task = outcome.unit
        document = task.extra.get("document")
        names = [task.id, document, task.question if document or task.plan else None]
        head = escaped(" ".join(": ".join(filter(None, names)).split()))
        self._file.write(f"{chr(10) if self._n_printed else ''}== {head}\n")
        self._n_printed += 1
        if outcome.result is not None:
            print_answer(outcome.result, self._file, with_steps=self._options["verbose"])
        else:
            reason = _reason(outcome).removeprefix(f"{task.id}: ")
            self._file.write(f"{escaped(f'(failed) {reason}')}\n")

    def finish(self) -> None:
        """Print a single answer, or the finished steps of a failed task; or the table of all records."""
        last, file, options = self.last, self._file, self._options
        if not self._is_only or last is None:
            if self._schema is not None and not options["as_json"]:
                print_records(self._records, self._schema.fields, file)
        elif options["as_json"]:
            row = {k: value for k, value in last.to_dict().items() if k != "id" or value}
            file.write(to_json(row, indent=None if options["as_lines"] else 2) + "\n")
        elif last.error is None:
            print_answer(last.result, file, with_steps=options["verbose"])
        elif finished := getattr(last.error, "finished", ()):
            notice("finished steps:")
            print_steps(finished, file)


def known_length(units: Iterable[object]) -> int | None:
    """The number of units, if it is known without iterating over them."""
    return len(units) if isinstance(units, Sized) else None


def new_session(
    pearl: Pearl,
    options: Mapping[str, Any],
    store: Store | Path | None,
    *,
    keeps_rows: bool = False,
) -> Session:
    """Make a `Session` with the limits, prices and concurrency of the options."""
    from pearl.llm.prices import read_prices
    from pearl.runs.session import Session

    max_time_s = options.get("max_time")
    same = ("max_tokens", "max_calls", "price", "batch_threshold", "shard", "max_errors")
    return Session(
        pearl,
        store=store,
        keeps_rows=keeps_rows,
        is_fresh=options.get("fresh", False),
        max_cost_usd=options.get("max_cost"),
        max_minutes=None if max_time_s is None else max_time_s / 60,
        prices=read_prices(options.get("prices")),
        executor=options.get("executor", "local"),
        telemetry=opened_telemetry(options),
        **{name: options.get(name) for name in same},
    )


def unasked_session(options: Mapping[str, Any], *, keeps_rows: bool = False) -> Session:
    """Make a session for forecasts, which needs no key and writes nothing."""
    pearl, folder = new_pearl(options, is_asked=False), opened_folder(options["store"])
    return new_session(pearl, options, folder, keeps_rows=keeps_rows)


@contextmanager
def opened_session(options: Mapping[str, Any], *, keeps_rows: bool = False) -> Iterator[Session]:
    """Open a session with the store of the options; `keeps_rows` stores rows too. Print the spending at the end."""
    opened = written_store if keeps_rows else reply_store
    with ExitStack() as stack:
        store = stack.enter_context(opened(options["store"]))
        session = new_session(new_pearl(options), options, store, keeps_rows=keeps_rows)
        stack.push(partial(report_spent, session))
        yield session


def show_forecast(
    session: Session,
    units: Iterable[Unit],
    options: Mapping[str, Any],
    asked: RunSpec | None = None,
    redo: Callable[[Mapping[str, Any]], bool] | None = None,
) -> int:
    """Print the forecast of units without a row, and of rows that `redo` selects."""
    from pearl.cli.forecast import print_forecast

    forecast = session.forecast(units, asked, id=options.get("run"), redo=redo)
    limits = {name: options[name] for name in _LIMITS if options[name] is not None}
    print_forecast(forecast, limits, as_json=options.get("as_json", False))
    return 1 if forecast.n_problems else 0


@contextmanager
def reply_store(store: str | None) -> Iterator[Store | None]:
    """Open the store for replies only; None in a private run, or if the default one cannot be opened."""
    if is_private():
        yield None
        return
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(written_store(store))
        except StoreError as error:
            if store is not None:
                raise
            notice(f"replies are not kept: the store cannot be opened: {error.message}")
            opened = None
        yield opened


def _page(outcome: Outcome[Task], model: str) -> str:
    """The page of an answer, or of a failed task."""
    from pearl.view.answer_page import result_page
    from pearl.view.sources import ResultRecord, pdf_files

    document = None
    if outcome.unit.document is not None:
        with suppress(PearlError):  # an unreadable document is the reason of the failure
            document = outcome.unit.document()
    row = {"model": model, **outcome.to_dict()}
    files, events = pdf_files(document), tuple(outcome.trace)
    return result_page(ResultRecord(outcome.unit.id, row, events, document, files=files))


def tasks_code(session: Session, summary: Summary, n_tasks: int | None, n_done: int) -> int:
    """Report failures and reached limits; returns the exit code of a run of tasks."""
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
        notice(f"the run reached a limit\n  help: {GO_ON}")
        return BudgetError.exit_code
    statuses = {status for status, n in summary.statuses.items() if n}  # includes earlier rows
    if last is not None and last.result is not None:
        statuses.add(last.result.status)
    if n_tasks == 1 and "refused" in statuses:
        return ModelError.exit_code
    is_sure = not summary.n_unsure and not statuses & {*UNSURE, "failed"}
    return 0 if summary.first_failure is None and is_sure else 1


def export_command(id: str) -> str:
    """The command that exports the rows of a run, from the store that the running command uses."""
    store = click.get_current_context().params.get("store")
    words = ["pearl", "runs", "export", id, *(["--store", store] if store else []), "-o", "FILE"]
    return shlex.join(words)


def resume_command(id: str) -> str:
    """The command that resumes the running command."""
    from pearl.llm.backends.openai.endpoint import Endpoint

    context = click.get_current_context()
    words = ["pearl", "runs", "resume", id]
    if context.params.get("store") is not None:
        words += ["--store", context.params["store"]]
        if "fields" in context.params and context.params["out"]:
            # Of an extraction: a table does not show which run wrote it, so a person names the file to replace.
            words += ["-o", context.params["out"]]
    url = str(context.params["base_url"])
    is_flag = context.get_parameter_source("base_url") is ParameterSource.COMMANDLINE
    # Without the flag, a server that only the store names gets no OpenAI key. Passwords are not shown.
    if is_flag and Endpoint(url, "", "").shown == url.rstrip("/"):
        words += ["--base-url", url]
    if context.params.get("allow_outside"):
        words.append("--allow-outside")
    return shlex.join(words)


def _reason(outcome: Outcome[Task]) -> str:
    id = " ".join(outcome.unit.id.splitlines())
    reason = str(outcome.error).partition("\n")[0].removeprefix(f"{id}: ")
    help = getattr(outcome.error, "help", None)
    advice = f"\n  help: {help.partition(chr(10))[0]}" if help else ""
    # Ids of rows are text of the data.
    return f"{reason}{advice}" if is_private() else f"{id}: {reason}{advice}"


def report_max_errors(summary: Summary, max_errors: int | None) -> None:
    """Report on stderr if `--max-errors` has stopped a run."""
    if max_errors is not None and summary.n_failed > max_errors:
        click.echo(f"  stopped: more than {max_errors:,} failed (--max-errors)", err=True)


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
    counts = Counter(
        "a private run leaves out why" if is_private() else reason or "no reason given"
        for reason in reasons
    )
    for reason, times in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]:
        click.echo(f"failed {times} time{'s' if times > 1 else ''}: {reason}", err=True)


def report_rows(summary: Summary, out: str, max_errors: int | None) -> None:
    """Report on stderr how many rows a file has, with their statuses, and how to resume an unfinished run."""
    known, cut_off = summary.n_known, summary.n_unfinished
    run = f"run {summary.id}: " if summary.id else ""
    notice(
        f"{run}{counted(summary.n_rows, 'row')} in {out}"
        + (f", {known:,} of them from earlier runs" if known else "")
        + (f", {cut_off:,} of them unfinished" if cut_off else "")
    )
    for status, text in (
        ("undecided", "undecided: the rows have the reasons"),
        ("degraded", "degraded: the rows have the reasons"),
        ("refused", "refused by the model"),
        ("nothing_found", "with nothing found"),
    ):
        if n := summary.statuses.get(status):
            click.echo(f"  {counted(n, 'answer')} {text}", err=True)
    report_max_errors(summary, max_errors)
    if summary.status != "done":
        command = resume_command(summary.id) if summary.id else "give the same command again"
        click.echo(f"  resume it: {command}", err=True)


def no_reply(n: int, what: str, first: str | None) -> ModelError:
    """The error of a run in which no call got a reply."""
    return ModelError(
        f"none of {n} {what} got a reply; the first error: {first or 'no reason given'}",
        kind="transport",
        help="no work is lost: run the command again when the model can be reached",
    )


U = TypeVar("U", bound="Unit")
V = TypeVar("V", bound="Unit")


class Work(Struct, Generic[U], frozen=True):
    """The work of a command."""

    units: Iterable[U]
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    header: Any = None


class Finished(Struct, Generic[U], frozen=True):
    """The state of the work."""

    work: Work[U]
    store: Store
    session: Session
    writer: OutputWriter
    summary: Summary
    interrupt: int  # exit code of the signal that ended the work; 0 for none
    max_errors: int | None

    def kept(self, units: Iterable[V]) -> list[tuple[V, dict[str, Any]]]:
        """Units with a row, in order."""
        return list(self.session.kept(units, self.summary.id))

    def write_trace(self, path: str | None) -> None:
        """Write the traces of all units with a row, if `path` is given."""
        if path is not None:
            with self.writer.open(path) as file:
                file.writelines(map(escaped, self.store.traces(self.summary.id)))

    @property
    def n_left(self) -> int:
        """Number of units without a row."""
        n_begun = self.summary.n_known + self.summary.n_done - self.summary.n_unfinished
        return self.session.count(self.work.units) - n_begun

    def code(self, own: int) -> int:
        """The exit code: `own` if the work is finished; else units without a row are reported."""
        error = self.summary.error
        if not self.interrupt and error is not None and not isinstance(error, BudgetError):
            raise error
        if not self.n_left:
            return own
        if error is not None:
            notice(error.message)
        notice(
            f"stopped with {self.n_left} left; resume it with the same command, or "
            f"{resume_command(self.summary.id or '')}"
        )
        report_max_errors(self.summary, self.max_errors)
        if self.interrupt:
            return self.interrupt
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
    """Run units without a row, then process all rows."""
    from pearl.runs.executors import Unit, load_executor
    from pearl.runs.request import REQUESTS, written_files

    context = click.get_current_context()
    arguments: tuple[str, ...] = context.find_root().obj or ()
    request = REQUESTS[command].of(context.params)
    executor = options["executor"]
    if command not in ("execute", "extract") and load_executor(executor).UNITS is not Unit:
        raise UsageError(
            f"the executor '{executor}' runs only questions and plans over documents",
            help="use --executor local; 'pearl execute' supports this executor",
        )

    def asked(work: Work[U], earlier: Iterable[str] = ()) -> RunSpec:
        return request.spec(arguments, work.settings, work.inputs, earlier)

    if options["dry_run"]:
        session = unasked_session(options, keeps_rows=True)
        work = prepare(session.pearl)
        return show_forecast(session, work.units, options, asked(work), redo)
    with opened_session(options, keeps_rows=True) as session, ExitStack() as stack:
        store = session.store
        work = prepare(session.pearl)
        before = store.runs(session.spec(work.units, asked(work)).key)
        earlier = dict.fromkeys(chain.from_iterable(map(written_files, before)))
        spec = asked(work, earlier)
        writer = OutputWriter(is_forced=options["force"])
        writer.owns(earlier)
        if options["run"] is None:
            writer.check(*outs)
            older = None if options["fresh"] else store.superseded(session.spec(work.units, spec))
            if older is not None and not options["yes"]:
                _confirm_repeat(older, session.forecast(work.units, spec))

        begun: list[str] = []

        def on_begun(run: Run) -> None:
            writer.check(*outs)  # not earlier: the store first reports if it is another run
            begun.append(run.id)

        def earlier_events() -> Iterable[str]:
            return chain.from_iterable(map(escaped, store.traces(id)) for id in begun)

        events: GrowingFile | None = None
        if (trace := options.get("trace")) and is_plain(trace):
            events = stack.enter_context(closing(GrowingFile(writer, trace, earlier_events)))
        retry = context.meta.get(RETRY)  # of `pearl runs retry`
        try:
            summary, interrupt = carry_out(
                session, work.units, options, events=events, on_begun=on_begun, asked=spec,
                id=options["run"], redo=retry or redo, is_retry=retry is not None,
            )  # fmt: skip
        except KeyboardInterrupt:
            click.echo(f"  resume it: {resume_command(''.join(begun))}", err=True)
            raise
        if events is not None:
            events.close()  # the trace is written again, in order
        return finish(
            Finished(work, store, session, writer, summary, interrupt, options["max_errors"])
        )


def carry_out(
    session: Session,
    units: Iterable[Unit],
    options: Mapping[str, Any],
    *,
    events: GrowingFile | None = None,
    reporter: Reporter | None = None,
    on_begun: Callable[[Run], None] = lambda run: None,
    on_outcome: Callable[[Outcome[Any]], None] = lambda outcome: None,
    is_gentle: bool = True,
    **how: Any,
) -> tuple[Summary, int]:
    """Run units until they end or a signal arrives; return the summary and the signal's exit code, 0 without one.

    If `is_gentle`, the first Ctrl-C lets running units finish. `how` are further arguments of `Session.run`.
    """
    from pearl.runs.session import Watcher

    stopper, reporter = Stopper(), reporter or Reporter(known_length(units))
    watcher = Watcher(
        traced_listener(reporter, events),
        is_stopping=lambda: stopper.is_stopping,
        on_begun=on_begun,
        on_known=lambda key: reporter.advance(),
        on_notice=notice,
    )
    run = session.run(units, watcher=watcher, **how)

    async def to_the_end() -> None:
        # `aclosing`: the reader of the output may leave at any time
        async with model_opened(session.pearl, options), aclosing(run):
            try:
                with stopper if is_gentle else nullcontext(), reporter:
                    async for outcome in run:
                        on_outcome(outcome)
                        reporter.advance(is_failure=outcome.is_failed)
            finally:
                report_refused(run.summary.limits, session.pearl.client.settings.concurrency)

    asyncio.run(to_the_end())
    return run.summary, stopper.exit_code


def _confirm_repeat(older: RunInfo, forecast: Forecast) -> None:
    """Ask the user to confirm: the work is paid again because a run of another version has done it."""
    from pearl.cli.forecast import calls_of, cost_of

    price = (
        f", {cost_of(forecast)}" if forecast.cost_usd and forecast.cost_usd.most is not None else ""
    )
    message = (
        f"run {older.id} of this work has {counted(older.n_results, 'row')}, but its prompts are those of another "
        f"version of PEARL: stored replies do not fit, and all is asked again ({calls_of(forecast)}{price})"
    )
    if not (sys.stdin is not None and sys.stdin.isatty()):
        keep = f"--yes confirms it; pearl runs export {older.id} writes the rows that there are"
        raise UsageError(message, help=keep)
    if not click.confirm(f"pearl: {message}. Go on?", err=True):
        raise click.Abort


def opened_telemetry(options: Mapping[str, Any]) -> TraceExporter | None:
    """Open the exporter of traces for the running command; None without `--telemetry`, or for a dry run."""
    if not options.get("telemetry") or options.get("dry_run"):
        return None
    name = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    module: ExporterModule = plugins.load("pearl.trace.exporters", name, "trace exporter")
    exporter = module.create(notice)
    click.get_current_context().call_on_close(exporter.close)
    return exporter


ONCE_S = 0.2
"""Signals that arrive within this number of seconds count as one: `timeout` signals a process and its group."""

# SIGHUP: the terminal is gone (Windows has no such signal).
_SIGNALS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


class SignalledError(KeyboardInterrupt):
    """A signal cancelled the work; `exit_code` is 128 + the signal's number."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("interrupted")
        self.exit_code = exit_code


class Stopper:
    """Ends work at the first signal, cancels it at the second. `exit_code` is 128 + the signal's number, or 0."""

    def __init__(self) -> None:
        self.exit_code = 0
        self._since = 0.0

    @property
    def is_stopping(self) -> bool:
        """Whether a signal has arrived."""
        return self.exit_code != 0

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._before = {
            number: before
            for number in _SIGNALS
            if (before := signal.getsignal(number)) is not signal.SIG_IGN  # as nohup does
        }
        for number in self._before:
            # Not by the loop, which has no handlers of signals on Windows.
            signal.signal(
                number, lambda number, _: self._loop.call_soon_threadsafe(self._stop, number)
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is asyncio.CancelledError and self.is_stopping:
            raise SignalledError(self.exit_code)

    def _stop(self, number: int) -> None:
        now = self._loop.time()
        if self.is_stopping and self._task is not None:
            if now - self._since > ONCE_S:
                self._task.cancel()
            return
        self.exit_code, self._since = 128 + number, now
        again = "press Ctrl-C again" if number == signal.SIGINT else "send the signal again"
        with suppress(OSError):  # the terminal may be gone
            click.echo(f"finishing running work; {again} to stop at once", err=True)


def report_spent(session: Session, error: object, *_: object) -> None:
    """Print the usage to stderr; after an error, print the calls even without a limit or price."""
    budget = session.budget
    client = session.pearl.client
    if budget is None and error is not None and client.model.reads_prompts:
        budget = client.budget if client.budget.spent.n_calls else None
    if budget is None:
        return
    spent = budget.spent
    usage = spent.usage
    n_failed = spent.n_failed_calls
    actual = [
        counted(spent.n_calls, "call") + (f" ({n_failed:,} failed)" if n_failed else ""),
        "tokens unknown"
        if spent.n_calls and not usage.n_input_tokens
        else f"{usage.n_input_tokens:,} + {usage.n_output_tokens:,} tokens"
        + (f" ({usage.n_cached_tokens:,} cached)" if usage.n_cached_tokens else ""),
    ]
    if budget.cost_usd is not None:
        actual.append(money(budget.cost_usd))
    if spent.n_unsure_tokens:
        actual.append(f"{spent.n_unsure_tokens:,} of the tokens may not have been billed")
    elif spent.n_unsure_calls:
        unsure = counted(spent.n_unsure_calls, "call")
        actual.append(f"{unsure} without a usable reply may have been billed")
    click.echo(f"spent {', '.join(actual)}", err=True)
