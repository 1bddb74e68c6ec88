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
    from rich.text import Text

    from pearl.llm.prices import Price
    from pearl.trace import Event, ModelProgressed, ModelWaited, StepFinished

FIRST_LINE_S = 10.0  # Seconds to the first line, and between lines, if stderr is not a terminal
LINES_S = 60.0  # Maximum seconds between lines: a tenth of the duration so far, within these limits


def _is_over(event: Event) -> bool:
    """Whether nothing runs after the event: the task has ended, or its plan is written but not started."""
    if event.event == "plan_attempted":
        return not event.diagnostics
    return event.event in ("run_finished", "plan_failed")


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
        self._tasks: dict[str, PlanSection] = {}
        self._watched = PlanSection(reads_plan=not is_private(), price=price)
        self._lock = threading.Lock()
        self._began = monotonic()
        self._is_over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._live: Live | None = None
        self._bar: Progress | None = None
        self._streams = ExitStack()

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and not (console := new_console(err=True)).is_dumb_terminal:
            from rich.live import Live

            if self._total != 1:
                self._bar = _new_bar(console, self._total)
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
        if self._live is not None and self._tells_plans and self._watched.steps:
            console = self._live.console
            for line in Screen(self._watched, console).lines(is_over=True):
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

    def _drawn(self, console: Console) -> RenderableType:
        """The display: the steps of a single task, or a bar with what a task is doing."""
        from rich.console import Group

        if self._bar is not None:
            self._bar.update(
                self._bar.task_ids[0], description=self._doing(), completed=self._n_done
            )
            return self._bar
        with self._lock:
            return Group(*Screen(self._watched, console).lines())

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
        if self._live is not None and self._total == 1:
            with self._lock:
                self._watched.note(event)
            return
        if event.event == "run_started" and self._tells_plans and event.method == "plan":
            self._tell(event.plan)
        with self._lock:
            if _is_over(event):
                self._tasks.pop(id, None)
            else:
                if id not in self._tasks:
                    self._tasks[id] = PlanSection()
                self._tasks[id].note(event)

    def _doing(self) -> str:
        """The activity of the task whose activity has lasted longest."""
        with self._lock:
            if not self._tasks:
                return ""
            id, section = min(self._tasks.items(), key=lambda each: each[1].current.since or 0.0)
            # Ids of rows are text of the data.
            return f"{id}: {section.activity}" if id and not is_private() else section.activity

    def _tell(self, plan: str) -> None:
        """Print a plan, once."""
        if plan in self._reported_plans:
            return
        self._reported_plans.add(plan)
        if self._live is not None:
            from rich.text import Text

            self._live.console.print(Text(f"{plan}\n"))
        else:
            print(f"{plan}\n", file=sys.stderr)  # noqa: T201
        if self._total != 1 and _goes_through_documents(plan):
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
            return doing or f"starting, {duration_text(monotonic() - self._began)}"
        of = "" if self._total is None else f" of {self._total:,}"
        failed = f", {self._n_failed:,} failed" if self._n_failed else ""
        done = f"{self._n_done:,}{of} done{failed}, {duration_text(monotonic() - self._began)}"
        return f"{done}; {doing}" if doing else done


def _goes_through_documents(text: str) -> bool:
    from pearl.actions.operators import operators
    from pearl.dsl.nodes import Reference, String
    from pearl.dsl.parser import read
    from pearl.dsl.signatures import CTX

    plan, whole = read(text).plan, (Reference(CTX), String("document"))
    names = {name for name, action in operators().items() if "splits" in action.traits}
    return plan is not None and any(s.action in names and s.arguments == whole for s in plan.steps)


def _new_bar(console: Console, total: int | None) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    described = TextColumn("{task.description}", markup=False)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), described)
    bar = Progress(*columns, console=console)
    bar.add_task("", total=total)
    return bar


State = Literal[
    "waiting", "running", "done", "nothing", "undecided", "degraded", "refused", "failed", "not_needed"
]  # fmt: skip
"""State of a step; `nothing` means that it found nothing."""

SLOW_S = 20.0  # Seconds without progress of a call before its silence is reported
MAX_WORDS = 500  # Maximum characters of a call, a reason or a diagnostic

