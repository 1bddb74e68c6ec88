"""What every rewrite of `pearl.dsl.passes` has to be, tomorrow's included."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pearl import plugins
from pearl.documents.document import Document
from pearl.documents.tokens import Counter
from pearl.dsl.checker import check
from pearl.dsl.graph import PlanGraph, build_graph
from pearl.dsl.nodes import Plan, Step
from pearl.dsl.passes import Rewritten, rewrite_plan
from pearl.interpreter.answer import StepResult
from pearl.interpreter.context import ContextLimits
from pearl.interpreter.execution import run
from pearl.llm import Request
from pearl.llm.backends.scripted import Scripted
from pearl.trace import Trace
from tests.dsl import strategies
from tests.examples import examples

PASSES: dict[str, Callable[[PlanGraph], Rewritten]] = {
    name: plugins.load("pearl.dsl.passes", name).rewrite
    for name in plugins.names("pearl.dsl.passes")
}

each_pass = pytest.mark.parametrize(
    "rewrite", [*PASSES.values(), rewrite_plan], ids=[*PASSES, "all"]
)


@st.composite
def graphs(draw: st.DrawFn) -> PlanGraph:
    """Graphs of valid plans, in many of which some steps stand twice."""
    library = draw(strategies.libraries())
    plan = draw(strategies.valid_plans(library))
    steps: list[Step] = []
    for step in plan.steps:
        steps.append(step)
        if draw(st.booleans()):
            output = f"{step.output}_again"
            steps.append(Step(output, step.action, step.arguments, step.explanation))
    outputs = [step.output for step in steps]
    if len(set(outputs)) < len(outputs):
        steps = list(plan.steps)
    return build_graph(check(Plan(tuple(steps), plan.new_actions, plan.question), library))


def reply(request: Request) -> str:
    return sha256(request.prompt.encode()).hexdigest()


def values(graph: PlanGraph) -> dict[str, StepResult]:
    document = Document("Ada sold the boat because it leaked.")
    results = asyncio.run(run(graph, document, Scripted(reply), ContextLimits(Counter()), Trace()))
    return {result.output: result for result in results}


@each_pass
@examples(15)
@given(graph=graphs())
def test_a_pass_is_idempotent_and_keeps_what_it_does_not_change(
    rewrite: Any, graph: PlanGraph
) -> None:
    done = rewrite(graph)
    assert (done.graph is graph) == (not done.rewrites)
    again = rewrite(done.graph)
    assert again.graph is done.graph
    assert not again.rewrites
    assert not again.stands_for


@each_pass
@examples(15)
@given(graph=graphs())
def test_every_step_keeps_its_value_and_the_plan_its_answers(
    rewrite: Any, graph: PlanGraph
) -> None:
    done = rewrite(graph)
    left = {step.output for step in done.graph.steps}
    written = [step.output for step in graph.steps]
    assert left | set(done.stands_for) == set(written)
    assert left.isdisjoint(done.stands_for)
    outputs = [done.stands_for.get(name, name) for name in graph.checked.outputs]
    assert list(done.graph.checked.outputs) == list(dict.fromkeys(outputs))
    for i, needs in enumerate(done.graph.dependencies):
        assert all(j < i for j in needs)
    before, after = values(graph), values(done.graph)
    for name in written:
        same = after[done.stands_for.get(name, name)]
        assert (same.value, same.action) == (before[name].value, before[name].action)
