"""Progress on stderr: current activity, tokens and waits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Literal, Self

from msgspec import Struct, field

from pearl.cli.terminal import escaped_streams, new_console, notice
from pearl.errors.escaping import counted, escaped
from pearl.errors.privacy import is_private
from pearl.llm import Usage

if TYPE_CHECKING:
    from rich.console import Console, OverflowMethod, RenderableType
    from rich.live import Live
    from rich.progress import Progress
    from rich.table import Table

    from pearl.llm.prices import Price
    from pearl.trace import Event, ModelProgressed, ModelWaited

FIRST_LINE_S = 10.0  # Seconds to the first line, and between lines, if stderr is not a terminal
LINES_S = 60.0  # Maximum seconds between lines: a tenth of the duration so far, within these limits


class Reporter:
    """Reports on stderr: on a terminal the steps of a single task, or a bar; elsewhere lines, fewer in long runs."""

    hears_attempts = False

    def __init__(
        self, total: int | None, *, tells_plans: bool = False, price: Price | None = None
    ) -> None:
        self._total = total
        self._tells_plans = tells_plans and not is_private()
        self._reported_plans: set[str] = set()
        self._n_done = self._n_failed = 0
        self._tasks: dict[str, PlanProgress] = {}
        self._only = PlanProgress(price=price)
        self._lock = threading.Lock()
        self._began = monotonic()
        self._is_over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._live: Live | None = None
        self._bar: Progress | None = None
        self._streams = ExitStack()

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and not (console := new_console(err=True)).is_dumb_terminal:
            from rich import progress
            from rich.live import Live

            self._only.reads_plan = not is_private()
            if self._total != 1:
                self._bar = progress.Progress(
                    progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn(),
                    progress.TextColumn("{task.description}", markup=False), console=console,
                )  # fmt: skip
                self._bar.add_task("", total=self._total)
            self._live = Live(
                console=console, transient=True, redirect_stdout=False,
                get_renderable=lambda: self._drawn(console), refresh_per_second=FRAMES_A_S,
            )  # fmt: skip
            self._show()
        else:
            # A thread, because a model in this process blocks the event loop.
            self._ticker = threading.Thread(target=self._tick, name="progress", daemon=True)
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._ticker is not None:
            self._ticker.join()
        self._hide()
        if self._live is not None and self._tells_plans and self._only.steps:
            self._live.console.print(self._only.drawn(self._live.console))
            self._live.console.print()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Hide the progress while something is printed to stdout."""
        self._hide()
        try:
            yield
        finally:
            self._show()

    def _drawn(self, console: Console) -> RenderableType:
        """The display: the steps of a single task, or a bar with what a task is doing."""
        if self._bar is not None:
            self._bar.update(
                self._bar.task_ids[0], description=self._doing(), completed=self._n_done
            )
            return self._bar
        with self._lock:
            table = self._only.drawn(console)
            if len(console.render_lines(table)) >= console.height:
                table = self._only.drawn(console, is_short=True)
            return table

    def _show(self) -> None:
        if self._live is not None:
            self._live.start()
            # Rich redirects stderr, and would interpret codes in what others print there.
            self._streams.enter_context(escaped_streams())

    def _hide(self) -> None:
        if self._live is not None:
            self._streams.close()
            self._live.stop()

    def advance(self, *, is_failure: bool = False) -> None:
        """Count a finished task."""
        self._n_done += 1
        self._n_failed += is_failure

    def __call__(self, id: str, event: Event) -> None:
        """Process an event of a task."""
        is_told = self._tells_plans and (self._live is None or self._bar is not None)
        if is_told and event.event == "run_started" and event.method == "plan":
            self._tell(event.plan)
        with self._lock:
            if self._total == 1:
                self._only.note(event)
            elif event.event in ("run_finished", "plan_failed") or (
                event.event == "plan_attempted" and not event.diagnostics  # valid, not yet run
            ):
                self._tasks.pop(id, None)
            else:
                if id not in self._tasks:
                    self._tasks[id] = PlanProgress()
                self._tasks[id].note(event)

    def _doing(self) -> str:
        """The activity of the task whose activity has lasted longest."""
        with self._lock:
            if self._total == 1:
                return self._only.activity
            if not self._tasks:
                return ""
            id, task = min(self._tasks.items(), key=lambda each: each[1].current.since)
            # Ids of rows are text of the data.
            return f"{id}: {task.activity}" if id and not is_private() else task.activity

    def _tell(self, plan: str) -> None:
        """Print a plan, once; give notice if it goes through all documents but is run on each by itself."""
        if plan in self._reported_plans:
            return
        self._reported_plans.add(plan)
        if self._live is not None:
            from rich.text import Text

            self._live.console.print(Text(f"{plan}\n"))
        else:
            print(f"{plan}\n", file=sys.stderr)  # noqa: T201
        if self._total == 1:
            return
        from pearl.actions.operators import operators
        from pearl.dsl.nodes import Reference, String
        from pearl.dsl.parser import read
        from pearl.dsl.signatures import CTX

        read_plan, whole = read(plan).plan, (Reference(CTX), String("document"))
        splits = {name for name, action in operators().items() if "splits" in action.traits}
        steps = read_plan.steps if read_plan else ()
        if any(step.action in splits and step.arguments == whole for step in steps):
            told = "each document is asked by itself, but the plan goes through all of them: --together gives one answer"
            notice(told)

    def _tick(self) -> None:
        wait_s = FIRST_LINE_S
        with suppress(OSError, ValueError):  # the reader of stderr has left
            while not self._is_over.wait(wait_s):
                print(f"pearl: {self._line()}", file=sys.stderr, flush=True)  # noqa: T201
                lasted_s = monotonic() - self._began
                wait_s = max(FIRST_LINE_S, min(LINES_S, lasted_s / 10))

    def _line(self) -> str:
        doing = self._doing()
        if self._total == 1:
            return doing
        of = "" if self._total is None else f" of {self._total:,}"
        failed = f", {self._n_failed:,} failed" if self._n_failed else ""
        done = f"{self._n_done:,}{of} done{failed}, {duration_text(monotonic() - self._began)}"
        return f"{done}; {doing}" if doing else done


