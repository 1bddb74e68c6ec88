"""`CheckedPlan` → `PlanGraph`: which step waits for which.

Steps are numbered from 0 here. A plan's references point backwards only, so the graph has no
cycle and step order is a topological order.
"""

from __future__ import annotations

from dataclasses import dataclass

from pearl.dsl.checker import CheckedPlan
from pearl.dsl.nodes import Step

__all__ = ["PlanGraph", "build_graph"]


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """A plan as a directed acyclic graph.

    Attributes:
        checked: The plan.
        dependencies: For each step, the indices of the steps whose outputs it takes.
    """

    checked: CheckedPlan
    dependencies: tuple[frozenset[int], ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in plan order."""
        return self.checked.plan.steps

    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Groups of steps that can run at once: each only needs steps of earlier groups."""
        depth: list[int] = []
        for needs in self.dependencies:
            depth.append(1 + max((depth[i] for i in needs), default=-1))
        return tuple(
            tuple(i for i, at in enumerate(depth) if at == level)
            for level in range(max(depth, default=-1) + 1)
        )

    def ancestors(self, index: int) -> frozenset[int]:
        """Every step that step `index` depends on, directly or not."""
        seen: set[int] = set()
        todo = list(self.dependencies[index])
        while todo:
            i = todo.pop()
            if i not in seen:
                seen.add(i)
                todo.extend(self.dependencies[i])
        return frozenset(seen)


def build_graph(checked: CheckedPlan) -> PlanGraph:
    """Resolve every reference to the step that makes it."""
    index = {step.output: i for i, step in enumerate(checked.plan.steps)}
    return PlanGraph(
        checked,
        tuple(
            frozenset(index[r.name] for r in step.references() if not r.is_context)
            for step in checked.plan.steps
        ),
    )
