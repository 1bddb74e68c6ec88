"""`PlanGraph` + document → the value of every step.

Independent steps run at once. A step that fails cancels the others and surfaces as an
`ExecutionError`; nothing hangs. What is sent is made by `calls`, which substitutes arguments by
structure, never by text replacement.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pearl.actions import native
from pearl.actions.native import Value
from pearl.calls import Limits, StepCalls
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Step
from pearl.errors import BudgetError, ExecutionError, PearlError
from pearl.llm import ActionTask, CombineTask, Completion, Model, Usage
from pearl.sources import Document
from pearl.trace import ModelCalled, StepFailed, StepFinished, StepStarted, Trace

__all__ = ["Limits", "StepResult", "run"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step gave.

    Attributes:
        coverage: Share of the document's characters that the model was shown; None where it was
            shown none of it, only earlier outputs.
        shown: The text that stood for CTX, where that was an earlier output and not the document.
    """

    output: str
    action: str
    value: Value
    is_native: bool
    context: Literal["full", "map-reduce", "retrieve", "none"]
    coverage: float | None
    n_calls: int
    usage: Usage
    duration_s: float
    shown: str | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The value as text."""
        return native.show(self.value)


async def run(
    graph: PlanGraph, document: Document, model: Model, limits: Limits, trace: Trace
) -> tuple[StepResult, ...]:
    """Run every step.

    Returns:
        One result a step, in plan order.

    Raises:
        ExecutionError: A step failed; its `__cause__` says why, the others were cancelled.
    """
    interpreter = _Interpreter(graph, document, model, limits, trace)
    return await interpreter.run()


class _Interpreter:
    """One run of one plan over one document."""

    def __init__(
        self, graph: PlanGraph, document: Document, model: Model, limits: Limits, trace: Trace
    ) -> None:
        self._graph = graph
        self._calls = StepCalls(graph, document, limits)
        self._model = model
        self._trace = trace

    async def run(self) -> tuple[StepResult, ...]:
        tasks: list[asyncio.Task[StepResult]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for step, needs in zip(self._graph.steps, self._graph.dependencies, strict=True):
                    before = [tasks[i] for i in sorted(needs)]
                    tasks.append(group.create_task(self._when_ready(step, before)))
        except BaseExceptionGroup as failed:
            first = _first(failed)
            raise first from first.__cause__
        return tuple(task.result() for task in tasks)

    async def _when_ready(self, step: Step, before: list[asyncio.Task[StepResult]]) -> StepResult:
        values = {result.output: result.value for result in [await task for task in before]}
        self._trace.append(StepStarted(step=step.output, action=step.action))
        began = time.monotonic()
        try:
            result = await self._step(step, values, began)
        except BudgetError as error:  # no fault of the step: any other would have been refused
            self._trace.append(StepFailed(step=step.output, error=str(error)))
            raise
        except PearlError as error:
            self._trace.append(StepFailed(step=step.output, error=str(error)))
            raise _step_error(step, error) from error
        self._trace.append(
            StepFinished(
                step=result.output,
                action=result.action,
                value=result.text,
                is_native=result.is_native,
                context=result.context,
                coverage=result.coverage,
                n_calls=result.n_calls,
                usage=result.usage,
                duration_s=result.duration_s,
            )
        )
        return result

    async def _step(self, step: Step, values: Mapping[str, Value], began: float) -> StepResult:
        action = self._graph.checked.action(step)
        if action.is_native:
            try:
                value = native.compute(action, self._calls.values(step, values))
            except ValueError as error:
                raise ExecutionError(str(error), step=step.output) from error
            return StepResult(
                step.output, action.name, value, True, "none", None, 0, Usage(),
                time.monotonic() - began,
            )  # fmt: skip
        task, shown = self._calls.task(step, values)
        if task.document is None:
            completion = await self._call(step, "step", self._calls.whole(task))
            return StepResult(
                step.output, action.name, completion.text, False, "none", None, 1,
                completion.usage, time.monotonic() - began,
            )  # fmt: skip
        return await self._over_document(step, task, task.document, shown, began)

    async def _over_document(
        self, step: Step, task: ActionTask, document: str, shown: str | None, began: float
    ) -> StepResult:
        context, pieces = await asyncio.to_thread(self._calls.pieces, task, document)
        purpose: Literal["step", "part"] = "step" if len(pieces) == 1 else "part"
        parts = await _all([self._call(step, purpose, piece) for piece in pieces])
        texts = [part.text for part in parts]
        usage = sum((part.usage for part in parts), Usage())
        n_calls = len(parts)
        while len(texts) > 1:
            groups = self._calls.groups(task, texts)
            merged = await _all([self._merge(step, task, group) for group in groups])
            texts = [completion.text for completion in merged]
            usage = sum((completion.usage for completion in merged), usage)
            n_calls += sum(len(group) > 1 for group in groups)
        return StepResult(
            step.output, task.action.name, texts[0], False, context.strategy,
            None if shown is not None else context.coverage,
            n_calls, usage, time.monotonic() - began, shown,
        )  # fmt: skip

    async def _merge(self, step: Step, task: ActionTask, group: list[str]) -> Completion:
        if len(group) == 1:
            return Completion(group[0], self._model.name)
        return await self._call(step, "combine", CombineTask(task, tuple(group)))

    async def _call(
        self,
        step: Step,
        purpose: Literal["step", "part", "combine"],
        task: ActionTask | CombineTask,
    ) -> Completion:
        began = time.monotonic()
        completion = await self._model.complete(self._calls.request(task))
        self._trace.append(
            ModelCalled(
                step=step.output,
                purpose=purpose,
                model=completion.model,
                duration_s=time.monotonic() - began,
                usage=completion.usage,
                is_remembered=completion.is_remembered,
                prefix=completion.prefix,
            )
        )
        return completion


async def _all(calls: Sequence[Coroutine[None, None, Completion]]) -> list[Completion]:
    """Every call at once; the first failure cancels the rest."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        first = _first(failed)
        raise first from first.__cause__
    return [task.result() for task in tasks]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure to report: a bug before an expected one, for it would be lost otherwise."""
    leaves: list[BaseException] = []
    todo: list[BaseException] = [group]
    while todo:
        error = todo.pop(0)
        if isinstance(error, BaseExceptionGroup):
            todo = [*error.exceptions, *todo]
        else:
            leaves.append(error)
    return next((error for error in leaves if not isinstance(error, PearlError)), leaves[0])


def _step_error(step: Step, error: PearlError) -> ExecutionError:
    failed = ExecutionError(
        f"step '{step.output}' ({step.action}): {error.message}", step=step.output, help=error.help
    )
    failed.exit_code = error.exit_code  # a server that is down is that, whichever step finds out
    return failed
