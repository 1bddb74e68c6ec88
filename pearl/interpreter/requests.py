"""Step + values of earlier steps → the calls it takes: what is sent, and nothing sent yet.

Running a plan and forecasting what a run costs make their prompts here, so that they make the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pearl.actions import native
from pearl.actions.native import Value
from pearl.actions.reply import says_nothing
from pearl.documents.document import Document
from pearl.documents.tokens import Counter
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Argument, ListLiteral, Number, Reference, Step, String
from pearl.dsl.signatures import ValueType
from pearl.interpreter.context import (
    DEFAULT_RETRIEVED_TOKENS,
    Context,
    ContextOverflowError,
    Strategy,
    fit,
)
from pearl.interpreter.prompt import action_messages, again_messages, combine_messages
from pearl.llm import ActionTask, CombineTask, Message, Request
from pearl.llm.reply_limits import reading_limit
from pearl.retrieval import DEFAULT_RANKER

__all__ = ["MARK_TOKENS", "PROMPT_MARGIN", "ContextLimits", "RequestBuilder", "chunk_size"]

MARK_TOKENS = 16
"""Tokens kept for the marks around a part that is merged."""

PROMPT_MARGIN = 64
"""Tokens of a prompt left free: tokens of its pieces do not add up exactly."""


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """How much a call may hold.

    Attributes:
        strategy: What to do with a document that is longer than the window.
        window: Tokens of the model's window; None for no limit.
        max_output_tokens: Tokens of a reply at most; None for `reply_limits`' own.
        max_prompt_tokens: Tokens of a prompt at most, and of both where a step is asked again; None
            for what the window leaves.
        max_retrieved: Tokens of a document that `retrieve` shows a step at most.
        max_parts: Parts of a document that `map-reduce` reads at most; None for all.
        ranker: What scores passages, as `pearl.retrieval` names it.
        counter: Counts tokens the way the model does, or estimates them.
    """

    counter: Counter
    strategy: Strategy = "auto"
    window: int | None = None
    max_output_tokens: int | None = None
    max_retrieved: int = DEFAULT_RETRIEVED_TOKENS
    max_parts: int | None = None
    ranker: str = DEFAULT_RANKER
    max_prompt_tokens: int | None = None

    @property
    def reply_tokens(self) -> int:
        """Tokens that a reply may have, which are kept free for it in the window."""
        return reading_limit(self.window, self.max_output_tokens)

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens that a prompt may have; None for no limit.

        The reply has its place in the window, and none in what may be spent on prompts.
        """
        if self.window is None:
            return self.max_prompt_tokens
        left = self.window - self.reply_tokens
        return left if self.max_prompt_tokens is None else min(left, self.max_prompt_tokens)


