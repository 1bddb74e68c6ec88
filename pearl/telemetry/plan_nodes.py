"""The steps of a plan as nodes of a graph: what a span says of its place in the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pearl.dsl.nodes import Step
from pearl.dsl.parser import read


@dataclass(frozen=True, slots=True)
class PlanNodes:
    """The nodes of a plan."""

    steps: Mapping[str, Step]
    numbers: Mapping[str, int]
    new_actions: frozenset[str]

    def parents(self, output: str) -> tuple[str, ...]:
        """The outputs that a step takes, each once, in the order of its arguments."""
        step = self.steps.get(output)
        if step is None:
            return ()
        return tuple(dict.fromkeys(r.name for r in step.references() if r.name in self.steps))


@lru_cache(maxsize=64)
def plan_nodes(text: str) -> PlanNodes:
    '''The nodes of the text of a plan; none where it cannot be read.

    Example:
        >>> nodes = plan_nodes("""New actions:
        ... - None
        ...
        ... 1. a = FIND(CTX, "x") : f
        ... 2. b = FIND(CTX, a) : g""")
        >>> nodes.numbers["b"], nodes.parents("b")
        (2, ('a',))
    '''
    plan = read(text).plan
    if plan is None:
        return PlanNodes({}, {}, frozenset())
    return PlanNodes(
        {step.output: step for step in plan.steps},
        {step.output: number for number, step in enumerate(plan.steps, start=1)},
        frozenset(action.name for action in plan.new_actions),
    )
