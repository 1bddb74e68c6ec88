"""Checked plan + document + limits → `Answer`; records the start and end of the run in the trace.

The rewritten plan is executed; the answer and its steps follow the plan as written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Literal

from pearl.documents.document import Document
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import PlanGraph, build_graph
from pearl.dsl.nodes import Plan, Reference, Step, String
from pearl.dsl.passes import Rewritten, rewrite_plan
from pearl.dsl.signatures import CTX, Action, ActionLibrary, Parameter, ValueType
from pearl.errors import ExecutionError, PearlError, UsageError
from pearl.interpreter.answer import Answer, compose
from pearl.interpreter.limits import ContextLimits
from pearl.interpreter.offloading import off_loop
from pearl.interpreter.step_result import StepResult
from pearl.interpreter.steps import run
from pearl.llm import Model, Usage
from pearl.llm.fallback import ConstraintFallback
from pearl.llm.middleware.caching import ItemCache
from pearl.retrieval.search import Searcher
from pearl.trace import (
    PlanRewritten,
    RunFinished,
    RunStarted,
    StepStarted,
    Trace,
)

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
    fallback: ConstraintFallback | None = None,
    items: ItemCache | None = None,
    searcher: Searcher | None = None,
    trace: Trace | None = None,
) -> Answer:
    """Run a plan over a document."""
    check_document(document)
    began = time.monotonic()
    trace = Trace() if trace is None else trace
    graph, rewritten = _prepared(_Same(checked))
    trace.append(
        RunStarted(
            question=checked.plan.question or "",
            plan=graph.text,
            method=method,
            document=document.name,
            document_sha256=document.digest,
            n_characters=len(document.text),
            n_document_tokens=limits.known_tokens(document.text),
            token_count=limits.counter.method,
            model=model.name,
            window=limits.window,
            steps=tuple(step.output for step in graph.steps),
        )
    )
    for rewrite in rewritten.rewrites:
        trace.append(PlanRewritten(by=rewrite.by, what=rewrite.what))
    try:
        ran = await run(rewritten.graph, document, model, limits, trace, fallback, items, searcher)
    except PearlError:
        _fail(trace, time.monotonic() - began)
        raise
    put_together = partial(
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
    answer = await off_loop(len(document.text), put_together)
    if limits.is_strict and answer.status == "degraded":
        _fail(trace, answer.duration_s)
        error = ExecutionError(
            f"the answer is degraded: {answer.why}", help="without --strict it is kept"
        )
        error.finished = answer.steps
        raise error
    trace.append(
        RunFinished(
            status=answer.status,
            answer=answer.text,
            usage=answer.usage,
            duration_s=answer.duration_s,
            evidence=tuple(passage.to_json() for passage in answer.evidence),
            unverified_quotes=tuple(quote.to_json() for quote in answer.unverified),
            n_rows=len(answer.rows),
        )
    )
    return answer


def _fail(trace: Trace, duration_s: float) -> None:
    trace.append(RunFinished(status="failed", answer="", usage=trace.usage, duration_s=duration_s))


def check_document(document: object) -> None:
    """Reject what is no document, as a text or a path."""
    if not isinstance(document, Document):
        raise UsageError(
            f"a document is a Document, not a {type(document).__name__}",
            help="pearl.load(path) reads a file, pearl.Document(text) holds a text",
        )


class _Same:
    """A plan as a key: the same object, for to compare two plans takes as long as to prepare one."""

    def __init__(self, checked: CheckedPlan) -> None:
        self.checked = checked

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.checked is self.checked

    def __hash__(self) -> int:
        return id(self.checked)


@lru_cache(maxsize=256)
def _prepared(plan: _Same) -> tuple[PlanGraph, Rewritten]:
    """The graph of a plan as written and as run, made once for all documents."""
    graph = build_graph(plan.checked)
    return graph, rewrite_plan(graph)


def _as_written(
    graph: PlanGraph, rewritten: Rewritten, ran: Sequence[StepResult], trace: Trace
) -> list[StepResult]:
    """One result per step of the plan as written, in order."""
    by_output = {result.output: result for result in ran}
    for output, same in rewritten.stands_for.items():
        result = replace(by_output[same], output=output, n_calls=0, usage=Usage(), duration_s=0.0)
        by_output[output] = result
        trace.append(StepStarted(step=output, action=result.action))
        trace.append(result.event)
    return [by_output[step.output] for step in graph.steps]


def direct_plan(question: str) -> CheckedPlan:
    """A plan of one step, which answers the question directly."""
    step = Step("answer", ANSWER.name, (Reference(CTX), String(question)), "Answer the question")
    plan = Plan((step,), (ANSWER,), question)
    return CheckedPlan(plan, ActionLibrary("direct", [ANSWER]), ("answer",))