PARTS = {
    "plan": "writing the plan",
    "choose": "choosing an option",
    "mine": "drafting actions",
    "refine": "merging drafts",
}
"""Purpose of a call outside of steps → its description."""


class Row(Struct):
    """One line of the screen: a step, or the work before and after the steps."""

    title: str
    inputs: tuple[str, ...] = ()
    state: State = "waiting"
    since: float | None = None
    took_s: float | None = None
    usage: Usage = field(default_factory=Usage)
    n_calls: int = 0
    n_kept: int = 0
    past: str = ""
    note: str = ""
    tail: str = ""
    _heard: float = 0.0
    _wait_ends: float = 0.0
    _wait_why: str = ""

    def begin(self) -> None:
        """Mark the row as running."""
        self._heard = monotonic()
        if self.state != "running":
            self.state, self.since, self.took_s = "running", self._heard, None

    def end(self, state: State, took_s: float | None = None) -> None:
        """Mark the row as ended."""
        if took_s is None:
            took_s = 0.0 if self.since is None else monotonic() - self.since
        self.state, self.took_s, self.tail, self._wait_why = state, took_s, "", ""

    def hear(self, event: ModelProgressed) -> None:
        """Note progress of a call."""
        self.begin()
        self.note, self._wait_why = progress_text(event), ""
        self.tail = event.text and ("" if is_private() else event.text)

    def wait(self, event: ModelWaited) -> None:
        """Note that a call waits."""
        self.begin()
        tried = ""
        if event.n_attempts > 1:
            tried = f", retry {event.attempt} of {event.n_attempts - 1}"
        self._wait_ends = monotonic() + event.wait_s
        self._wait_why, self.tail = f"{tried}: {event.reason[:MAX_WORDS]}", ""

    def add(self, usage: Usage, *, is_kept: bool = False) -> None:
        """Count a reply."""
        self.usage += usage
        self.n_calls += 1
        self.n_kept += is_kept
        self.note, self.tail, self._heard = "", "", monotonic()

    @property
    def lasted_s(self) -> float:
        """Seconds since the start, up to the end if it has ended."""
        if self.took_s is not None:
            return self.took_s
        return 0.0 if self.since is None else monotonic() - self.since

    @property
    def doing(self) -> str:
        """The current activity, or the reason for waiting."""
        if self.state != "running":
            return self.note
        now = monotonic()
        if self._wait_why:
            return f"waits {max(0.0, self._wait_ends - now):.0f} s{self._wait_why}"
        texts = [text for text in (self.past, self.note) if text]
        if self.n_calls > 1 and not self.past:
            texts.insert(0, f"{counted(self.n_calls, 'call')} done")
        if (silent_s := now - self._heard) >= SLOW_S:
            texts.append(f"no progress for {duration_text(silent_s)}")
        return "; ".join(texts)

    @property
    def is_slow(self) -> bool:
        """Whether the row waits, or its call shows no progress."""
        is_silent = monotonic() - self._heard >= SLOW_S
        return self.state == "running" and bool(self._wait_why or is_silent)


