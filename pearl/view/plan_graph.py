"""Plan + durations → a drawing: steps below what they take, and the chain that took longest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pearl.dsl.nodes import Plan

WIDTH, HEIGHT = 190, 46
"""Of a box, in units of the drawing."""
ACROSS, DOWN = 24, 40
"""Between boxes."""
CHARACTERS = 25
"""Of a name in a box; longer ones are cut."""


@dataclass(frozen=True, slots=True)
class Box:
    """A step: its number, its place (top left), and whether it is on the longest chain."""

    number: int
    output: str
    action: str
    x: int
    y: int
    is_critical: bool


@dataclass(frozen=True, slots=True)
class Line:
    """From a step, down to one that takes its output, as a path of SVG."""

    path: str
    is_critical: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes and lines."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int
    text: str
    critical: tuple[str, ...]
    critical_s: float


def draw_plan(plan: Plan, seconds: Mapping[str, float]) -> Drawing:
    """Draw a plan with a row for each level of steps that can run at once."""
    index = {step.output: i for i, step in enumerate(plan.steps)}
    needs = [
        sorted({index[r.name] for r in step.references() if r.name in index}) for step in plan.steps
    ]
    level = [0] * len(needs)
    lasted = [0.0] * len(needs)
    before: list[int | None] = [None] * len(needs)
    for i, step in enumerate(plan.steps):
        level[i] = 1 + max((level[j] for j in needs[i]), default=-1)
        before[i] = max(needs[i], key=lambda j: lasted[j], default=None)
        behind = before[i]
        lasted[i] = seconds.get(step.output, 0.0) + (0.0 if behind is None else lasted[behind])
    chain = _chain(before, lasted)
    rows = [[i for i, at in enumerate(level) if at == row] for row in range(max(level) + 1)]
    width = max(len(row) for row in rows) * (WIDTH + ACROSS) - ACROSS
    places: dict[int, tuple[int, int]] = {}
    for y, row in enumerate(rows):
        left = (width - (len(row) * (WIDTH + ACROSS) - ACROSS)) // 2
        for x, i in enumerate(row):
            places[i] = left + x * (WIDTH + ACROSS), y * (HEIGHT + DOWN)
    steps_of_chain = list(pairwise(chain))
    return Drawing(
        boxes=tuple(
            Box(i + 1, _short(step.output), _short(step.action), *places[i], is_critical=i in chain)
            for i, step in enumerate(plan.steps)
        ),
        lines=tuple(
            Line(_path(places[j], places[i]), (j, i) in steps_of_chain)
            for i, needed in enumerate(needs)
            for j in needed
        ),
        width=width,
        height=len(rows) * (HEIGHT + DOWN) - DOWN,
        text=_told(plan, needs),
        critical=tuple(plan.steps[i].output for i in chain),
        critical_s=max(lasted),
    )


def _chain(before: Sequence[int | None], lasted: Sequence[float]) -> list[int]:
    """The steps of the longest chain, the first one first."""
    at: int | None = max(range(len(lasted)), key=lambda i: (lasted[i], i))
    chain: list[int] = []
    while at is not None:
        chain.insert(0, at)
        at = before[at]
    return chain


def _path(above: tuple[int, int], below: tuple[int, int]) -> str:
    x1, y1 = above[0] + WIDTH // 2, above[1] + HEIGHT
    x2, y2 = below[0] + WIDTH // 2, below[1]
    bend = (y2 - y1) // 2
    return f"M{x1} {y1}C{x1} {y1 + bend} {x2} {y2 - bend} {x2} {y2}"


def _short(name: str) -> str:
    return name if len(name) <= CHARACTERS else f"{name[: CHARACTERS - 1]}…"


def _told(plan: Plan, needs: Sequence[Sequence[int]]) -> str:
    """The drawing in words, for those who do not see it."""
    told = []
    for i, step in enumerate(plan.steps):
        taken = ", ".join(plan.steps[j].output for j in needs[i])
        reads = any(reference.is_context for reference in step.references())
        of = " and ".join(filter(None, ["the document" if reads else "", taken])) or "nothing"
        told.append(f"Step {i + 1}, {step.output}, {step.action}, takes {of}.")
    return " ".join(told)
