"""`CheckedPlan` → `PlanGraph`: which step waits for which.

Steps are numbered from 0 here. A plan's references point backwards only, so the graph has no
cycle and step order is a topological order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pearl.dsl.checker import CheckedPlan
from pearl.dsl.nodes import ListLiteral, Reference, Step
from pearl.dsl.signatures import ValueType

__all__ = ["PlanGraph", "build_graph"]

_READ = frozenset({ValueType.LIST, ValueType.NUMBER, ValueType.BOOL})
"""What the text of an output is read as; anything else goes on as it is."""


@dataclass(frozen=True)
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

    @cached_property
    def gives(self) -> Mapping[str, ValueType]:
        """The type in which each output is read, by its name.

        What the action says that it gives comes first. One that says nothing gives what a native
        action takes: of `n = COUNT(animals)`, the step that makes `animals` gives a list. So does
        one whose output reaches such an action through a native one that takes and gives text, and
        one that stands in a list that the action takes.
        """
        gives: dict[str, ValueType] = {}
        for step in reversed(self.steps):
            action = self.checked.action(step)
            wanted = gives.setdefault(step.output, action.returns)
            if action.returns is not ValueType.TEXT:
                gives[step.output] = action.returns
            if not action.is_native:
                continue
            for i, argument in enumerate(step.arguments):
                taken = action.parameter(i).type
                if taken is ValueType.TEXT and action.returns is ValueType.TEXT:
                    taken = wanted
                read = argument.items if isinstance(argument, ListLiteral) else (argument,)
                for one in read if taken in _READ else ():
                    if isinstance(one, Reference):
                        # Where several read it, a list is what can be read as the other, too.
                        is_list = gives.get(one.name) is ValueType.LIST
                        gives[one.name] = ValueType.LIST if is_list else taken
        return gives


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