class PlanSection(Struct):
    """The display of one plan: writing it, its steps, the work after them, and the cost."""

    reads_plan: bool = False
    price: Price | None = None
    began: float = field(default_factory=lambda: monotonic())
    parts: dict[str, Row] = {}
    steps: dict[str, Row] = {}
    names: tuple[str, ...] = ()
    current: Row = field(default_factory=lambda: Row("starting", since=monotonic()))

    @property
    def activity(self) -> str:
        """What the task is doing, in one line."""
        doing = f", {self.current.doing}" if self.current.doing else ""
        return f"{self.current.title}{doing}, {duration_text(self.current.lasted_s)}"

    def waits_for(self, row: Row) -> list[str]:
        """The missing inputs of a waiting step."""
        rows = ((name, self.steps.get(name)) for name in row.inputs)
        return [name for name, each in rows if each and each.state in {"waiting", "running"}]

    def note(self, event: Event) -> None:
        """Process an event of this plan."""
        match event.event:
            case "model_progressed":
                self.current = self._called(event)
                self.current.hear(event)
            case "model_waited":
                self.current = self.steps.get(event.step) or self._last() or self.current
                self.current.wait(event)
            case "model_called" | "call_failed" if row := self.steps.get(event.step):
                is_kept = event.event == "model_called" and event.is_remembered
                row.add(event.usage, is_kept=is_kept)
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
                self.current = Row(f"running the plan with {event.model}", since=monotonic())
                # Rows exist on a screen only; a line of text needs just the names of the steps.
                plan = read(event.plan).plan if self.reads_plan else None
                for number, step in enumerate(plan.steps if plan else (), start=1):
                    inputs = tuple(each.name for each in step.references())
                    self.steps[step.output] = Row(print_step(step, number)[:MAX_WORDS], inputs)
            case "step_started":
                self.current = self._step(event.step, event.action)
                self.current.begin()
            case "step_finished":
                self._step(event.step, event.action).end(_state(event), event.duration_s)
                self.steps[event.step].usage = event.usage
            case "step_failed":
                row = self._step(event.step, "")
                row.note = _first_line(event.error)
                row.end("failed")
            case "option_chosen":
                self._end("choose", event.usage)

    def _step(self, output: str, action: str) -> Row:
        """Return the row of a step, and add one for a step that only the optimised plan has."""
        if output not in self.steps:
            at = self.names.index(output) + 1 if output in self.names and not self.reads_plan else 0
            place = f"step {at} of {len(self.names)}" if at else ""
            name = "" if is_private() else f"{output} = {action}"  # words of a model
            self.steps[output] = Row(": ".join(filter(None, (place, name))) or "a step")
        return self.steps[output]

    def _called(self, event: ModelProgressed) -> Row:
        if event.purpose == "step" or event.purpose == "combine":
            return self._step(event.step, "")
        row = self._part(event.purpose)
        if event.purpose == "plan":
            row.title = f"{PARTS['plan']} (attempt {event.attempt})"
        return row

    def _part(self, purpose: str) -> Row:
        return self.parts.setdefault(purpose, Row(PARTS[purpose]))

    def _last(self) -> Row | None:
        """The latest running part: a call that waits outside of steps belongs to it."""
        return next((r for r in reversed(self.parts.values()) if r.state == "running"), None)

    def _end(self, purpose: str, usage: Usage) -> None:
        row = self._part(purpose)
        row.add(usage)
        row.end("done")

    def figures(self, usage: Usage) -> list[str]:
        """The tokens and, if the price is known, the cost, as texts; [] if nothing was spent."""
        if not usage.n_tokens:
            return []
        tokens = counted(usage.n_tokens, "token")
        if self.price is None:
            return [tokens]
        from pearl.llm.prices import money

        return [tokens, money(self.price.cost_usd(usage))]


def _first_line(message: str) -> str:
    """The first line of a message; "" in a private run, as it may quote content."""
    return "" if is_private() else message.strip().partition("\n")[0][:MAX_WORDS]


def _state(event: StepFinished) -> State:
    if event.state == "found":
        return "degraded" if event.truncated else "done"
    return event.state


def progress_text(event: ModelProgressed) -> str:
    """The progress of a call as text; "" for none."""
    match event.phase:
        case "asked":
            return ""
        case "loading":
            return "loading the model"
        case "reading" | "embedding":
            what = "tokens" if event.phase == "reading" else "sentences"
            return f"{event.phase} {event.n_tokens:,} of {event.n_total or 0:,} {what}"
        case "writing":
            return f"{counted(event.n_tokens, 'token')}"


def duration_text(s: float) -> str:
    """A duration as text.

    Example:
        >>> duration_text(119.6), duration_text(600)
        ('119 s', '10 min')
    """
    return f"{int(s)} s" if s < 120 else f"{s / 60:.0f} min"


MAX_WIDTH = 120  # Maximum cells of a line: in a wide terminal figures would be far from their steps
NARROW = 60  # Cells of a line below which a step shows only the first of its figures
MAX_TAIL_LINES = 2  # Maximum lines of the reply that is being written

_SPINNER, _ASCII_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/"

FRAMES_A_S = 8  # frames of the spinner per second

_LOOKS: dict[State, tuple[str, str, str, str]] = {
    "waiting": ("·", ".", "dim", ""),
    "running": ("", "", "cyan", ""),
    "done": ("✓", "+", "green", ""),
    "nothing": ("–", "-", "yellow", "nothing found"),
    "undecided": ("?", "?", "yellow", "undecided"),
    "degraded": ("!", "!", "yellow", "degraded"),
    "refused": ("✗", "x", "red", "refused"),
    "failed": ("✗", "x", "red", "failed"),
    "not_needed": ("·", ".", "dim", "not needed"),
}
"""State → mark, its mark in ASCII, style and word."""


