"""`PlanGraph` → `PlanGraph` with the same answer at lower cost. Every other module is one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pearl import plugins
from pearl.dsl.graph import PlanGraph, build_graph
from pearl.dsl.nodes import Step

__all__ = ["CONTRACT", "Pass", "Rewrite", "Rewritten", "rebuilt", "rewrite_plan"]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One change that a pass made.

    Attributes:
        by: Name of the pass.
        what: Description of the change.
    """

    by: str
    what: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A graph after one pass, or after all of them.

    Attributes:
        graph: The rewritten graph; the input object itself if nothing changed.
        rewrites: The changes, in order.
        stands_for: Output of each removed step → output of the step in `graph` with the same value.
    """

    graph: PlanGraph
    rewrites: tuple[Rewrite, ...] = ()
    stands_for: Mapping[str, str] = field(default_factory=dict)


class Pass(Protocol):
    """What a module of this folder looks like to its users."""

    STAGE: int

    def rewrite(self, graph: PlanGraph) -> Rewritten:
        """The graph with less to do, or `graph` itself."""
        ...


CONTRACT = Pass


def rewrite_plan(graph: PlanGraph) -> Rewritten:
    """Apply every pass, in the order of their stages."""
    rewrites: list[Rewrite] = []
    stands_for: dict[str, str] = {}
    passes = [plugins.load(__name__, name) for name in plugins.names(__name__)]
    for module in sorted(passes, key=lambda module: module.STAGE):
        done: Rewritten = module.rewrite(graph)
        graph = done.graph
        rewrites += done.rewrites
        stands_for = {
            left_out: done.stands_for.get(by, by) for left_out, by in stands_for.items()
        } | dict(done.stands_for)
    return Rewritten(graph, tuple(rewrites), stands_for)


def rebuilt(
    graph: PlanGraph, steps: Iterable[Step], stands_for: Mapping[str, str] | None = None
) -> PlanGraph:
    """The graph of the same plan with other steps, or with the same ones in another order.

    Args:
        graph: The original graph.
        steps: The new steps, in topological order.
        stands_for: Outputs of removed steps → outputs that replace them in the answer.
    """
    checked = graph.checked
    answers = (stands_for or {}).get
    return build_graph(
        replace(
            checked,
            plan=replace(checked.plan, steps=tuple(steps)),
            outputs=tuple(dict.fromkeys(answers(name, name) for name in checked.outputs)),
        )
    )
