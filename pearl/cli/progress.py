"""Progress on stderr: current activity, tokens and waits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from rich.cells import get_character_cell_size
from rich.text import Text

from pearl.cli.terminal import escaped_streams, new_console
from pearl.errors.escaping import counted, escaped
from pearl.llm import Usage

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.progress import Progress, TaskID

    from pearl.llm.prices import Price
    from pearl.trace import (
        Event,
        ModelProgressed,
        ModelWaited,
        PlanChosen,
        RunStarted,
        StepFinished,
    )

FIRST_LINE_S = 10.0
"""Seconds to the first line, and between lines, if stderr is not a terminal."""

LINES_S = 60.0
"""Maximum seconds between lines; they grow to a tenth of the run's duration."""

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
    """Whether a task is idle: it has ended, or its plan is written and not run yet."""
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
        """The activity of the task whose activity has lasted longest."""
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


State = Literal[
    "waiting", "running", "done", "nothing", "undecided", "degraded", "refused", "failed"
]
"""State of a step; `nothing` means that it found nothing."""

SLOW_S = 20.0
"""Seconds of silence of a call before it is reported."""

MAX_WORDS = 500
"""Maximum characters of a call, a reason or a diagnostic."""

PARTS = {
    "question": "reading the question",
    "plan": "writing the plan",
    "choose": "choosing an option",
    "mine": "drafting actions",
    "refine": "merging drafts",
}
"""Purpose of a call that belongs to no step → what it does."""


@dataclass(slots=True)
class Row:
    """One line of the screen: a step, or what is done before and after the steps."""

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
        self.note, self._wait_why = how_far(event).removeprefix(", "), ""
        self.tail = event.text

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
        """Seconds since it began, or that it took."""
        if self.took_s is not None:
            return self.took_s
        return 0.0 if self.since is None else monotonic() - self.since

    @property
    def doing(self) -> str:
        """The current activity, or the reason for waiting; "" for none."""
        if self.state != "running":
            return self.note
        now = monotonic()
        if self._wait_why:
            return f"waits {max(0.0, self._wait_ends - now):.0f} s{self._wait_why}"
        said = [each for each in (self.past, self.note) if each]
        if self.n_calls > 1 and not self.past:
            said.insert(0, f"{counted(self.n_calls, 'call')} done")
        if (silent_s := now - self._heard) >= SLOW_S:
            said.append(f"no news of the model for {lasted(silent_s)}")
        return "; ".join(said)

    @property
    def is_slow(self) -> bool:
        """Whether the row waits, or its call has been silent for long."""
        is_silent = monotonic() - self._heard >= SLOW_S
        return self.state == "running" and bool(self._wait_why or is_silent)


@dataclass(slots=True)
class PlanSection:
    """One plan: how it is written, its steps, and what follows them."""

    number: int | None
    parts: dict[str, Row] = field(default_factory=dict)
    steps: dict[str, Row] = field(default_factory=dict)

    def waits_for(self, row: Row) -> list[str]:
        """Outputs that a waiting step needs, and that are not there yet."""
        rows = ((name, self.steps.get(name)) for name in row.inputs)
        return [name for name, each in rows if each and each.state in {"waiting", "running"}]

    def note(self, event: Event) -> None:
        """Process an event of this plan."""
        match event.event:
            case "model_progressed":
                self._called(event).hear(event)
            case "model_waited":
                row = self.steps.get(event.step) or self._last()
                if row is not None:
                    row.wait(event)
            case "model_called" | "call_failed" if row := self.steps.get(event.step):
                is_kept = event.event == "model_called" and event.is_remembered
                row.add(event.usage, is_kept=is_kept)
            case "question_understood" | "question_routed":
                self._end("question", event.usage)
            case "plan_attempted":
                row = self._part("plan")
                row.add(event.usage)
                n = len(event.diagnostics)
                if n:
                    first = event.diagnostics[0].strip().partition("\n")[0][:MAX_WORDS]
                    row.past = f"{counted(n, 'problem')} in attempt {row.n_calls}: {first}"
                else:
                    tries = f" at attempt {row.n_calls}" if row.n_calls > 1 else ""
                    row.title = f"plan written{tries}"
                    row.end("done")
            case "plan_chosen":
                self._end("plan", event.usage, how_chosen(event))
            case "plan_failed":
                self._part("plan").end("failed")
            case "run_started":
                self._begin_run(event)
            case "step_started":
                self._step(event.step, event.action).begin()
            case "step_finished":
                self._step(event.step, event.action).end(_state(event), event.duration_s)
                self.steps[event.step].usage = event.usage
            case "step_failed":
                row = self._step(event.step, "")
                row.note = event.error.strip().partition("\n")[0][:MAX_WORDS]
                row.end("failed")
            case "option_chosen":
                self._end("choose", event.usage)
            case _:
                pass

    def _begin_run(self, event: RunStarted) -> None:
        from pearl.dsl.nodes import print_step
        from pearl.dsl.parser import read

        for part in self.parts.values():
            if part.state == "running":
                part.end("done")
        plan = read(event.plan).plan
        for number, step in enumerate(plan.steps if plan else (), start=1):
            inputs = tuple(each.name for each in step.references())
            self.steps[step.output] = Row(print_step(step, number)[:MAX_WORDS], inputs)

    def _step(self, output: str, action: str) -> Row:
        """A step, which a rewritten plan may have that the written one has not."""
        return self.steps.setdefault(output, Row(f"{output} = {action}"))

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
        """The part under way, whose call waits if no step's does."""
        return next((r for r in reversed(self.parts.values()) if r.state == "running"), None)

    def _end(self, purpose: str, usage: Usage, title: str = "") -> None:
        row = self._part(purpose)
        row.add(usage)
        row.title = title or row.title
        row.end("done")


