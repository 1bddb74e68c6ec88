"""Tasks → printed or written outcomes: what `ask`, `execute` and `demo` have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import click

from pearl.cli.escaping import escaped, to_json
from pearl.cli.options import open_pearl
from pearl.cli.output import counted, print_answer
from pearl.cli.progress import Reporter
from pearl.cli.writing import OutputWriter, keep_json_lines
from pearl.errors import BudgetError, DataError, ModelError, PausedError, PearlError, UsageError
from pearl.runs.executors import Execute, Outcome, Task
from pearl.runs.executors.local import run

if TYPE_CHECKING:
    from pearl.cli.keeping import RunOptions
    from pearl.pipeline import Pearl
    from pearl.runs.store import Run, Status

__all__ = [
    "Watch",
    "no_reply",
    "run_tasks",
    "tell_failures",
    "tell_left_out",
    "tell_reasons",
    "tell_stopped",
]

Watch = Callable[[Task], Task]


async def run_tasks(
    tasks: Iterable[Task],
    n_tasks: int | None,
    options: dict[str, Any],
    *,
    out: str | None = None,
    told: str | None = None,
    keeping: RunOptions | None = None,
    watch: Watch | None = None,
) -> int:
    """Run the tasks and say what came out.

    Args:
        tasks: What to do, read one by one.
        n_tasks: How many they are, where that is known.
        options: Of the command line: those of `setting_options`, `trace`, `as_json`, `verbose`; and
            `tells_plans`: whether plans are shown on stderr as soon as they are there.
        out: File for one JSON line a task, else people are told.
        told: File for what people are told, or for the JSON, in place of stdout.
        keeping: Where replies are kept and, with `out`, the outcomes, so that the same command goes
            on where it stopped.
        watch: What every task goes through that is run, and not known from before.

    Returns:
        The exit code: 0, or 1 where some of several tasks failed.

    Raises:
        Exception: The only task failed.
    """
    if keeping is not None and out is not None:
        return await _run_kept(tasks, n_tasks, options, out, keeping, watch)
    store = keeping.store if keeping else None
    is_forced = keeping.is_forced if keeping else options.pop("force")
    writer = OutputWriter.of_command(store, is_forced=is_forced)
    writer.check(told, options["trace"])
    if watch:
        tasks = map(watch, tasks)
    with writer.open(told) as file:
        return await _run_told(tasks, n_tasks, options, file, keeping, writer)


async def _run_told(
    tasks: Iterable[Task],
    n_tasks: int | None,
    options: dict[str, Any],
    file: IO[str],
    keeping: RunOptions | None,
    writer: OutputWriter,
) -> int:
    """Outcomes as they come; that of a single task once the progress is off the screen."""
    trace, as_json = options.pop("trace"), options.pop("as_json")
    verbose = options.pop("verbose", False)
    tells_plans = options.pop("tells_plans", False)
    n_done = 0
    failures: list[str] = []
    with ExitStack() as stack:
        replies = stack.enter_context(keeping.opened_replies()) if keeping else None
        async with open_pearl(options, replies) as pearl:
            events = stack.enter_context(writer.open(trace)) if trace else None
            reporter = stack.enter_context(Reporter(n_tasks, tells_plans=tells_plans))
            last: Outcome[Task] | None = None
            outcomes = run(
                pearl,
                tasks,
                listener=reporter,
                is_stopping=lambda: keeping is not None and keeping.is_too_much(len(failures)),
            )
            async with aclosing(outcomes):  # what is written to may be closed at any time
                async for outcome in outcomes:
                    n_done, last = n_done + 1, outcome
                    if events is not None:
                        events.write(escaped(outcome.trace.to_jsonl()))
                    if n_tasks != 1:
                        if as_json:
                            file.write(to_json(outcome.to_json()) + "\n")
                        else:
                            with reporter.aside():
                                _print(outcome, file, verbose=verbose, first=n_done == 1)
                        if outcome.error is not None:
                            failures.append(_reason(outcome))
                    reporter.advance(is_failure=outcome.error is not None)
    if n_tasks == 1 and last is not None:
        if last.error is not None:
            raise last.error
        assert last.result is not None
        if as_json:
            file.write(to_json(last.result.to_json(), indent=2) + "\n")
        else:
            print_answer(last.result, file, with_steps=verbose)
    if failures:
        tell_failures(failures, n_done)
    return 1 if failures else 0


async def _run_kept(
    tasks: Iterable[Task],
    n_tasks: int | None,
    options: dict[str, Any],
    out: str,
    keeping: RunOptions,
    watch: Watch | None,
) -> int:
    """Outcomes into a run of the store, and from there into the file, whatever ends the work."""
    from pearl.cli.storing import write_traces
    from pearl.runs.identity import fingerprint

    keep_json_lines(out, f"'pearl runs export RUN -o {out}' makes a table of them")
    trace = options.pop("trace")
    with keeping.opened() as store:
        async with open_pearl(options, keeping.replies(store)) as pearl:
            spec = keeping.spec(fingerprint(pearl))
            writer = keeping.writer(spec)
            is_new = keeping.run is None
            if is_new:
                writer.check(out, trace)
            kept = store.begin(spec, fresh=keeping.is_fresh, id=keeping.run)
            if not is_new:  # which says first where the settings differ
                writer.check(out, trace)
            execute = _watched(keeping.execute(store), watch)
            try:
                tally = await _work(pearl, tasks, n_tasks, kept, keeping, execute)
            except KeyboardInterrupt:  # the second Ctrl-C, which the file is not written for
                click.echo(f"  to go on: {keeping.resume_command(kept.id)}", err=True)
                raise
            n_rows = _write_kept(kept, out, writer)
            if trace:
                write_traces(kept.traces(), trace, writer)
            counts = {"rows": n_rows, "failed": len(tally.failures), "from_before": tally.n_known}
            kept.finish(tally.status, counts)
            statuses = store.tally(kept.id)
    before = f", {tally.n_known:,} of them from before" if tally.n_known else ""
    cut_off = f", {tally.n_unfinished:,} of them not finished" if tally.n_unfinished else ""
    click.echo(
        f"pearl: run {kept.id}: {counted(n_rows, 'row')} in {out}{before}{cut_off}", err=True
    )
    if unsure := statuses.get("undecided"):
        click.echo(f"  {counted(unsure, 'answer')} undecided: the rows say why", err=True)
    if empty := statuses.get("nothing_found"):
        click.echo(f"  {counted(empty, 'answer')} with nothing found", err=True)
    if keeping.is_too_much(len(tally.failures)):
        most = counted(keeping.max_errors or 0, "task")
        click.echo(f"  stopped, for more than {most} failed (--max-errors)", err=True)
    if tally.status != "done":
        click.echo(f"  to go on: {keeping.resume_command(kept.id)}", err=True)
    if tally.is_interrupted:
        return 130
    if tally.halted is not None and not isinstance(tally.halted, BudgetError):
        raise tally.halted
    if n_tasks == 1 and tally.last is not None and tally.last.error is not None:
        raise tally.last.error
    if tally.failures:
        tell_failures(tally.failures, n_rows)
    return 1 if tally.failures else 0


@dataclass
class _Tally:
    """What came of the work.

    Attributes:
        failures: Why tasks failed: a line each, and one of help where there is some.
        n_unfinished: Tasks that the end of the run has cut off.
        n_known: Tasks whose rows are from before.
        last: The latest outcome.
        halted: What ended the run for all tasks.
        is_interrupted: Whether the user ended it.
        status: How the run ends.
    """

    failures: list[str] = field(default_factory=list)
    n_unfinished: int = 0
    n_known: int = 0
    last: Outcome[Task] | None = None
    halted: PearlError | None = None
    is_interrupted: bool = False
    status: Status = "done"

    def add(self, outcome: Outcome[Task]) -> None:
        """One more outcome."""
        self.last = outcome
        if isinstance(outcome.error, BudgetError | PausedError):
            self.halted = self.halted or outcome.error
            self.n_unfinished += 1
        elif outcome.error is not None:
            self.failures.append(_reason(outcome))


async def _work(
    pearl: Pearl,
    tasks: Iterable[Task],
    n_tasks: int | None,
    kept: Run,
    keeping: RunOptions,
    execute: Execute,
) -> _Tally:
    """Do what has no row yet.

    Raises:
        KeyboardInterrupt: The user wants no more to be finished.
    """
    from pearl.cli.stopping import Stopper
    from pearl.runs.recording import run_recorded

    tally = _Tally()

    def known(_: bytes) -> None:
        tally.n_known += 1
        reporter.advance()

    def is_stopping() -> bool:
        is_over = tally.halted is not None or pearl.client.halt.error is not None
        return stopper.is_stopping or is_over or keeping.is_too_much(len(tally.failures))

    with Stopper() as stopper, Reporter(n_tasks) as reporter:
        outcomes = run_recorded(
            pearl,
            keeping.places(tasks),
            kept,
            execute=execute,
            listener=reporter,
            is_stopping=is_stopping,
            on_known=known,
        )
        async with aclosing(outcomes):
            async for outcome in outcomes:
                tally.add(outcome)
                reporter.advance(is_failure=outcome.error is not None)
    tally.halted = pearl.client.halt.error or tally.halted
    tally.is_interrupted = stopper.is_stopping
    if is_stopping():
        is_paused = tally.halted is not None and not isinstance(tally.halted, BudgetError)
        tally.status = "paused" if is_paused and not tally.is_interrupted else "stopped"
    return tally


def _write_kept(kept: Run, out: str, writer: OutputWriter) -> int:
    from pearl.cli.storing import write_rows

    try:
        return write_rows(kept, out, writer)
    except (DataError, UsageError) as error:
        message = str(error).partition("\n")[0]
        help = f"nothing is lost: pearl runs export {kept.id} -o FILE"
        raise type(error)(message, help=help) from None


def _watched(execute: Execute, watch: Watch | None) -> Execute:
    if watch is None:
        return execute
    return lambda pearl, tasks, **options: execute(pearl, map(watch, tasks), **options)


def _reason(outcome: Outcome[Task]) -> str:
    id = " ".join(outcome.unit.id.splitlines())
    help = getattr(outcome.error, "help", None)
    told = f"\n  help: {help.partition(chr(10))[0]}" if help else ""
    return f"{id}: {str(outcome.error).partition(chr(10))[0]}{told}"


def tell_failures(failures: Sequence[str], n_done: int) -> None:
    """Say on stderr how many rows failed and why the first of them did; the rows have the rest."""
    click.echo(f"pearl: {len(failures)} of {n_done} failed", err=True)
    click.echo(f"  first: {failures[0]}", err=True)


def tell_left_out(problems: Sequence[PearlError]) -> None:
    """Say on stderr how many rows are left out, and why the first of them is."""
    if problems:
        rows = counted(len(problems), "row")
        first = str(problems[0]).partition("\n")[0]
        click.echo(f"pearl: {rows} left out; the first: {first}", err=True)


def tell_reasons(reasons: Iterable[str | None], n: int = 3) -> None:
    """Say on stderr what failed how often, the commonest reasons first."""
    counts = Counter(reason or "no reason was given" for reason in reasons)
    for reason, times in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]:
        click.echo(f"failed {times} time{'s' if times > 1 else ''}: {reason}", err=True)


def tell_stopped(n_left: int) -> int:
    """Say on stderr how much is left of a run that was stopped and can be gone on with.

    Returns:
        The exit code.
    """
    click.echo(f"pearl: stopped with {n_left} questions left; run it again to go on", err=True)
    return 130


def no_reply(n: int, what: str, first: str | None) -> ModelError:
    """The error of a run in which no call got a reply."""
    return ModelError(
        f"not one of {n} {what} got a reply; the first: {first or 'no reason was given'}",
        kind="transport",
        help="nothing is lost: run it again when the model can be reached",
    )


def _print(outcome: Outcome[Task], file: IO[str], *, verbose: bool, first: bool) -> None:
    """An answer below what tells it from the others: its id; of a row, its document and question, too."""
    task = outcome.unit
    document = task.extra.get("document")
    said = [task.id, document, task.question if document or task.plan else None]
    head = escaped(" ".join(": ".join(filter(None, said)).split()))
    file.write(f"{'' if first else chr(10)}== {head}\n")
    if outcome.result is not None:
        print_answer(outcome.result, file, with_steps=verbose)
    else:
        file.write("(failed)\n")
