"""Tasks → printed or written outcomes: what `ask`, `execute` and `demo` have in common."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import click

from pearl.cli.options import open_pearl
from pearl.cli.output import Reporter, new_file, print_answer
from pearl.executors import Outcome, Task
from pearl.executors.local import run

__all__ = ["run_tasks"]


async def run_tasks(
    tasks: Iterable[Task],
    n_tasks: int | None,
    options: dict[str, Any],
    *,
    out: str | None = None,
) -> int:
    """Run the tasks and say what came out.

    Args:
        tasks: What to do, read one by one.
        n_tasks: How many they are, where that is known.
        options: Of the command line: those of `model_options`, `trace`, `as_json`, `verbose`.
        out: File for one JSON line a task, else people are told on stdout.

    Returns:
        The exit code: 0, or 1 where some of several tasks failed.

    Raises:
        PearlError: The only task failed.
    """
    trace, as_json = options.pop("trace"), options.pop("as_json")
    verbose = options.pop("verbose", False)
    n_done = n_failed = 0
    async with open_pearl(options) as pearl:
        with ExitStack() as stack:
            rows = stack.enter_context(new_file(out)) if out or as_json else None
            events = stack.enter_context(new_file(trace)) if trace else None
            reporter = stack.enter_context(Reporter(n_tasks))
            only: Outcome | None = None
            async for outcome in run(pearl, tasks, listener=reporter):
                n_done += 1
                n_failed += outcome.error is not None
                if events is not None:
                    events.write(outcome.trace.to_jsonl())
                if n_tasks == 1 and out is None:
                    only = outcome
                elif rows is not None:
                    rows.write(json.dumps(outcome.to_json(), ensure_ascii=False) + "\n")
                else:
                    _print(outcome, verbose=verbose, first=n_done == 1)
                reporter.advance()
        if only is not None:
            if only.error is not None:
                raise only.error
            assert only.answer is not None
            if as_json:
                click.echo(json.dumps(only.answer.to_json(), ensure_ascii=False, indent=2))
            else:
                print_answer(only.answer, with_steps=verbose)
    if n_failed:
        click.echo(f"pearl: {n_failed} of {n_done} failed", err=True)
    return 1 if n_failed else 0


def _print(outcome: Outcome, *, verbose: bool, first: bool) -> None:
    click.echo(f"{'' if first else chr(10)}== {outcome.task.id}")
    if outcome.answer is not None:
        print_answer(outcome.answer, with_steps=verbose)
    else:
        click.echo(f"pearl: {outcome.task.id}: {outcome.error}", err=True)
