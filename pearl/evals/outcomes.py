"""An `EvalLog` → what became of the samples of each method, and what its plans are like; calls no model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from pearl.dsl.parser import read
from pearl.errors import PlanningError
from pearl.evals.log import EvalLog, EvalRecord, PlanShape

KINDS = ("right", "partly", "wrong", "unmapped", "undecided", "no plan", "failed")
"""What becomes of a sample: the answer has the full score, a part of it, none; names no option; is undecided; no
valid plan was written; something else failed."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many records of a method are of each of `KINDS`; together they are all of them."""

    method: str
    n: int
    n_of: dict[str, int]


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """What the plans of a method are like."""

    method: str
    n: int
    n_different: int
    steps: float
    calls: float
    depth: float
    width: float
    actions: float
    n_actions: int
    most_used: tuple[tuple[str, int], ...]


def outcomes(log: EvalLog) -> list[Outcomes]:
    """One for each method, in the order of the log."""
    counted = {method: Counter(map(_kind, log.of(method))) for method in log.methods}
    return [
        Outcomes(method, found.total(), {kind: found[kind] for kind in KINDS})
        for method, found in counted.items()
    ]


def _kind(record: EvalRecord) -> str:
    error = record.error or ""
    if error.startswith("undecided:"):
        return "undecided"
    if record.status == "failed":
        return "no plan" if error.startswith(PlanningError.__name__) else "failed"
    if record.is_unmapped:
        return "unmapped"
    return "right" if record.is_correct else "partly" if record.credit else "wrong"


def plan_figures(log: EvalLog) -> list[PlanFigures]:
    """One for each method whose records have plans."""
    shaped = {
        method: [(one.plan, one.shape) for one in log.of(method) if one.plan and one.shape]
        for method in log.methods
    }
    return [figures_of(method, plans) for method, plans in shaped.items() if plans]


def figures_of(method: str, plans: Sequence[tuple[str, PlanShape]]) -> PlanFigures:
    """The figures of some plans, at least one, with their shapes."""
    read_plans = [plan for text, _ in plans if (plan := read(text).plan) is not None]
    actions = [[step.action for step in plan.steps] for plan in read_plans]
    used = Counter(name for each in actions for name in each)
    shapes = [shape for _, shape in plans]
    return PlanFigures(
        method=method,
        n=len(plans),
        n_different=len({plan for plan, _ in plans}),
        steps=fmean(shape.n_steps for shape in shapes),
        calls=fmean(shape.n_calls for shape in shapes),
        depth=fmean(shape.depth for shape in shapes),
        width=fmean(shape.width for shape in shapes),
        actions=fmean(len(set(each)) for each in actions) if actions else 0.0,
        n_actions=len(used),
        most_used=tuple(used.most_common(5)),
    )
