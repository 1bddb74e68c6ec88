"""Tasks → printed or written outcomes: what `ask`, `execute` and `demo` have in common."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, aclosing
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.options import open_pearl
from pearl.cli.output import Reporter, counted, keep_room, new_file, print_answer
from pearl.errors import BudgetError, DataError, ModelError, PausedError, PearlError
from pearl.executors import Execute, Outcome, Task
from pearl.executors.local import run

if TYPE_CHECKING:
    from pearl.cli.keeping import Keeping
    from pearl.store import Status

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
    keeping: Keeping | None = None,
    watch: Watch | None = None,
) -> int:
    """Run the tasks and say what came out.

    Args:
        tasks: What to do, read one by one.
        n_tasks: How many they are, where that is known.
        options: Of the command line: those of `model_options`, `trace`, `as_json`, `verbose`.
        out: File for one JSON line a task, else people are told on stdout.
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
    return await _run_told(map(watch, tasks) if watch else tasks, n_tasks, options, out, keeping)


async def _run_told(
    tasks: Iterable[Task],
    n_tasks: int | None,
    options: dict[str, Any],
    out: str | None,
    keeping: Keeping | None,
) -> int:
    """Outcomes as they come, to stdout or to a file that is there when all is done."""
    trace, as_json = options.pop("trace"), options.pop("as_json")
    verbose = options.pop("verbose", False)
    is_shown_last = n_tasks == 1 and out is None  # once the progress is off the screen
    n_done = 0
    failures: list[str] = []
    with ExitStack() as stack:
        replies = stack.enter_context(keeping.opened_replies()) if keeping else None
        async with open_pearl(options, replies) as pearl:
            rows = stack.enter_context(new_file(out)) if out or as_json else None
            events = stack.enter_context(new_file(trace)) if trace else None
            reporter = stack.enter_context(Reporter(n_tasks))
            last: Outcome | None = None
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
                        events.write(outcome.trace.to_jsonl())
                    if rows is not None and not is_shown_last:
                        rows.write(json.dumps(outcome.to_json(), ensure_ascii=False) + "\n")
                    elif rows is None and not is_shown_last:
                        _print(outcome, verbose=verbose, first=n_done == 1)
                    if outcome.error is not None and n_tasks != 1:
                        failures.append(_reason(outcome))
                    reporter.advance(is_failure=outcome.error is not None)
    if n_tasks == 1 and last is not None and last.error is not None:
        raise last.error
    if is_shown_last and last is not None and last.answer is not None:
        if as_json:
            click.echo(json.dumps(last.answer.to_json(), ensure_ascii=False, indent=2))
        else:
            print_answer(last.answer, with_steps=verbose)
    if failures:
        tell_failures(failures, n_done)
    return 1 if failures else 0


async def _run_kept(
    tasks: Iterable[Task],
    n_tasks: int | None,
    options: dict[str, Any],
    out: str,
    keeping: Keeping,
    watch: Watch | None,
) -> int:
    """Outcomes into a run of the store, and from there into the file, whatever ends the work."""
    from pearl.cli.stopping import Stopper
    from pearl.cli.storing import write_rows, write_traces
    from pearl.recording import fingerprint, run_recorded

    trace = options.pop("trace")
    failures: list[str] = []
    last: Outcome | None = None
    work = keeping.places(tasks)
    fatal: BudgetError | PausedError | None = None
    n_known = 0
    keep_room(out)
    with keeping.opened() as store:
        async with open_pearl(options, keeping.replies(store)) as pearl:
            kept = store.begin(
                keeping.spec(fingerprint(pearl)), fresh=keeping.is_fresh, id=keeping.run
            )

            def known() -> None:
                nonlocal n_known
                n_known += 1
                reporter.advance()

            def is_stopping() -> bool:
                return (
                    stopper.is_stopping
                    or fatal is not None
                    or pearl.halt.error is not None
                    or keeping.is_too_much(len(failures))
                )

            try:
                with Stopper() as stopper, Reporter(n_tasks) as reporter:
                    outcomes = run_recorded(
                        pearl,
                        work,
                        kept,
                        execute=_watched(keeping.execute(store), watch),
                        listener=reporter,
                        is_stopping=is_stopping,
                        on_known=known,
                    )
                    async with aclosing(outcomes):
                        async for outcome in outcomes:
                            last = outcome
                            if isinstance(outcome.error, BudgetError | PausedError):
                                fatal = fatal or outcome.error
                            if outcome.error is not None:
                                failures.append(_reason(outcome))
                            reporter.advance(is_failure=outcome.error is not None)
            except KeyboardInterrupt:  # the second Ctrl-C, which the file is not written for
                click.echo(f"  to go on: {keeping.resume_command(kept.id)}", err=True)
                raise
            halted = pearl.halt.error or fatal
            try:
                n_rows = write_rows(kept, out)
            except DataError as error:
                message = str(error).partition("\n")[0]
                help = f"nothing is lost: pearl runs export {kept.id} -o FILE"
                raise DataError(message, help=help) from None
            if trace:
                write_traces(kept.traces(), trace)
            counts = {"rows": n_rows, "failed": len(failures), "from_before": n_known}
            status: Status = "done"
            is_failing = keeping.is_too_much(len(failures))
            if stopper.is_stopping or is_failing or isinstance(halted, BudgetError):
                status = "stopped"
            elif halted is not None:
                status = "paused"
            kept.finish(status, counts)
    before = f", {n_known:,} of them from before" if n_known else ""
    click.echo(f"pearl: run {kept.id}: {counted(n_rows, 'row')} in {out}{before}", err=True)
    if is_failing:
        most = counted(keeping.max_errors or 0, "task")
        click.echo(f"  stopped, for more than {most} failed (--max-errors)", err=True)
    if status != "done":
        click.echo(f"  to go on: {keeping.resume_command(kept.id)}", err=True)
    if stopper.is_stopping:
        return 130
    if halted is not None and not isinstance(halted, BudgetError):
        raise halted
    if n_tasks == 1 and last is not None and last.error is not None:
        raise last.error
    if failures:
        tell_failures(failures, n_rows)
    return 1 if failures else 0


def _watched(execute: Execute, watch: Watch | None) -> Execute:
    if watch is None:
        return execute
    return lambda pearl, tasks, **options: execute(pearl, map(watch, tasks), **options)


def _reason(outcome: Outcome) -> str:
    return f"{outcome.task.id}: {str(outcome.error).partition(chr(10))[0]}"


def tell_failures(failures: Sequence[str], n_done: int) -> None:
    """Say on stderr how many rows failed and why the first of them did; the rows have the rest."""
    click.echo(f"pearl: {len(failures)} of {n_done} failed", err=True)
    click.echo(f"  first: {failures[0]}", err=True)


def tell_left_out(problems: Sequence[PearlError]) -> None:
    """Say on stderr how many rows are left out, and why the first of them is."""
    if problems:
        rows = "1 row" if len(problems) == 1 else f"{len(problems)} rows"
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


def _print(outcome: Outcome, *, verbose: bool, first: bool) -> None:
    click.echo(f"{'' if first else chr(10)}== {outcome.task.id}")
    if outcome.answer is not None:
        print_answer(outcome.answer, with_steps=verbose)
    else:
        click.echo("(failed)")
