"""Critical-path scheduling: steps with the longest chain of dependent calls run first."""

from __future__ import annotations

from pearl.dsl.graph import PlanGraph
from pearl.dsl.passes import Rewrite, Rewritten, rebuilt

STAGE = 2
"""After passes that remove or add steps, which changes chains."""


def rewrite(graph: PlanGraph) -> Rewritten:
    """Sort the steps by the length of the chain of calls that starts at each of them."""
    order = _topological(graph, n_following(graph))
    if order == list(range(len(order))):
        return Rewritten(graph)
    steps = [graph.steps[i] for i in order]
    what = f"steps are begun in the order {', '.join(step.output for step in steps)}"
    return Rewritten(rebuilt(graph, steps), (Rewrite("critical_path", what),))


def n_following(graph: PlanGraph) -> list[int]:
    """For each step, the length of the longest chain of calls that starts with it."""
    lengths = [0] * len(graph.steps)
    for i in reversed(range(len(graph.steps))):
        lengths[i] += not graph.checked.action(graph.steps[i]).is_native
        for needed in graph.dependencies[i]:
            lengths[needed] = max(lengths[needed], lengths[i])
    return lengths


def _topological(graph: PlanGraph, lengths: list[int]) -> list[int]:
    """Longest first, each step after those it needs."""
    depths: list[int] = []
    for needs in graph.dependencies:
        depths.append(1 + max((depths[i] for i in needs), default=-1))
    return sorted(range(len(lengths)), key=lambda i: (-lengths[i], depths[i], i))
