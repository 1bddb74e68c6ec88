"""Checked plan + document + limits → `Answer`; the trace is told when a run begins and ends.

What runs is the rewritten plan; what is answered, and told of the steps, is the plan as written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pearl.documents.document import Document
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import PlanGraph, build_graph
from pearl.dsl.nodes import CTX, Plan, Reference, Step, String
from pearl.dsl.passes import Rewritten, rewrite_plan
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.errors import PearlError, UsageError
from pearl.interpreter.answer import Answer, compose
from pearl.interpreter.steps import ContextLimits, StepResult, run
from pearl.llm import Model, Usage
from pearl.llm.fallback import ConstraintFallback
from pearl.trace import (
    PlanRewritten,
    RunFinished,
    RunStarted,
    StepStarted,
    Trace,
)

__all__ = ["answer_plan", "direct_plan"]

ANSWER = Action(
    "ANSWER",
    (Parameter(CTX, ValueType.CONTEXT), Parameter("QUESTION")),
    "Answer QUESTION from CTX",
)


async def answer_plan(
    checked: CheckedPlan,
    document: Document,
    model: Model,
    limits: ContextLimits,
    *,
    method: Literal["plan", "direct"],
    ladder: ConstraintFallback | None = None,
    trace: Trace | None = None,
) -> Answer:
    """Run a plan over a document.

    Args:
        checked: The plan.
        document: What CTX stands for.
        model: Who carries out its steps.
        limits: How much each call may hold.
        method: Whether the plan was written, or is `direct_plan`.
        ladder: What the model is held to where a reply has a form; None for what it can be.
        trace: Everything that happens is added to it.

    Raises:
        UsageError: What is to be read is no document.
        ExecutionError: A step failed.
    """
    if not isinstance(document, Document):
        raise UsageError(
            f"a document is a Document, not a {type(document).__name__}",
            help="pearl.load(path) reads a file, pearl.Document(text) holds a text",
        )
    began = time.monotonic()
    trace = Trace() if trace is None else trace
    graph = build_graph(checked)
    trace.append(
        RunStarted(
            question=checked.plan.question or "",
            plan=str(checked),
            method=method,
            document=document.name,
            document_sha256=document.digest,
            n_characters=len(document.text),
            n_document_tokens=limits.counter.count(document.text),
            token_count=limits.counter.method,
            model=model.name,
            window=limits.window,
            steps=tuple(step.output for step in graph.steps),
        )
    )
    rewritten = rewrite_plan(graph)
    for rewrite in rewritten.rewrites:
        trace.append(PlanRewritten(by=rewrite.by, what=rewrite.what))
    try:
        ran = await run(rewritten.graph, document, model, limits, trace, ladder)
    except PearlError:
        spent = trace.usage
        trace.append(
            RunFinished(
                status="failed", answer="", usage=spent, duration_s=time.monotonic() - began
            )
        )
        raise
    answer = await asyncio.to_thread(
        compose,
        graph,
        _as_written(graph, rewritten, ran, trace),
        document,
        method=method,
        model=model.name,
        usage=trace.usage,
        duration_s=time.monotonic() - began,
        trace=trace,
    )
    trace.append(
        RunFinished(
            status=answer.status,
            answer=answer.text,
            usage=answer.usage,
            duration_s=answer.duration_s,
        )
    )
    return answer


def _as_written(
    graph: PlanGraph, rewritten: Rewritten, ran: Sequence[StepResult], trace: Trace
) -> list[StepResult]:
    """A result for every step of the plan as it was written, in its order."""
    by_output = {result.output: result for result in ran}
    for output, same in rewritten.stands_for.items():
        result = replace(by_output[same], output=output, n_calls=0, usage=Usage(), duration_s=0.0)
        by_output[output] = result
        trace.append(StepStarted(step=output, action=result.action))
        trace.append(result.event)
    return [by_output[step.output] for step in graph.steps]


def direct_plan(question: str) -> CheckedPlan:
    """Answering directly is a plan, too: of one step."""
    step = Step("answer", ANSWER.name, (Reference(CTX), String(question)), "Answer the question")
    plan = Plan((step,), (ANSWER,), question)
    return CheckedPlan(plan, ActionLibrary("direct", [ANSWER]), ("answer",))
