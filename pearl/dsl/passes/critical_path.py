"""Critical-path scheduling: steps with the longest chain of dependent calls run first.

Steps start in the order of the graph, and their calls wait for the concurrency limit in that order.
Measured over the 1,226 valid published plans with equal call times, this saves 3.2 % of the time at
2 concurrent calls, 1.0 % at 3 and nothing at 8. The answer is still composed in the order of the
plan.
"""

from __future__ import annotations

from pearl.dsl.graph import PlanGraph
from pearl.dsl.passes import Rewrite, Rewritten, rebuilt

STAGE = 2
"""After passes that remove or add steps, which changes chains."""


def rewrite(graph: PlanGraph) -> Rewritten:
    r"""Sort the steps by the length of the chain of calls that starts at each of them.

    Ties keep the order of the plan.

    Example:
        >>> from pearl.actions.library import load_library
        >>> from pearl.dsl.checker import compile_plan
        >>> from pearl.dsl.graph import build_graph
        >>> before = build_graph(compile_plan('''
        ... 1. place = FIND(CTX, "the place") : Where
        ... 2. hero = FIND(CTX, "the hero") : Who
        ... 3. why = FIND(CTX, hero) : Why they did it'''.strip(), load_library("seed")))
        >>> after = rewrite(before)
        >>> print(str(after.graph.checked).partition("\n\n")[2])
        1. hero = FIND(CTX, "the hero") : Who
        2. place = FIND(CTX, "the place") : Where
        3. why = FIND(CTX, hero) : Why they did it
        >>> after.graph.checked.outputs == before.checked.outputs
        True
        >>> rewrite(after.graph).graph is after.graph
        True
    """
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
    """Longest first, each step after those it needs.

    A native step adds nothing to its chain, so sorting by length alone may violate dependencies.
    """
    depths: list[int] = []
    for needs in graph.dependencies:
        depths.append(1 + max((depths[i] for i in needs), default=-1))
    return sorted(range(len(lengths)), key=lambda i: (-lengths[i], depths[i], i))