class Watched:
    """All plans of one question, by number, and what they cost."""

    def __init__(self, price: Price | None = None) -> None:
        self._began = monotonic()
        self.sections: dict[int | None, PlanSection] = {}
        self._price = price

    def note(self, event: Event) -> None:
        """Process an event."""
        number = event.plan_number
        self.sections.setdefault(number, PlanSection(number)).note(event)

    @property
    def is_run(self) -> bool:
        """Whether a plan has started to run."""
        return any(section.steps for section in self.sections.values())

    @property
    def lasted_s(self) -> float:
        """Seconds since the beginning."""
        return monotonic() - self._began

    @property
    def rows(self) -> list[Row]:
        """All lines of all plans."""
        every = self.sections.values()
        return [row for each in every for row in (*each.parts.values(), *each.steps.values())]

    @property
    def usage(self) -> Usage:
        """Tokens of all replies so far."""
        return sum((row.usage for row in self.rows), Usage())

    def cost(self, usage: Usage) -> str:
        """The cost of tokens as text; "" if the price is unknown or nothing was spent."""
        if self._price is None or not usage.n_input_tokens + usage.n_output_tokens:
            return ""
        from pearl.llm.prices import money  # late: pydantic

        return money(self._price.cost_usd(usage))


def _state(event: StepFinished) -> State:
    if event.state == "found":
        return "degraded" if event.truncated else "done"
    return event.state


def how_far(event: ModelProgressed) -> str:
    """How far a call is, after what it does: begins with a comma, or is ""."""
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


def how_chosen(event: PlanChosen) -> str:
    """The author of a plan, and the reason of the choice.

    Example:
        >>> from pearl.trace import PlanChosen
        >>> how_chosen(PlanChosen(by="rule", why="only", candidates=(), note="the model wrote no plan"))
        'plan by rules (the only one; the model wrote no plan)'
    """
    note = f"; {event.note}" if event.note else ""
    of = f" of {len(event.candidates)}" if len(event.candidates) > 1 else ""
    return f"plan by {_WRITERS[event.by]} ({_REASONS[event.why]}{of}{note})"


def lasted(s: float) -> str:
    """How long something takes.

    Example:
        >>> lasted(119.6), lasted(600)
        ('119 s', '10 min')
    """
    return f"{int(s)} s" if s < 120 else f"{s / 60:.0f} min"


MIN_TITLE = 24
"""Cells of a step's call, before figures beside it are left out."""

MAX_WIDTH = 120
"""Cells of a line: in a wider terminal figures would be far from their steps."""

MAX_TAIL_LINES = 2
"""Lines of the reply that is being written."""

_SPINNER, _ASCII_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/"

FRAMES_A_S = 8


class _Look(NamedTuple):
    mark: str
    ascii_mark: str
    style: str
    word: str = ""


