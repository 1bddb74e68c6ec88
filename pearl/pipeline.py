"""The straight line: question → plan → run → answer. `Pearl` puts the parts together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pearl.actions.library import load_library
from pearl.answerer import Answer, compose
from pearl.context import STRATEGIES, Strategy
from pearl.domains import load_domain
from pearl.dsl.checker import MAX_STEPS, CheckedPlan, compile_plan
from pearl.dsl.graph import build_graph
from pearl.dsl.nodes import CTX, Plan, Reference, Step, String
from pearl.dsl.signatures import Action, ActionLibrary, Parameter, ValueType
from pearl.errors import ModelError, PearlError, PlanningError, UsageError, did_you_mean
from pearl.fewshot import Example, load_examples
from pearl.interpreter import Limits, run
from pearl.llm import Model, ModelSettings, Usage, create_model
from pearl.middleware import Limited, Retrying
from pearl.planner import MAX_REPAIRS, write_plan
from pearl.sources import Document
from pearl.tokens import Counter
from pearl.trace import (
    ModelCalled,
    ModelWaited,
    PlanAttempted,
    PlanFailed,
    RunFinished,
    RunStarted,
    Trace,
)

__all__ = ["Pearl"]

ANSWER = Action(
    "ANSWER",
    (Parameter(CTX, ValueType.CONTEXT), Parameter("QUESTION")),
    "Answer QUESTION from CTX",
)


class Pearl:
    """A model, a library and how to use them: writes plans, runs them, answers questions.

    Use it as an asynchronous context manager, or call `aclose` when done.

    Args:
        model: `extractive` (no network, quotes passages), `openai:NAME`, ... or a `Model`.
        domain: Kind of document; chooses the library and the examples.
        library: Name or file of another action library than the domain's.
        base_url: Server of the model.
        context: What to do with documents longer than the window.
        window: Tokens of the model's window, where you know better than the shipped table.
        max_output_tokens: Tokens of one reply at most; None for the model's own limit.
        max_repairs: Times the model is shown what is wrong with its plan.
        max_steps: Longer plans are refused.
        fallback: `direct` answers in one step where no valid plan can be had.
        concurrency: Calls to the model at once, and tasks under way at once.
        timeout_s: Seconds that one call may take in all.

    Raises:
        UsageError: An argument names nothing that exists.
        ModelError: The model cannot be set up: no key.
        DataError: The library cannot be read.

    Example:
        >>> import asyncio
        >>> from pearl.sources import Document
        >>> document = Document("It rained. Ada sold the boat because it leaked. Then she slept.")
        >>> answer = asyncio.run(Pearl().ask("Why did Ada sell the boat?", document))
        >>> answer.evidence[0].text
        'Ada sold the boat because it leaked.'
    """

    def __init__(
        self,
        model: str | Model = "extractive",
        *,
        domain: str = "generic",
        library: str | Path | ActionLibrary | None = None,
        base_url: str | None = None,
        context: Strategy = "auto",
        window: int | None = None,
        max_output_tokens: int | None = None,
        max_repairs: int = MAX_REPAIRS,
        max_steps: int = MAX_STEPS,
        fallback: Literal["direct"] | None = None,
        concurrency: int = 8,
        timeout_s: float = 600.0,
    ) -> None:
        if context not in STRATEGIES:
            close = did_you_mean(context, STRATEGIES)
            raise UsageError(
                f"unknown context strategy '{context}'",
                help=f"did you mean '{close}'?" if close else f"one of {', '.join(STRATEGIES)}",
            )
        self.domain = load_domain(domain)
        self.library = (
            library
            if isinstance(library, ActionLibrary)
            else load_library(library or self.domain.library)
        )
        self.model = (
            create_model(model, ModelSettings(base_url, timeout_s, window))
            if isinstance(model, str)
            else model
        )
        self.max_repairs = max_repairs
        self.max_steps = max_steps
        self.fallback = fallback
        self.limits = Limits(
            Counter.for_model(self.model.name),
            context,
            window or self.model.window,
            max_output_tokens,
        )
        self.concurrency = concurrency
        self._plans: dict[str, asyncio.Future[CheckedPlan]] = {}
        self._calls = Limited(self.model, concurrency)

    @cached_property
    def examples(self) -> tuple[Example, ...]:
        """What the planner is shown; read when the first plan is asked for."""
        return load_examples(self.domain.examples, self.library)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Let go of the model's connections."""
        await self.model.aclose()

    async def plan(self, question: str, *, trace: Trace | None = None) -> CheckedPlan:
        """Have a plan written for a question.

        Raises:
            UsageError: The question is blank.
            PlanningError: No valid plan came out of the repair loop.
            ModelError: The model gave no usable reply.
        """
        return await write_plan(
            question,
            self.library,
            self._patient(trace),
            examples=self.examples,
            max_repairs=self.max_repairs,
            max_steps=self.max_steps,
            trace=trace,
        )

    def compile(self, text: str, *, question: str | None = None) -> CheckedPlan:
        """Read and check the text of a plan.

        Raises:
            PlanError: With every diagnostic.
        """
        checked = compile_plan(text, self.library, max_steps=self.max_steps)
        if question and not checked.plan.question:
            return _asking(checked, question)
        return checked

    async def execute(
        self,
        plan: CheckedPlan | str,
        document: Document,
        *,
        trace: Trace | None = None,
    ) -> Answer:
        """Run a plan over a document.

        Raises:
            PlanError: The text is no valid plan.
            ExecutionError: A step failed.
        """
        checked = self.compile(plan) if isinstance(plan, str) else plan
        return await self._run(checked, document, "plan", Trace() if trace is None else trace)

    async def ask(self, question: str, document: Document, *, trace: Trace | None = None) -> Answer:
        """Write a plan and run it; a question asked of several documents is planned once. With `fallback="direct"`, answer without one if need be.

        Raises:
            UsageError: The question is blank.
            PlanningError: No valid plan, and no fallback was asked for.
            ModelError: The model gave no usable reply while planning.
            ExecutionError: A step failed.
        """
        trace = Trace() if trace is None else trace
        try:
            checked = await self._shared_plan(question, trace)
        except PlanningError as error:
            trace.append(PlanFailed(n_attempts=len(error.attempts), fallback=self.fallback))
            if self.fallback is None:
                raise
            return await self._run(_direct(question), document, "direct", trace)
        return await self._run(checked, document, "plan", trace)

    async def _run(
        self,
        checked: CheckedPlan,
        document: Document,
        method: Literal["plan", "direct"],
        trace: Trace,
    ) -> Answer:
        if not isinstance(document, Document):
            raise UsageError(
                f"a document is a Document, not a {type(document).__name__}",
                help="pearl.load(path) reads a file, pearl.Document(text) holds a text",
            )
        began = time.monotonic()
        graph = build_graph(checked)
        trace.append(
            RunStarted(
                question=checked.plan.question or "",
                plan=str(checked),
                method=method,
                document=document.name,
                document_sha256=document.digest,
                n_characters=len(document.text),
                n_document_tokens=self.limits.counter.count(document.text),
                token_count=self.limits.counter.method,
                model=self.model.name,
                window=self.limits.window,
            )
        )
        try:
            results = await run(graph, document, self._patient(trace), self.limits, trace)
        except PearlError:
            spent = _spent(trace)
            trace.append(
                RunFinished(
                    status="failed", answer="", usage=spent, duration_s=time.monotonic() - began
                )
            )
            raise
        answer = await asyncio.to_thread(
            compose,
            graph,
            results,
            document,
            method=method,
            model=self.model.name,
            usage=_spent(trace),
            duration_s=time.monotonic() - began,
            trace=trace,
        )
        trace.append(
            RunFinished(
                status="answered",
                answer=answer.text,
                usage=answer.usage,
                duration_s=answer.duration_s,
            )
        )
        return answer

    async def _shared_plan(self, question: str, trace: Trace) -> CheckedPlan:
        """The plan of a question: written once, however many documents it is asked of."""
        if question not in self._plans:
            self._plans[question] = asyncio.ensure_future(self.plan(question, trace=trace))
        try:
            return await asyncio.shield(self._plans[question])
        except (ModelError, asyncio.CancelledError):
            self._plans.pop(question, None)  # another try may fare better
            raise

    def _patient(self, trace: Trace | None) -> Model:
        """The model with retries, each of which the trace is told of."""
        on_wait: Callable[[str, float, int], None] | None = None
        if trace is not None:

            def on_wait(reason: str, wait_s: float, attempt: int) -> None:
                trace.append(ModelWaited(reason=reason, wait_s=wait_s, attempt=attempt))

        return Retrying(self._calls, on_wait=on_wait, first_wait_s=0.5)


def _direct(question: str) -> CheckedPlan:
    """Answering directly is a plan, too: of one step."""
    step = Step("answer", ANSWER.name, (Reference(CTX), String(question)), "Answer the question")
    plan = Plan((step,), (ANSWER,), question)
    return CheckedPlan(plan, ActionLibrary("direct", [ANSWER]), ("answer",))


def _asking(checked: CheckedPlan, question: str) -> CheckedPlan:
    return replace(checked, plan=replace(checked.plan, question=question))


def _spent(trace: Trace) -> Usage:
    return sum(
        (event.usage for event in trace if isinstance(event, ModelCalled | PlanAttempted)), Usage()
    )
