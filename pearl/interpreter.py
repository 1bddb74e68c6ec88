"""`PlanGraph` + document → the value of every step.

Independent steps run at once. A step that fails cancels the others and surfaces as an
`ExecutionError`; nothing hangs. Arguments are substituted by structure, never by text replacement.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pearl.actions import native
from pearl.actions.native import Value
from pearl.context import DEFAULT_RETRIEVED_TOKENS, Context, NoRoomError, Strategy, fit
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Argument, ListLiteral, Number, Reference, Step, String
from pearl.dsl.signatures import Action, ValueType
from pearl.errors import ExecutionError, PearlError
from pearl.llm import ActionTask, CombineTask, Completion, Message, Model, Request, Task, Usage
from pearl.prompts.reading import action_messages, combine_messages
from pearl.sources import Document
from pearl.tokens import Counter
from pearl.trace import ModelCalled, StepFailed, StepFinished, StepStarted, Trace

__all__ = ["Limits", "StepResult", "run"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a call may hold.

    Attributes:
        strategy: What to do with a document that is longer than the window.
        window: Tokens of the model's window; None for no limit.
        max_output_tokens: Tokens kept free for the reply, and the most it may have.
        max_prompt_tokens: Tokens of a prompt at most; None for what the window leaves.
        max_retrieved: Tokens of a document that `retrieve` shows a step at most.
        max_parts: Parts of a document that `map-reduce` reads at most; None for all.
        counter: Counts tokens the way the model does, or estimates them.
    """

    counter: Counter
    strategy: Strategy = "auto"
    window: int | None = None
    max_output_tokens: int | None = None
    max_retrieved: int = DEFAULT_RETRIEVED_TOKENS
    max_parts: int | None = None
    max_prompt_tokens: int | None = None

    @property
    def reply_tokens(self) -> int:
        """Tokens kept free for the reply."""
        if self.max_output_tokens is not None:
            return self.max_output_tokens
        return 0 if self.window is None else min(4_096, self.window // 4)

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens that a prompt may have; None for no limit.

        The reply has its place in the window, and none in what may be spent on prompts.
        """
        if self.window is None:
            return self.max_prompt_tokens
        left = self.window - self.reply_tokens
        return left if self.max_prompt_tokens is None else min(left, self.max_prompt_tokens)


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
        self._document = document
        self._model = model
        self._limits = limits
        self._trace = trace
        self._question = graph.checked.plan.question or ""
        self._n_tokens: dict[str, int] = {}

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
            given = [_value(argument, values, self._document.text) for argument in step.arguments]
            try:
                value = native.compute(action, given)
            except ValueError as error:
                raise ExecutionError(str(error), step=step.output) from error
            return StepResult(
                step.output, action.name, value, True, "none", None, 0, Usage(),
                time.monotonic() - began,
            )  # fmt: skip
        task, shown = self._task(step, action, values)
        if task.document is None:
            if self._excess(action_messages(task)) > 0:
                raise NoRoomError(
                    "the step's inputs do not fit the model's window",
                    help="use a model with a larger window, or shorten what earlier steps return",
                )
            completion = await self._call(step, "step", action_messages(task), task)
            return StepResult(
                step.output, action.name, completion.text, False, "none", None, 1,
                completion.usage, time.monotonic() - began,
            )  # fmt: skip
        return await self._over_document(step, task, task.document, shown, began)

    def _task(
        self, step: Step, action: Action, values: Mapping[str, Value]
    ) -> tuple[ActionTask, str | None]:
        """The step as data, and the earlier output that stands for the document, if one does."""
        document: str | None = None
        shown: str | None = None
        arguments: list[tuple[str, str]] = []
        inputs: set[str] = set()
        for i, argument in enumerate(step.arguments):
            parameter = action.parameter(i)
            value = native.show(_value(argument, values, self._document.text))
            if parameter.type is ValueType.CONTEXT:
                is_document = isinstance(argument, Reference) and argument.is_context
                document, shown = value, None if is_document else value
                continue
            arguments.append((parameter.name, value))
            if not isinstance(argument, String | Number):
                inputs.add(parameter.name)
        task = ActionTask(
            step.output, action, tuple(arguments), document, step.explanation, self._question,
            frozenset(inputs),
        )  # fmt: skip
        return task, shown

    async def _over_document(
        self, step: Step, task: ActionTask, document: str, shown: str | None, began: float
    ) -> StepResult:
        context = await asyncio.to_thread(self._fit, task, document)
        pieces = [replace(task, document=text) for text in context.texts]
        purpose: Literal["step", "part"] = "step" if len(pieces) == 1 else "part"
        parts = await _all(
            [self._call(step, purpose, action_messages(piece), piece) for piece in pieces]
        )
        texts = [part.text for part in parts]
        usage = sum((part.usage for part in parts), Usage())
        n_calls = len(parts)
        while len(texts) > 1:
            groups = self._groups(task, texts)
            merged = await _all([self._merge(step, task, group) for group in groups])
            texts = [completion.text for completion in merged]
            usage = sum((completion.usage for completion in merged), usage)
            n_calls += sum(len(group) > 1 for group in groups)
        return StepResult(
            step.output, task.action.name, texts[0], False, context.strategy,
            None if shown is not None else context.coverage,
            n_calls, usage, time.monotonic() - began, shown,
        )  # fmt: skip

    def _fit(self, task: ActionTask, document: str) -> Context:
        """What the step is shown of its document."""
        room = self._room(task)
        while True:
            context = fit(
                document,
                strategy=self._limits.strategy,
                budget=room,
                count=self._limits.counter.count,
                query=" ".join([*(value for _, value in task.arguments), task.explanation]),
                n_tokens=self._count(document),
                max_retrieved=self._limits.max_retrieved,
                max_parts=self._limits.max_parts,
            )
            pieces = (replace(task, document=text) for text in context.texts)
            excess = max(self._excess(action_messages(piece)) for piece in pieces)
            if room is None or excess <= 0:
                return context
            room -= excess  # tokens do not add up exactly, so whole prompts are counted

    async def _merge(self, step: Step, task: ActionTask, group: list[str]) -> Completion:
        if len(group) == 1:
            return Completion(group[0], self._model.name)
        combine = CombineTask(task, tuple(group))
        return await self._call(step, "combine", combine_messages(task, group), combine)

    def _groups(self, task: ActionTask, texts: list[str]) -> list[list[str]]:
        """Runs of results that fit one merging call, as long as possible."""
        room = self._room(task)
        if room is None:
            return [texts]
        groups: list[list[str]] = [[]]
        used = 0
        for text in texts:
            n = self._limits.counter.count(text) + 16  # the marks around a part
            if groups[-1] and used + n > room:
                groups.append([])
                used = 0
            groups[-1].append(text)
            used += n
        groups = [part for group in groups for part in self._parted(task, group)]
        if len(groups) == len(texts):
            raise NoRoomError(
                "the results over two parts of the document do not fit one call",
                help="use a model with a larger window, or --max-output-tokens",
            )
        return groups

    def _parted(self, task: ActionTask, group: list[str]) -> Iterator[list[str]]:
        """A group, in halves where its prompt as a whole is too long after all."""
        if len(group) == 1 or self._excess(combine_messages(task, group)) <= 0:
            yield group
            return
        middle = len(group) // 2
        yield from self._parted(task, group[:middle])
        yield from self._parted(task, group[middle:])

    def _excess(self, messages: tuple[Message, ...]) -> int:
        """Tokens by which a prompt is too long."""
        most = self._limits.prompt_tokens
        if most is None:
            return 0
        prompt = "\n\n".join(message.content for message in messages)
        return self._limits.counter.count(prompt) - most

    def _room(self, task: ActionTask) -> int | None:
        """Tokens left for the document once everything else of the call has its place."""
        most = self._limits.prompt_tokens
        if most is None:
            return None
        bare = combine_messages(task, [])  # the longest frame a call of this step has
        around = sum(self._limits.counter.count(message.content) for message in bare)
        return most - around - 64

    def _count(self, text: str) -> int:
        if self._limits.prompt_tokens is None:
            return 0
        if text not in self._n_tokens:
            self._n_tokens[text] = self._limits.counter.count(text)
        return self._n_tokens[text]

    async def _call(
        self,
        step: Step,
        purpose: Literal["step", "part", "combine"],
        messages: tuple[Message, ...],
        task: Task,
    ) -> Completion:
        began = time.monotonic()
        completion = await self._model.complete(
            Request(messages, task, max_output_tokens=self._limits.max_output_tokens)
        )
        self._trace.append(
            ModelCalled(
                step=step.output,
                purpose=purpose,
                model=completion.model,
                duration_s=time.monotonic() - began,
                usage=completion.usage,
            )
        )
        return completion


def _value(argument: Argument, values: Mapping[str, Value], context: str) -> Value:
    """What an argument stands for."""
    match argument:
        case Reference():
            return context if argument.is_context else values[argument.name]
        case ListLiteral():
            return [native.show(_value(item, values, context)) for item in argument.items]
        case String() | Number():
            return argument.value


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