_LOOKS: dict[State, _Look] = {
    "waiting": _Look("·", ".", "dim"),
    "running": _Look("", "", "cyan"),
    "done": _Look("✓", "+", "green"),
    "nothing": _Look("–", "-", "yellow", "nothing found"),
    "undecided": _Look("?", "?", "yellow", "undecided"),
    "degraded": _Look("!", "!", "yellow", "degraded"),
    "refused": _Look("✗", "x", "red", "refused"),
    "failed": _Look("✗", "x", "red", "failed"),
}


def lines(watched: Watched, width: int, height: int, encoding: str) -> list[Text]:
    """The state of all plans as lines that fit the width and the height; the rest is summed up.

    Left out in this order: replies that are being written, steps that are done, steps that wait, what
    running steps do, all steps but for their number.
    """
    page = _Page(watched, width, encoding)
    room = max(1, height - 2)  # for the line below, and the cursor
    for level in range(len(_LEVELS)):
        body = list(page.body(level))
        if len(body) <= room:
            break
    if height < 3:
        return [page.total()]
    return [*body[:room], page.total()]


def finished_lines(watched: Watched, width: int, encoding: str) -> list[Text]:
    """The final lines: each step, and the total."""
    page = _Page(watched, width, encoding)
    return [*page.body(0), page.total()]


_LEVELS = ("all", "no tails", "done folded", "waiting folded", "no notes", "plans")


