"""Progress on stderr: current activity, tokens and waits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Self

from pearl.cli.live import PARTS, Watched, how_chosen, how_far, lasted
from pearl.cli.terminal import escaped_streams, new_console
from pearl.errors.wording import counted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.progress import Progress, TaskID

    from pearl.llm.prices import Price
    from pearl.trace import Event, ModelProgressed, RunStarted

FIRST_LINE_S = 10.0
"""Seconds to the first line, and between lines, if stderr is not a terminal."""

LINES_S = 60.0
"""Seconds that these grow to in long runs, a tenth of what the run has taken."""

TICK_S = 1.0
"""Seconds between two updates of a terminal."""


@dataclass(slots=True)
class _Doing:
    """The activity of one task."""

    what: str = "starting"
    since: float = field(default_factory=monotonic)
    how_far: str = ""
    steps: tuple[str, ...] = ()
    actions: dict[str, str] = field(default_factory=dict)

    def note(self, event: Event) -> None:
        """Process an event."""
        match event.event:
            case "model_progressed":
                self._begin(self._call(event))
                self.how_far = how_far(event)
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
                pass

    def __str__(self) -> str:
        return f"{self.what}{self.how_far}, {lasted(monotonic() - self.since)}"

    def _begin(self, what: str) -> None:
        if what != self.what:
            self.what, self.since, self.how_far = what, monotonic(), ""

    def _call(self, event: ModelProgressed) -> str:
        match event.purpose:
            case "plan":
                return f"{PARTS['plan']} (attempt {event.attempt})"
            case "step":
                return self._step(event.step)
            case "combine":
                return f"{self._step(event.step)}, merging what its parts say"
            case _:
                return PARTS[event.purpose]

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


class Reporter:
    """Reports progress on stderr: in place on a terminal, else one line every ten seconds.

    On a terminal a single task is shown as its plans, step by step; several are a bar, and what the
    one does that has done the same for the longest. Elsewhere the lines become fewer in long runs,
    down to one a minute.
    """

    def __init__(
        self, total: int | None, *, tells_plans: bool = False, price: Price | None = None
    ) -> None:
        self._total = total
        self._tells_plans = tells_plans
        self._reported_plans: set[str] = set()
        self._n_done = self._n_failed = 0
        self._tasks: dict[str, _Doing] = {}
        self._watched = Watched(price)
        self._lock = threading.Lock()
        self._began = monotonic()
        self._is_over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._live: Live | None = None
        self._progress: Progress | None = None
        self._bar: TaskID | None = None
        self._streams = ExitStack()

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and not (console := new_console(err=True)).is_dumb_terminal:
            if self._total == 1:
                self._live = self._new_live(console)
            else:
                self._progress = _new_progress(console)
                self._bar = self._progress.add_task("", total=self._total)
            self._show()
        if self._live is None:  # which has a thread of its own
            # A thread, for nobody else is sure to have time: a model in this process takes all of it.
            self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._ticker is not None:
            self._ticker.join()
        self._hide()
        if self._live is not None and self._tells_plans and self._watched.is_run:
            from pearl.cli.screen import finished_lines

            console = self._live.console
            for line in finished_lines(self._watched, console.width, console.encoding):
                console.print(line)
            console.print()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the progress while something is printed to stdout."""
        self._hide()
        try:
            yield
        finally:
            self._show()

    def _new_live(self, console: Console) -> Live:
        from rich.console import Group
        from rich.live import Live

        from pearl.cli.screen import FRAMES_A_S, lines

        def drawn() -> RenderableType:
            size = console.size
            with self._lock:
                return Group(*lines(self._watched, size.width, size.height, console.encoding))

        return Live(
            console=console, transient=True, redirect_stdout=False, get_renderable=drawn,
            refresh_per_second=FRAMES_A_S,
        )  # fmt: skip

    @property
    def _display(self) -> Live | Progress | None:
        return self._live or self._progress

    def _show(self) -> None:
        if self._display is not None:
            self._display.start()
            # What is said on stderr meanwhile goes through the display, which would read its codes.
            self._streams.enter_context(escaped_streams())

    def _hide(self) -> None:
        if self._display is not None:
            self._streams.close()
            self._display.stop()

    def advance(self, *, is_failure: bool = False) -> None:
        """Count a finished task."""
        self._n_done += 1
        self._n_failed += is_failure
        if self._progress is not None and self._bar is not None:
            self._progress.advance(self._bar)

    def __call__(self, id: str, event: Event) -> None:
        """Process an event of a task."""
        if self._live is not None:
            with self._lock:
                self._watched.note(event)
            return
        if event.event == "run_started" and self._tells_plans:
            self._tell_plan(event)
        if event.event == "plan_chosen" and self._total == 1:
            self._say(f"pearl: {how_chosen(event)}")
        if event.plan_number is not None:  # plans of one question are run at the same time
            id = f"{id} plan {event.plan_number}".lstrip()
        with self._lock:
            if _is_over(event):
                self._tasks.pop(id, None)
            else:
                self._tasks.setdefault(id, _Doing()).note(event)
        if self._progress is not None and self._bar is not None:
            self._progress.update(self._bar, description=self._doing())

    def _doing(self) -> str:
        """What the task does that has done the same for the longest."""
        with self._lock:
            if not self._tasks:
                return ""
            id, doing = min(self._tasks.items(), key=lambda each: each[1].since)
            return f"{id}: {doing}" if id else str(doing)

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
            return doing or f"starting, {lasted(monotonic() - self._began)}"
        of = "" if self._total is None else f" of {self._total:,}"
        failed = f", {self._n_failed:,} failed" if self._n_failed else ""
        done = f"{self._n_done:,}{of} done{failed}, {lasted(monotonic() - self._began)}"
        return f"{done}; {doing}" if doing else done


def _new_progress(console: Console) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console, transient=True, redirect_stdout=False,
    )  # fmt: skip
