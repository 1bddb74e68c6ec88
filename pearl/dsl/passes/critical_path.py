"""Steps that most calls wait for, one after the other, go first.

Steps are begun in the order of the graph, and calls queue for places in the order in which they are
begun. Where places are scarce, that order decides: over the 1,226 valid published plans, at equal
call times, 2 places are done 3.2 % earlier, 3 places 1.0 %, 8 places not at all. Only the order of
the work changes; the answer is composed in the order of the plan.
"""

from __future__ import annotations

from pearl.dsl.graph import PlanGraph
from pearl.dsl.passes import Rewrite, Rewritten, rebuilt

__all__ = ["STAGE", "n_following", "rewrite"]

STAGE = 1
"""After steps have been left out: that shortens chains."""


def rewrite(graph: PlanGraph) -> Rewritten:
    r"""Order the steps by the calls that have to follow one another from each of them on.

    Among equals the plan's order stays.

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
    """For each step, the calls that follow one another from it on, its own included."""
    lengths = [0] * len(graph.steps)
    for i in reversed(range(len(graph.steps))):
        lengths[i] += not graph.checked.action(graph.steps[i]).is_native
        for needed in graph.dependencies[i]:
            lengths[needed] = max(lengths[needed], lengths[i])
    return lengths


def _topological(graph: PlanGraph, lengths: list[int]) -> list[int]:
    """Longest first, each step after those it needs.

    A step computed without a call is no longer than what waits for it, so lengths alone do not
    keep the steps in a possible order.
    """
    depths: list[int] = []
    for needs in graph.dependencies:
        depths.append(1 + max((depths[i] for i in needs), default=-1))
    return sorted(range(len(lengths)), key=lambda i: (-lengths[i], depths[i], i))