class _Page:
    def __init__(self, watched: Watched, width: int, encoding: str) -> None:
        self._watched = watched
        # The last cell stays free: terminals differ in what they do with a full line.
        self._width = max(1, min(width - 1, MAX_WIDTH))
        self._encoding = encoding
        self._is_rich = encoding.lower().startswith("utf")
        self._dots = "…" if self._is_rich else "..."

    def body(self, level: int) -> Iterator[Text]:
        """All lines but the total."""
        for section in self._watched.sections.values():
            if level == len(_LEVELS) - 1:
                yield self._folded(section)
                continue
            if section.number is not None:
                yield self._line(f"plan {section.number}", "bold")
            before = [row for key, row in section.parts.items() if key != "choose"]
            for row in before:
                yield from self._row(row, section, level)
            done = [r for r in section.steps.values() if r.state not in {"waiting", "running"}]
            failed = [row for row in done if row.state == "failed"]
            waiting = [r for r in section.steps.values() if r.state == "waiting"]
            if level >= 2 and len(done) - len(failed) > 1:
                n = counted(len(done) - len(failed), "step")
                yield self._marked("done", Text(f"{n} done"))
            for row in section.steps.values():
                is_folded = row.state in {"done", "nothing", "undecided", "degraded", "refused"}
                if level >= 2 and is_folded and len(done) - len(failed) > 1:
                    continue
                if level >= 3 and row.state == "waiting" and len(waiting) > 1:
                    continue
                yield from self._row(row, section, level)
            if level >= 3 and len(waiting) > 1:
                waits = counted(len(waiting), "step")
                yield self._marked("waiting", Text(f"{waits} waiting", "dim"))
            if "choose" in section.parts:
                yield from self._row(section.parts["choose"], section, level)

    def total(self) -> Text:
        """The last line: what is done, and what it took."""
        steps = [
            row for section in self._watched.sections.values() for row in section.steps.values()
        ]
        done = sum(row.state not in {"waiting", "running"} for row in steps)
        took = lasted(self._watched.lasted_s)
        usage = self._watched.usage
        said = [f"{done:,} of {counted(len(steps), 'step')}"] if steps else []
        said += [took, *_figures(usage.n_input_tokens + usage.n_output_tokens)]
        said += [cost] if (cost := self._watched.cost(usage)) else []
        return self._line(", ".join(said), "dim")

    def _folded(self, section: PlanSection) -> Text:
        """One line for a whole plan."""
        rows = section.steps
        running = [name for name, row in rows.items() if row.state == "running"]
        done = sum(row.state not in {"waiting", "running"} for row in rows.values())
        head = "" if section.number is None else f"plan {section.number}: "
        said = f"{head}{done:,} of {counted(len(rows), 'step')}" if rows else f"{head}planning"
        if running:
            said += f"; running: {', '.join(running)}"
        return self._line(said)

    def _row(self, row: Row, section: PlanSection, level: int) -> Iterator[Text]:
        """A line of a step, and what there is to say of it below."""
        look = _LOOKS[row.state]
        needs = section.waits_for(row) if row.state == "waiting" else []
        said = [look.word] if look.word else []
        if needs:
            said = [f"needs {', '.join(needs)}"]
        if row.state != "waiting":
            said += [lasted(row.lasted_s)] if row.state == "running" or row.n_calls else []
            if not row.n_calls and row.state != "running":
                said += [lasted(row.lasted_s)] if row.lasted_s >= 1 else []
            n = row.usage.n_input_tokens + row.usage.n_output_tokens
            said += _figures(n)
            said += [cost] if (cost := self._watched.cost(row.usage)) else []
            if row.n_kept and row.n_kept == row.n_calls:
                said.append("kept")
        title, width = self._clean(row.title), self._width - 2
        room = max(MIN_TITLE, width // 2)
        # The first figures matter most; the others need room beside the call.
        while len(said) > 1 and cells(", ".join(said)) + 2 + min(cells(title), room) > width:
            said.pop()
        right = self._cut(self._clean(", ".join(said)), max(0, width - 12))
        left = self._cut(title, width - (cells(right) + 2 if right else 0))
        gap = " " * (width - cells(left) - cells(right))
        style = "dim" if row.state == "waiting" else "bold" if row.state == "running" else ""
        told = Text.assemble((left, style))
        if right:
            told.append(gap)
            told.append(right, look.style if look.word else "dim")
        yield self._marked(row.state, told)
        if level < 4 and (doing := row.doing):
            style = "yellow" if row.is_slow or row.state == "failed" else "dim"
            yield self._line(f"  {self._clean(doing)}", style)
        if level < 1 and row.tail:
            for line in self._ending(row.tail):
                yield self._line(f"  {line}", "italic dim")

    def _marked(self, state: State, text: Text) -> Text:
        look = _LOOKS[state]
        if state == "running":
            frames = _SPINNER if self._is_rich else _ASCII_SPINNER
            mark = frames[int(monotonic() * FRAMES_A_S) % len(frames)]
        else:
            mark = look.mark if self._is_rich else look.ascii_mark
        marked = Text.assemble((f"{mark} ", look.style), text, no_wrap=True)
        marked.truncate(self._width)
        return marked

    def _line(self, text: str, style: str = "") -> Text:
        return Text(self._cut(text, self._width), style, no_wrap=True)

    def _ending(self, tail: str) -> list[str]:
        """The last lines of a reply."""
        width = max(1, self._width - 2)
        rest = self._clean(tail)
        # Whole lines from its beginning, so that what was shown stays where it was.
        rows = list(_wrapped(rest, width))
        return rows[-MAX_TAIL_LINES:]

    def _clean(self, text: str) -> str:
        """On one line, without what a terminal would obey or has no character for."""
        shown = escaped(" ".join(text.split()))
        return shown.encode(self._encoding, "backslashreplace").decode(self._encoding)

    def _cut(self, text: str, width: int) -> str:
        return cut(text, width, self._dots)


def _figures(n_tokens: int) -> list[str]:
    return [counted(n_tokens, "token")] if n_tokens else []


def cells(text: str) -> int:
    """Cells of a terminal that a text takes at most.

    Terminals differ in what they join to one emoji or one letter; here nothing is joined.

    Example:
        >>> cells("boat"), cells("船")
        (4, 2)
    """
    return sum(map(_width, text))


def cut(text: str, width: int, dots: str = "…") -> str:
    """The beginning of a text that fits, with dots in place of the rest.

    Example:
        >>> cut("the hull was rotten", 9), cut("the hull", 9)
        ('the hull…', 'the hull')
    """
    if cells(text) <= width:
        return text
    return "".join(_fitting(text, width - len(dots))) + dots[: max(0, width)]


def _fitting(text: str, width: int) -> Iterator[str]:
    for character in text:
        width -= _width(character)
        if width < 0:
            return
        yield character


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Lines of so many cells, cut at blanks where there are some."""
    line = ""
    for word in _words(text, width):
        if line and cells(line) + 1 + cells(word) > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield line


def _words(text: str, width: int) -> Iterable[str]:
    for word in text.split():
        while cells(word) > width:
            head = "".join(_fitting(word, width)) or word[0]
            yield head
            word = word[len(head) :]
        if word:
            yield word


def _width(character: str) -> int:
    # It may make what stands before it wide.
    return 1 if character == "\ufe0f" else get_character_cell_size(character)
