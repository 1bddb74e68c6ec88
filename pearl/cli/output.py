"""What people see: answers as text, and progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from pearl.cli.terminal import escaped_streams, new_console
from pearl.errors import DataError
from pearl.sources import read_bytes

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from pearl.answerer import Answer
    from pearl.trace import Event

__all__ = ["Reporter", "counted", "print_answer", "read_input"]


def read_input(path: str) -> str:
    """A text file given on the command line; `-` is stdin.

    Raises:
        DataError: It cannot be read, is not UTF-8 text, or is larger than a document may be.
    """
    label = "<stdin>" if path == "-" else path
    try:
        return read_bytes(path, label).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"not UTF-8 text: {error.reason} at byte {error.start}",
            path=label,
            help="save the file as UTF-8",
        ) from None


def print_answer(answer: Answer, file: IO[str], *, with_steps: bool = False) -> None:
    """The answer, its evidence and, if wanted, the plan and every step."""
    from rich.text import Text

    console = new_console(file=file)

    def head(text: str) -> None:
        console.print(Text(text, style="bold"))

    if with_steps:
        head("Plan")
        console.print(Text(answer.plan))
        for step in answer.steps:
            console.print()
            how = "computed" if step.is_native else _context(step.context, step.coverage)
            console.print(
                Text.assemble((step.output, "bold"), f" = {step.action} ", (f"({how})", "dim"))
            )
            console.print(Text(step.text))
        console.print()
        head("Answer")
    console.print(Text(answer.text))
    console.print()
    if answer.method == "direct":
        console.print(Text("Answered directly: no valid plan could be had.", style="yellow"))
    head("Evidence" if answer.evidence else "Evidence: none; no step quotes the document")
    for number, evidence in enumerate(answer.evidence, start=1):
        where = f"{evidence.source}, characters {evidence.source_span.start:,}-{evidence.source_span.end:,}; {', '.join(evidence.steps)}"
        console.print(
            Text.assemble(f"[{number}] ", " ".join(evidence.text.split()), (f"  ({where})", "dim"))
        )
    if answer.coverage is not None and answer.coverage < 1:
        read = f"Read: {100 * answer.coverage:.3g} % of the document, the passages that match best"
        console.print(Text(read, style="yellow"))
    for step_name, quote in answer.unverified:
        console.print(
            Text.assemble(("not in the document: ", "bold red"), quote, (f"  ({step_name})", "dim"))
        )


def _context(context: str, coverage: float | None) -> str:
    if coverage is None:
        return "from earlier steps"
    shown = "100" if coverage == 1 else f"{100 * coverage:.3g}"
    return f"{context}, {shown} % of the document"


def counted(n: int, thing: str) -> str:
    """How many there are of a thing.

    Example:
        >>> counted(1, "row"), counted(1_200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


REPORT_S = 60.0
"""Seconds between lines where nobody looks at a terminal."""


class Reporter:
    """Progress on stderr: on a terminal how far, and what is being waited for; else a line a minute."""

    def __init__(self, total: int | None, *, enabled: bool = True) -> None:
        self._total = total
        self._enabled = enabled and sys.stderr.isatty()
        self._n_done = self._n_failed = 0
        self._began = self._told_at = monotonic()
        self._progress: Progress | None = None
        self._bar: TaskID | None = None
        self._streams = ExitStack()

    def __enter__(self) -> Self:
        if self._enabled:
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )

            columns = [BarColumn(), MofNCompleteColumn()] if self._total != 1 else []
            self._progress = Progress(
                *columns, TimeElapsedColumn(), TextColumn("{task.description}", markup=False),
                console=new_console(err=True), transient=True, redirect_stdout=False,
            )  # fmt: skip
            self._bar = self._progress.add_task(
                "starting" if self._total == 1 else "", total=self._total
            )
            self._show()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._hide()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the progress off the screen while something is printed on stdout."""
        self._hide()
        try:
            yield
        finally:
            self._show()

    def _show(self) -> None:
        if self._progress is not None:
            self._progress.start()
            # What is said on stderr meanwhile goes through the progress, which would read its codes.
            self._streams.enter_context(escaped_streams())

    def _hide(self) -> None:
        if self._progress is not None:
            self._streams.close()
            self._progress.stop()

    def advance(self, *, is_failure: bool = False) -> None:
        """One more task is done."""
        self._n_done += 1
        self._n_failed += is_failure
        if self._progress is not None and self._bar is not None:
            self._progress.advance(self._bar)
        elif monotonic() - self._told_at >= REPORT_S:
            self._told_at = monotonic()
            of = "" if self._total is None else f" of {self._total:,}"
            failed = f", {self._n_failed:,} failed" if self._n_failed else ""
            minutes = (self._told_at - self._began) / 60
            print(f"pearl: {self._n_done:,}{of} done{failed}, {minutes:.0f} min", file=sys.stderr)  # noqa: T201

    def __call__(self, id: str, event: Event) -> None:
        """Say what a task is waiting for."""
        if self._progress is None or self._bar is None:
            return
        match event.event:
            case "plan_attempted":
                waiting = "running the plan" if not event.diagnostics else (
                    f"{len(event.diagnostics)} problems in the plan: waiting for the model to mend it"
                )  # fmt: skip
            case "run_started":
                waiting = f"running the plan with {event.model}"
            case "step_started":
                waiting = f"{event.step} = {event.action}: waiting for the model"
            case "model_waited":
                waiting = f"{event.reason}: trying again in {event.wait_s:.0f} s"
            case _:
                return
        self._progress.update(self._bar, description=f"{id}: {waiting}" if id else waiting)
