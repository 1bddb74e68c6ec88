"""Progress on stderr: current activity, tokens and waits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Self

from pearl.cli.terminal import escaped_streams, new_console
from pearl.errors.wording import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from pearl.trace import Event, ModelProgressed, PlanChosen, RunStarted

FIRST_LINE_S = 10.0
"""Seconds to the first line, and between lines, if stderr is not a terminal."""

LINES_S = 60.0
"""Seconds that these grow to in long runs, a tenth of what the run has taken."""

TICK_S = 1.0
"""Seconds between two updates of a terminal."""


@dataclass(slots=True)
class _Doing:
    """The activity of one task.

    Attributes:
        since: When it began, by the monotonic clock.
        how_far: Tokens of the call that is under way, in words.
        actions: Output of a step → its action.
    """

    what: str = "starting"
    since: float = field(default_factory=monotonic)
    how_far: str = ""
    steps: tuple[str, ...] = ()
    actions: dict[str, str] = field(default_factory=dict)

    def note(self, event: Event) -> bool:
        """Process an event; returns whether the activity changed."""
        match event.event:
            case "model_progressed":
                self._begin(self._call(event))
                self.how_far = _how_far(event)
            case "plan_attempted" if event.diagnostics:
                self._begin(f"{counted(len(event.diagnostics), 'problem')} in the plan")
            case "run_started":
                self.steps = event.steps
                self._begin(f"running the plan with {event.model}")
            case "step_started":
                self.actions[event.step] = event.action
                self._begin(self._step(event.step))
            case "model_waited":
                self._begin(f"waiting {event.wait_s:.0f} s because {event.reason}")
            case _:
                return False
        return True

    def __str__(self) -> str:
        return f"{self.what}{self.how_far}, {_lasted(monotonic() - self.since)}"

    def _begin(self, what: str) -> None:
        if what != self.what:
            self.what, self.since, self.how_far = what, monotonic(), ""

    def _call(self, event: ModelProgressed) -> str:
        match event.purpose:
            case "question":
                return "reading the question"
            case "plan":
                return f"writing the plan (attempt {event.attempt})"
            case "step":
                return self._step(event.step)
            case "combine":
                return f"{self._step(event.step)}, merging what its parts say"
            case "choose":
                return "choosing an option"
            case "mine":
                return "drafting actions"
            case "refine":
                return "merging drafts"

    def _step(self, output: str) -> str:
        at = self.steps.index(output) + 1 if output in self.steps else 0
        place = f"step {at} of {len(self.steps)}: " if at else ""
        return f"{place}{output} = {self.actions.get(output, '')}"


def _is_over(event: Event) -> bool:
    """Whether a task does nothing for now: it has ended, or a plan is there that is not run yet."""
    match event.event:
        case "run_finished" | "plan_failed" | "plans_compared":
            return True
        case "plan_attempted":
            return not event.diagnostics
        case _:
            return False


def _how_far(event: ModelProgressed) -> str:
    match event.phase:
        case "asked":
            return ""
        case "loading":
            return ", loading the model"
        case "reading":
            return f", reading {event.n_tokens:,} of {event.n_total or 0:,} tokens"
        case "embedding":
            return f", embedding {event.n_tokens:,} of {event.n_total or 0:,} sentences"
        case "writing":
            return f", {counted(event.n_tokens, 'token')}"


_WRITERS = {"rule": "rules", "example": "the nearest example", "model": "the model"}

_REASONS = {
    "only": "the only one",
    "agreement": "more than one agree",
    "likelihood": "by likelihood",
    "order": "nothing tells the better one",
}


def _how_chosen(event: PlanChosen) -> str:
    """Who wrote a plan, and why it was chosen.

    Example:
        >>> from pearl.trace import PlanChosen
        >>> _how_chosen(PlanChosen(by="rule", why="only", candidates=(), note="the model wrote no plan"))
        'plan by rules (the only one; the model wrote no plan)'
    """
    note = f"; {event.note}" if event.note else ""
    of = f" of {len(event.candidates)}" if len(event.candidates) > 1 else ""
    return f"plan by {_WRITERS[event.by]} ({_REASONS[event.why]}{of}{note})"


def _lasted(s: float) -> str:
    """How long something takes.

    Example:
        >>> _lasted(119.6), _lasted(600)
        ('119 s', '10 min')
    """
    return f"{int(s)} s" if s < 120 else f"{s / 60:.0f} min"


class Reporter:
    """Reports progress on stderr: in place on a terminal, else one line every ten seconds.

    In long runs the lines become fewer, down to one a minute.

    Args:
        total: Tasks there are, where that is known; a single one has no bar.
        tells_plans: Whether a plan is shown as soon as it is there, before it runs.
    """

    def __init__(self, total: int | None, *, tells_plans: bool = False) -> None:
        self._total = total
        self._tells_plans = tells_plans
        self._reported_plans: set[str] = set()
        self._n_done = self._n_failed = 0
        self._tasks: dict[str, _Doing] = {}
        self._latest = ""
        self._lock = threading.Lock()
        self._began = monotonic()
        self._is_over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._progress: Progress | None = None
        self._bar: TaskID | None = None
        self._streams = ExitStack()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
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
            first = "starting" if self._total == 1 else ""
            self._bar = self._progress.add_task(first, total=self._total)
            self._show()
        # A thread, for nobody else is sure to have time: a model in this process takes all of it.
        self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._ticker is not None:
            self._ticker.join()
        self._hide()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the progress while something is printed to stdout."""
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
        """Count a finished task."""
        self._n_done += 1
        self._n_failed += is_failure
        if self._progress is not None and self._bar is not None:
            self._progress.advance(self._bar)

    def __call__(self, id: str, event: Event) -> None:
        """Process an event of a task."""
        if event.event == "run_started" and self._tells_plans:
            self._tell_plan(event)
        if event.event == "plan_chosen" and self._total == 1:
            self._say(f"pearl: {_how_chosen(event)}")
        if event.plan_number is not None:  # plans of one question are run at the same time
            id = f"{id} plan {event.plan_number}".lstrip()
        with self._lock:
            if _is_over(event):
                self._tasks.pop(id, None)
            else:
                doing = self._tasks.get(id)
                if doing is None:
                    doing = self._tasks[id] = _Doing()
                if doing.note(event):
                    self._latest = id
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, description=self._doing())

    def _doing(self) -> str:
        """The activity of the most recently updated task."""
        with self._lock:
            doing = self._tasks.get(self._latest)
            if doing is None:
                return ""
            return f"{self._latest}: {doing}" if self._latest else str(doing)

    def _tell_plan(self, event: RunStarted) -> None:
        if event.method != "plan" or event.plan in self._reported_plans:
            return
        self._reported_plans.add(event.plan)
        self._say(f"{event.plan}\n")

    def _say(self, text: str) -> None:
        """Print a text that stays."""
        if self._progress is not None:
            from rich.text import Text

            self._progress.console.print(Text(text))
        else:
            print(text, file=sys.stderr)  # noqa: T201

    def _tick(self) -> None:
        if self._progress is not None and self._bar is not None:
            while not self._is_over.wait(TICK_S):
                if doing := self._doing():
                    self._progress.update(self._bar, description=doing)
            return
        wait_s = FIRST_LINE_S
        with suppress(OSError, ValueError):  # nobody reads stderr any more
            while not self._is_over.wait(wait_s):
                print(f"pearl: {self._line()}", file=sys.stderr, flush=True)  # noqa: T201
                lasted_s = monotonic() - self._began
                wait_s = max(FIRST_LINE_S, min(LINES_S, lasted_s / 10))

    def _line(self) -> str:
        doing = self._doing()
        if self._total == 1:
            return doing or f"starting, {_lasted(monotonic() - self._began)}"
        of = "" if self._total is None else f" of {self._total:,}"
        failed = f", {self._n_failed:,} failed" if self._n_failed else ""
        done = f"{self._n_done:,}{of} done{failed}, {_lasted(monotonic() - self._began)}"
        return f"{done}; {doing}" if doing else done