State = Literal[
    "waiting", "running", "done", "nothing", "undecided", "degraded", "refused", "failed", "not_needed"
]  # fmt: skip
"""State of a step; `nothing` means that it found nothing."""

SLOW_S = 20.0  # Seconds without progress of a call before its silence is reported
MAX_TOLD = 200  # Maximum characters of a call, a reason or a diagnostic

PARTS = {
    "plan": "writing the plan",
    "choose": "choosing an option",
    "mine": "drafting actions",
    "refine": "merging drafts",
}
"""Purpose of a call outside of steps → its description."""


class Row(Struct):
    """A step, or the work before and after the steps."""

    title: str
    inputs: tuple[str, ...] = ()
    state: State = "waiting"
    since: float = field(default_factory=lambda: monotonic())
    took_s: float | None = None
    usage: Usage = field(default_factory=Usage)
    n_calls: int = 0
    past: str = ""
    note: str = ""
    tail: str = ""
    wait_why: str = ""
    _wait_ends: float = 0.0
    _heard: float = 0.0

    def begin(self) -> None:
        """Mark the row as running."""
        self._heard = monotonic()
        if self.state != "running":
            self.state, self.since, self.took_s = "running", self._heard, None

    def end(self, state: State, took_s: float | None = None) -> None:
        """Mark the row as ended."""
        if took_s is None:
            took_s = 0.0 if self.state == "waiting" else self.lasted_s
        self.state, self.took_s, self.tail, self.wait_why = state, took_s, "", ""

    def hear(self, event: ModelProgressed) -> None:
        """Note progress of a call."""
        self.begin()
        self.wait_why = ""
        self.tail = event.text and ("" if is_private() else event.text)
        match event.phase:
            case "asked":
                self.note = ""
            case "loading":
                self.note = "loading the model"
            case "reading" | "embedding":
                what = "tokens" if event.phase == "reading" else "sentences"
                self.note = f"{event.phase} {event.n_tokens:,} of {event.n_total or 0:,} {what}"
            case "writing":
                self.note = counted(event.n_tokens, "token")

    def wait(self, event: ModelWaited) -> None:
        """Note that a call waits."""
        self.begin()
        tried = ""
        if event.n_attempts > 1:
            tried = f", retry {event.attempt} of {event.n_attempts - 1}"
        self._wait_ends = monotonic() + event.wait_s
        self.wait_why, self.tail = f"{tried}: {event.reason[:MAX_TOLD]}", ""

    def add(self, usage: Usage) -> None:
        """Count a reply."""
        self.usage += usage
        self.n_calls += 1
        self.note, self.tail, self._heard = "", "", monotonic()

    @property
    def lasted_s(self) -> float:
        """Seconds since the start, up to the end if it has ended."""
        return monotonic() - self.since if self.took_s is None else self.took_s

    @property
    def doing(self) -> str:
        """The current activity, or the reason for waiting."""
        if self.state != "running":
            return self.note
        now = monotonic()
        if self.wait_why:
            return f"waits {max(0.0, self._wait_ends - now):.0f} s{self.wait_why}"
        texts = [text for text in (self.past, self.note) if text]
        if self.n_calls > 1 and not self.past:
            texts.insert(0, f"{counted(self.n_calls, 'call')} done")
        if (silent_s := now - self._heard) >= SLOW_S:
            texts.append(f"no progress for {duration_text(silent_s)}")
        return "; ".join(texts)


