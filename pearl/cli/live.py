"""Events of one question → what its plans are doing, step by step; `screen` draws it."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Literal

from pearl.errors.wording import counted
from pearl.llm import Usage

if TYPE_CHECKING:
    from pearl.llm.prices import Price
    from pearl.trace import (
        Event,
        ModelProgressed,
        ModelWaited,
        PlanChosen,
        RunStarted,
        StepFinished,
    )

State = Literal[
    "waiting", "running", "done", "nothing", "undecided", "degraded", "refused", "failed"
]
"""Of a step; `nothing`: it is done and found nothing."""

SLOW_S = 20.0
"""Seconds without news of a call after which that is told."""

MAX_WORDS = 500
"""Characters that are kept of a call, a reason or a diagnostic."""

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
        """It runs, where it does not yet."""
        self._heard = monotonic()
        if self.state != "running":
            self.state, self.since, self.took_s = "running", self._heard, None

    def end(self, state: State, took_s: float | None = None) -> None:
        """It has ended."""
        if took_s is None:
            took_s = 0.0 if self.since is None else monotonic() - self.since
        self.state, self.took_s, self.tail, self._wait_why = state, took_s, "", ""

    def hear(self, event: ModelProgressed) -> None:
        """A call of it has got on."""
        self.begin()
        self.note, self._wait_why = how_far(event).removeprefix(", "), ""
        self.tail = event.text

    def wait(self, event: ModelWaited) -> None:
        """A call of it waits."""
        self.begin()
        tried = ""
        if event.n_attempts > 1:
            tried = f", retry {event.attempt} of {event.n_attempts - 1}"
        self._wait_ends = monotonic() + event.wait_s
        self._wait_why, self.tail = f"{tried}: {event.reason[:MAX_WORDS]}", ""

    def add(self, usage: Usage, *, is_kept: bool = False) -> None:
        """A reply was read."""
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
        """What it does now, or why it waits; "" if there is nothing to say."""
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
        """Whether it waits, or nothing was heard of its call for long."""
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
        """Whether a plan is run, or was."""
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
        """What tokens cost, for people; "" where the price is not known, or nothing was spent."""
        if self._price is None or not usage.n_input_tokens + usage.n_output_tokens:
            return ""
        return f"${self._price.cost_usd(usage):.4f}"


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
    """Who wrote a plan, and why it was chosen.

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