class Screen:
    """Draws the state of a plan as single terminal lines."""

    def __init__(self, section: PlanSection, console: Console) -> None:
        self._section = section
        self._console = console
        # The last cell stays free: terminals differ in what they do with a full line.
        self._width = max(1, min(console.width - 1, MAX_WIDTH))
        self._is_rich = console.encoding.lower().startswith("utf")
        self._overflow: OverflowMethod = "ellipsis" if self._is_rich else "crop"

    def lines(self, *, is_over: bool = False) -> list[Text]:
        """The lines of all steps and the total; one line while the plan runs if they do not fit the screen."""
        section, steps = self._section, self._section.steps
        done = sum(row.state not in {"waiting", "running"} for row in steps.values())
        n_done = f"{done:,} of {counted(len(steps), 'step')}" if steps else ""
        usage = sum((row.usage for row in (*section.parts.values(), *steps.values())), Usage())
        duration = duration_text(monotonic() - section.began)
        total = self._line(
            ", ".join(filter(None, [n_done, duration, *section.figures(usage)])), "dim"
        )
        parts = dict(section.parts)
        after = [choice] if (choice := parts.pop("choose", None)) else []
        rows = (*parts.values(), *steps.values(), *after)
        body = [line for row in rows for line in self._row(row)]
        if not is_over and self._console.height < 3:
            return [total]
        # Two lines are for the total, and the cursor.
        if not is_over and len(body) > max(1, self._console.height - 2):
            running = ", ".join(name for name, row in steps.items() if row.state == "running")
            text = n_done or "planning"
            body = [self._line(f"{text}; running: {running}" if running else text)]
        return [*body, total]

    def _row(self, row: Row) -> list[Text]:
        """The line of a step, and lines with its activity and reply below."""
        from rich.text import Text

        mark, ascii_mark, colour, word = _LOOKS[row.state]
        if row.state == "running":
            frames = _SPINNER if self._is_rich else _ASCII_SPINNER
            mark = ascii_mark = frames[int(monotonic() * FRAMES_A_S) % len(frames)]
        figures = [word] if word else []
        if row.state == "waiting":
            needs = self._section.waits_for(row)
            figures += [f"needs {', '.join(needs)}"] if needs else []
        else:
            if row.state == "running" or row.n_calls or row.lasted_s >= 1:
                figures.append(duration_text(row.lasted_s))
            figures += self._section.figures(row.usage)
            if row.n_kept and row.n_kept == row.n_calls:
                figures.append("kept")
        shown = self._clean(", ".join(figures[:1] if self._width < NARROW else figures))
        right = Text(shown, colour if word else "dim")
        right.truncate(self._width // 2, overflow=self._overflow)
        title = Text(
            self._clean(row.title), {"waiting": "dim", "running": "bold"}.get(row.state, "")
        )
        title.truncate(max(0, self._width - 3 - right.cell_len), overflow=self._overflow, pad=True)
        first = Text.assemble(
            (mark if self._is_rich else ascii_mark, colour), " ", title, " ", right
        )
        first.truncate(self._width)
        lines = [first]
        if doing := row.doing:
            is_bad = row.is_slow or row.state == "failed"
            lines.append(self._line(f"  {self._clean(doing)}", "yellow" if is_bad else "dim"))
        if row.tail:
            tail = Text(self._clean(row.tail)).wrap(self._console, max(1, self._width - 2))
            lines += [
                self._line(f"  {line.plain}", "italic dim") for line in tail[-MAX_TAIL_LINES:]
            ]
        return lines

    def _line(self, text: str, style: str = "") -> Text:
        from rich.text import Text

        line = Text(text, style, no_wrap=True, overflow=self._overflow)
        line.truncate(self._width)
        return line

    def _clean(self, text: str) -> str:
        """One line without control characters or characters that the terminal cannot show."""
        encoding = self._console.encoding
        return escaped(" ".join(text.split())).encode(encoding, "backslashreplace").decode(encoding)