MAX_WIDTH = 120  # Maximum cells of a line: in a wide terminal figures would be far from their steps

_SPINNER, _ASCII_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/"

FRAMES_A_S = 8  # frames of the spinner per second

_LOOKS: dict[State, tuple[str, str, str]] = {
    "waiting": ("·.", "dim", ""),
    "running": (" ", "cyan", ""),  # A frame of the spinner replaces the mark
    "done": ("✓+", "green", ""),
    "nothing": ("–-", "yellow", "nothing found"),
    "undecided": ("??", "yellow", "undecided"),
    "degraded": ("!!", "yellow", "degraded"),
    "refused": ("✗x", "red", "refused"),
    "failed": ("✗x", "red", "failed"),
    "not_needed": ("·.", "dim", "not needed"),
}
"""State → its mark in Unicode and in ASCII, style and word."""


class PlanProgress(Struct):
    """The progress of one plan: writing it, its steps, the work after them, and the cost."""

    reads_plan: bool = False  # Rows of all steps exist on a screen only
    price: Price | None = None
    began: float = field(default_factory=lambda: monotonic())
    parts: dict[str, Row] = {}
    steps: dict[str, Row] = {}
    names: tuple[str, ...] = ()
    current: Row = field(default_factory=lambda: Row("starting"))

    @property
    def activity(self) -> str:
        """What the task is doing, in one line."""
        doing = f", {self.current.doing}" if self.current.doing else ""
        return f"{self.current.title}{doing}, {duration_text(self.current.lasted_s)}"

    def note(self, event: Event) -> None:
        """Process an event of this plan."""
        match event.event:
            case "model_progressed":
                if event.purpose in ("step", "combine"):
                    self.current = self._step(event.step, "")
                else:
                    self.current = self._part(event.purpose)
                if event.purpose == "plan":
                    self.current.title = f"{PARTS['plan']} (attempt {event.attempt})"
                self.current.hear(event)
            case "model_waited":
                # A call that waits outside of steps belongs to the latest running part.
                running = [part for part in self.parts.values() if part.state == "running"]
                self.current = self.steps.get(event.step) or (running or [self.current])[-1]
                self.current.wait(event)
            case "model_called" | "call_failed" if row := self.steps.get(event.step):
                row.add(event.usage)
            case "plan_attempted":
                row = self._part("plan")
                row.add(event.usage)
                n = len(event.diagnostics)
                if n:
                    first = _first_line(event.diagnostics[0])
                    row.past = f"{counted(n, 'problem')} in attempt {row.n_calls}"
                    row.past += f": {first}" if first else ""
                else:
                    tries = f" at attempt {row.n_calls}" if row.n_calls > 1 else ""
                    row.title = f"plan written{tries}"
                    row.end("done")
            case "plan_failed":
                self._part("plan").end("failed")
            case "run_started":
                from pearl.dsl.nodes import print_step
                from pearl.dsl.parser import read

                for part in self.parts.values():
                    if part.state == "running":
                        part.end("done")
                self.names = event.steps
                self.current = Row(f"running the plan with {event.model}")
                plan = read(event.plan).plan if self.reads_plan else None
                for number, step in enumerate(plan.steps if plan else (), start=1):
                    inputs = tuple(each.name for each in step.references())
                    self.steps[step.output] = Row(print_step(step, number)[:MAX_TOLD], inputs)
            case "step_started":
                self.current = self._step(event.step, event.action)
                self.current.begin()
            case "step_finished":
                row = self._step(event.step, event.action)
                found: State = "degraded" if event.truncated else "done"
                row.end(found if event.state == "found" else event.state, event.duration_s)
                row.usage = event.usage
            case "step_failed":
                row = self._step(event.step, "")
                row.note = _first_line(event.error)
                row.end("failed")
            case "option_chosen":
                row = self._part("choose")
                row.add(event.usage)
                row.end("done")

    def _step(self, output: str, action: str) -> Row:
        """Return the row of a step, and add one for a step that only the optimised plan has."""
        if output not in self.steps:
            at = self.names.index(output) + 1 if output in self.names and not self.reads_plan else 0
            place = f"step {at} of {len(self.names)}" if at else ""
            name = "" if is_private() else f"{output} = {action}"  # words of a model
            self.steps[output] = Row(": ".join(filter(None, (place, name))) or "a step")
        return self.steps[output]

    def _part(self, purpose: str) -> Row:
        return self.parts.setdefault(purpose, Row(PARTS[purpose]))

    def _spent(self, usage: Usage) -> list[str]:
        """The tokens and, if the price is known, the cost, as texts; [] if nothing was spent."""
        if not usage.n_tokens:
            return []
        from pearl.llm.prices import money

        cost = [] if self.price is None else [money(self.price.cost_usd(usage))]
        return [counted(usage.n_tokens, "token"), *cost]

    def _figures(self, row: Row) -> list[str]:
        """The state of a row in a word, how long it took and what it spent; for a waiting one what it needs."""
        if row.state == "waiting":
            inputs = [(name, self.steps.get(name)) for name in row.inputs]
            needs = [n for n, each in inputs if each and each.state in ("waiting", "running")]
            return [f"needs {', '.join(needs)}"] if needs else []
        # Steps that Python computes take milliseconds, which tell nothing.
        is_timed = row.state == "running" or row.n_calls or row.lasted_s >= 1
        took = duration_text(row.lasted_s) if is_timed else ""
        return [*filter(None, (_LOOKS[row.state][2], took)), *self._spent(row.usage)]

    def drawn(self, console: Console, *, is_short: bool = False) -> Table:
        """The rows and the total for a terminal; if `is_short`, only the rows that are running."""
        from rich.table import Table
        from rich.text import Text

        is_ascii = not console.encoding.lower().startswith("utf")

        def line(text: str, style: str = "", *, wraps: bool = False) -> Text:
            # Without characters that the terminal obeys or cannot show
            shown = escaped(" ".join(text.split())).encode(console.encoding, "backslashreplace")
            how: OverflowMethod = "fold" if wraps else "crop" if is_ascii else "ellipsis"
            return Text(shown.decode(console.encoding), style, no_wrap=not wraps, overflow=how)

        # The last cell stays free: terminals differ in what they do with a full line.
        width = max(1, min(console.width - 1, MAX_WIDTH))
        table = Table.grid(expand=True, padding=(0, 1, 0, 0), pad_edge=False)
        table.width = width
        table.add_column()
        table.add_column(ratio=1)
        table.add_column(justify="right", max_width=max(1, width // 2))
        parts = dict(self.parts)
        after = [choice] if (choice := parts.pop("choose", None)) else []
        rows = [*parts.values(), *self.steps.values(), *after]
        for row in rows:
            if is_short and row.state != "running":
                continue
            marks, style, word = _LOOKS[row.state]
            if row.state == "running":
                frames = _ASCII_SPINNER if is_ascii else _SPINNER
                marks = 2 * frames[int(monotonic() * FRAMES_A_S) % len(frames)]
            table.add_row(
                Text(marks[is_ascii], style),
                line(row.title, {"waiting": "dim", "running": "bold"}.get(row.state, "")),
                line(", ".join(self._figures(row)), style if word else "dim"),
            )
            if doing := row.doing:
                is_bad = row.wait_why or row.state == "failed"
                table.add_row("", line(doing, "yellow" if is_bad else "dim", wraps=True))
            if row.tail:
                table.add_row("", line(row.tail[-width:], "italic dim", wraps=True))
        done = sum(row.state not in ("waiting", "running") for row in self.steps.values())
        n_done = f"{done:,} of {counted(len(self.steps), 'step')}" if self.steps else ""
        usage = sum((row.usage for row in rows), Usage())
        spent = [duration_text(monotonic() - self.began), *self._spent(usage)]
        table.add_row("", line(n_done, "dim"), line(", ".join(spent), "dim"))
        return table


def _first_line(message: str) -> str:
    """The first line of a message; "" in a private run, as it may quote content."""
    return "" if is_private() else message.strip().partition("\n")[0][:MAX_TOLD]


def duration_text(s: float) -> str:
    """A duration as text.

    Example:
        >>> duration_text(119.6), duration_text(600)
        ('119 s', '10 min')
    """
    return f"{int(s)} s" if s < 120 else f"{s / 60:.0f} min"