class RequestBuilder:
    """Makes the calls of the steps of one plan over one document.

    It keeps nothing but counts of texts and cuts of documents, so the same step and values always
    give the same calls.

    Args:
        graph: The plan.
        document: What CTX stands for.
        limits: How much each call may hold.
    """

    def __init__(self, graph: PlanGraph, document: Document, limits: ContextLimits) -> None:
        self.graph = graph
        self.limits = limits
        self._text = document.text
        self._question = graph.checked.plan.question or ""
        self._n_tokens: dict[str, int] = {}
        self._cuts: dict[tuple[str, int], Context] = {}

    @property
    def texts(self) -> tuple[str, str]:
        """All text that is there before the first call: the document and the plan."""
        return self._text, str(self.graph.checked)

    def values(self, step: Step, earlier: Mapping[str, Value]) -> list[Value]:
        """What the arguments of a step stand for."""
        return [_value(argument, earlier, self._text) for argument in step.arguments]

    def task(self, step: Step, earlier: Mapping[str, str]) -> tuple[ActionTask, str | None]:
        """The step as data, and the earlier output that stands for the document, if one does.

        Args:
            step: One that a model carries out.
            earlier: The text of each earlier output: of a model's reply all that it says, for what
                it quotes may decide the next step.
        """
        action = self.graph.checked.action(step)
        document: str | None = None
        shown: str | None = None
        arguments: list[tuple[str, str]] = []
        inputs: set[str] = set()
        values = self.values(step, earlier)
        for i, (argument, raw) in enumerate(zip(step.arguments, values, strict=True)):
            parameter = action.parameter(i)
            value = native.show(raw)
            if parameter.type is ValueType.CONTEXT:
                is_document = isinstance(argument, Reference) and argument.is_context
                document, shown = value, None if is_document else value
                continue
            arguments.append((parameter.name, value))
            if not isinstance(argument, String | Number):
                inputs.add(parameter.name)
        task = ActionTask(
            step.output, action, tuple(arguments), document, step.explanation, self._question,
            frozenset(inputs), self.graph.gives[step.output],
        )  # fmt: skip
        return task, shown

    def request(self, task: ActionTask | CombineTask) -> Request:
        """What is sent for a task."""
        messages = (
            combine_messages(task.step, task.parts)
            if isinstance(task, CombineTask)
            else action_messages(task)
        )
        return Request(messages, task, max_output_tokens=self.limits.reply_tokens)

    def again(self, request: Request, reply: str, wanted: ValueType) -> Request | None:
        """What is sent after a reply that cannot be read; None where it does not fit.

        Where a step's share of a budget is what limits its prompts, both have to fit into that.
        """
        again = replace(request, messages=again_messages(request.messages, reply, wanted))
        share = self.limits.max_prompt_tokens
        if share is not None and sum(map(self._counted, (request, again))) > share:
            return None
        return None if self._excess(again.messages) > 0 else again

    def whole(self, task: ActionTask) -> ActionTask:
        """A task that reads no document, if it fits one call.

        Raises:
            NoRoomError: It does not.
        """
        if self._excess(action_messages(task)) > 0:
            raise ContextOverflowError(
                "the step's inputs do not fit the model's window",
                help="use a model with a larger window, or shorten what earlier steps return",
            )
        return task

    def pieces(self, task: ActionTask, document: str) -> tuple[Context, tuple[ActionTask, ...]]:
        """What a step is shown of its document, and a task for each text of it.

        Raises:
            NoRoomError: It does not fit, and the strategy allows nothing else.
        """
        room = self.room(task)
        while True:
            context = self._fit(task, document, room)
            tasks = tuple(replace(task, document=text) for text in context.texts)
            if room is None:
                return context, tasks
            excess = max(self._excess(action_messages(piece)) for piece in tasks)
            if excess <= 0:
                return context, tasks
            room -= excess  # tokens do not add up exactly, so whole prompts are counted

    def cut(self, document: str, room: int) -> Context:
        """The parts of a document that is too long for one call, without regard to any step."""
        key = (document, room)
        if key not in self._cuts:
            self._cuts[key] = fit(
                document,
                strategy="map-reduce",
                budget=room,
                count=self.limits.counter.count,
                query="",
                n_tokens=self.count(document),
            )
        return self._cuts[key]

    def groups(self, task: ActionTask, texts: Sequence[str]) -> list[list[str]]:
        """Runs of results that fit one merging call, as long as possible.

        Raises:
            NoRoomError: Not even two results fit.
        """
        room = self.room(task)
        if room is None:
            return [list(texts)]
        groups: list[list[str]] = [[]]
        used = 0
        for text in texts:
            n = self.limits.counter.count(text) + MARK_TOKENS
            if groups[-1] and used + n > room:
                groups.append([])
                used = 0
            groups[-1].append(text)
            used += n
        groups = [part for group in groups for part in self._parted(task, group)]
        if len(groups) == len(texts):
            raise ContextOverflowError(
                "the results over two parts of the document do not fit one call",
                help="use a model with a larger window, or --max-output-tokens",
            )
        return groups

    def room(self, task: ActionTask) -> int | None:
        """Tokens left for the document once everything else of the call has its place."""
        most = self.limits.prompt_tokens
        if most is None:
            return None
        bare = combine_messages(task, [])  # the longest frame a call of this step has
        around = sum(self.limits.counter.count(message.content) for message in bare)
        return most - around - PROMPT_MARGIN

    def count(self, text: str) -> int:
        """Tokens of a document; each is counted once."""
        if text not in self._n_tokens:
            self._n_tokens[text] = self.limits.counter.count(text)
        return self._n_tokens[text]

    def _fit(self, task: ActionTask, document: str, room: int | None) -> Context:
        limits = self.limits
        # Nobody asks how long a document is that is shown whole, whatever its length.
        is_counted = room is not None or limits.strategy == "map-reduce"
        n_tokens = self.count(document) if is_counted else 0
        if (
            room is not None and 0 < room < n_tokens and limits.max_parts is None
            and limits.strategy in ("auto", "map-reduce")
        ):  # fmt: skip
            return self.cut(document, chunk_size(room))
        return fit(
            document,
            strategy=limits.strategy,
            budget=room,
            count=limits.counter.count,
            query=" ".join([*(value for _, value in task.arguments), task.explanation]),
            n_tokens=n_tokens,
            max_retrieved=limits.max_retrieved,
            max_parts=limits.max_parts,
            ranker=limits.ranker,
        )

    def _parted(self, task: ActionTask, group: list[str]) -> Iterator[list[str]]:
        """A group, in halves where its prompt as a whole is too long after all."""
        if len(group) == 1 or self._excess(combine_messages(task, group)) <= 0:
            yield group
            return
        middle = len(group) // 2
        yield from self._parted(task, group[:middle])
        yield from self._parted(task, group[middle:])

    def _counted(self, request: Request) -> int:
        return self.limits.counter.count(request.prompt)

    def _excess(self, messages: tuple[Message, ...]) -> int:
        """Tokens by which a prompt is too long."""
        most = self.limits.prompt_tokens
        if most is None:
            return 0
        prompt = "\n\n".join(message.content for message in messages)
        return self.limits.counter.count(prompt) - most


def chunk_size(room: int) -> int:
    """The length of the parts that a document is cut into where there is so much room, in tokens.

    A sixteenth less at most. Steps whose inputs differ a little in length so read the same parts:
    a server's prefix cache knows them, and how many there are can be told in advance.

    Example:
        >>> chunk_size(118_000), chunk_size(117_000), chunk_size(7)
        (114688, 114688, 7)
    """
    return room - room % (1 << max(0, room.bit_length() - 5))


def _value(argument: Argument, values: Mapping[str, Value], context: str) -> Value:
    """What an argument stands for."""
    match argument:
        case Reference():
            return context if argument.is_context else values[argument.name]
        case ListLiteral():
            read = [_value(item, values, context) for item in argument.items]
            shown = [each if isinstance(each, list) else [native.show(each)] for each in read]
            return [text for texts in shown for text in texts if not says_nothing(text)]
        case String() | Number():
            return argument.value
