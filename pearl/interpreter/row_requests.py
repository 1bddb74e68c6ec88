"""A step that a model carries out row by row → its items, in batches of one request each.

Execution and cost estimation both batch here, so they agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pearl.actions.by_row import ByRow, by_row, each_of, known, query_of, reading, shown_text
from pearl.actions.values import Value, as_rows, as_text, number_of, without_repeats
from pearl.documents.numbers import whole_number
from pearl.documents.rows import Rows
from pearl.dsl.nodes import Argument, ListLiteral, Number, Step, String
from pearl.dsl.signatures import Action
from pearl.errors import ExecutionError
from pearl.interpreter.prompt import items_messages
from pearl.interpreter.requests import RequestBuilder
from pearl.llm import ActionTask, ItemsTask, Request
from pearl.llm.reply_limits import reply_limit

ITEM_TOKENS = 24
"""Tokens reserved for the tags around an item, and for the seams of its text."""


@dataclass(frozen=True, slots=True)
class RowStep:
    """A step that is carried out row by row."""

    rows: Rows
    task: ItemsTask
    how: ByRow
    reading: Action
    is_each: bool
    k: int = 0
    query: str = ""
    instruction: str = ""

    def shown(self, rows: Rows) -> list[str | None]:
        """What is shown of each row; None where its value is undecided."""
        if self.is_each:
            return [row.value for row in rows]
        return [shown_text(row, self.instruction) for row in rows]

    def texts(self, rows: Rows) -> list[str]:
        """The different texts that are shown and not blank, in order of first occurrence."""
        return [text for text in dict.fromkeys(self.shown(rows)) if text and text.strip()]

    @property
    def may_be_rechecked(self) -> bool:
        """Whether two replies about a value can be compared: lines differ in their words."""
        return self.task.kind in ("yes_no", "label")


def check_numbers(step: Step, action: Action) -> None:
    """Check the numbers of rows that a step takes as literals, before any call is made."""
    for i, argument in enumerate(step.arguments):
        parameter = action.parameter(i)
        if parameter.reads == "number" and isinstance(argument, String | Number):
            try:
                # K is a place or a number of rows to choose; N may be the size of no group.
                least = int(parameter.name == "K")
                whole_number(number_of(argument.value), parameter.name, least=least)
            except ValueError as error:
                message = f"step '{step.output}' ({step.action}): {error}"
                raise ExecutionError(message, step=step.output) from error


class RowRequests:
    """Builds the requests of steps that are carried out row by row."""

    def __init__(self, builder: RequestBuilder) -> None:
        self._builder = builder
        self._limits = builder.limits

    def step(self, step: Step, earlier: Mapping[str, Value]) -> RowStep:
        """The rows and the task of a step."""
        library = self._builder.graph.checked.actions
        action = self._builder.graph.checked.action(step)
        first, *values = self._builder.values(step, earlier)
        how = by_row(action)
        labels: tuple[str, ...] = ()
        k = 0
        arguments: list[tuple[str, str]] = []
        inputs: set[str] = set()
        try:
            for i, value in enumerate(values, start=1):
                parameter = action.parameter(i)
                if parameter.reads == "number":
                    k = whole_number(number_of(value), parameter.name, least=1)
                    continue
                if how.KIND == "label" and parameter.name == "LABELS":
                    labels = tuple(without_repeats(as_rows(value).values))
                else:
                    arguments.append((parameter.name, as_text(value)))
                if not _is_literal(step.arguments[i]):
                    inputs.add(parameter.name)
            if how.KIND == "label" and not labels:
                raise ValueError("there is no label to choose from")
        except ValueError as error:
            raise ExecutionError(str(error), step=step.output) from error
        n_picks = k if how.KIND == "pick" else 0
        task = ItemsTask(
            step.output, action, tuple(arguments), (), how.KIND, labels, n_picks,
            inputs=frozenset(inputs),
            is_echoed=how.KIND != "pick" and not self._limits.is_constrained,
        )  # fmt: skip
        is_each = each_of(action, library) is not None
        query = ""
        if self._builder.searcher.reranker is not None:
            query = dict(arguments).get(query_of(how), "")
        said = [value for name, value in arguments if name not in inputs]
        if action.name not in known():  # the others speak of rows and labels
            said.append(action.definition)
        return RowStep(
            as_rows(first), task, how, reading(action, library), is_each, k, query, " ".join(said)
        )

    def batches(
        self, row_step: RowStep, texts: Sequence[str], size: int | None = None
    ) -> tuple[list[ItemsTask], list[str]]:
        """Texts in batches, each of a request that fits; and those too long for any."""
        if row_step.is_each:
            return [], list(texts)
        available = self._available(row_step.task)
        batches: list[list[str]] = []
        long: list[str] = []
        used = 0
        for text in texts:
            n = 0 if available is None else self._limits.counter.count(text) + ITEM_TOKENS
            if available is not None and n > available:
                long.append(text)
                continue
            is_full = not batches or len(batches[-1]) == (size or self._limits.items_per_call)
            if is_full or (available is not None and used + n > available):
                batches.append([])
                used = 0
            batches[-1].append(text)
            used += n
        return [replace(row_step.task, items=tuple(batch)) for batch in batches], long

    def request(self, task: ItemsTask) -> Request:
        """The request of a batch."""
        limits = self._limits
        most = reply_limit(
            task, limits.window, limits.max_output_tokens, max_item_tokens=limits.max_item_tokens
        )
        return Request(items_messages(task), task, max_output_tokens=most)

    def alone(self, row_step: RowStep, step: Step, text: str) -> ActionTask:
        """The task that reads one row as a document of its own."""
        action = row_step.reading
        arguments = [*row_step.task.arguments]
        if row_step.task.labels:
            arguments.insert(0, ("LABELS", "; ".join(row_step.task.labels)))
        return ActionTask(
            step.output, action, tuple(arguments), text, step.explanation, gives=action.returns
        )

    def _available(self, task: ItemsTask) -> int | None:
        """Tokens of a prompt that are left for items."""
        most = self._limits.prompt_tokens
        return None if most is None else most - self.frame_tokens(task)

    def frame_tokens(self, task: ItemsTask) -> int:
        """Tokens of a batch's prompt without its items, with a margin for one seam."""
        prompt = self.request(replace(task, items=())).prompt
        return self._limits.counter.count(prompt) + ITEM_TOKENS


def _is_literal(argument: Argument) -> bool:
    """Whether an argument stands in the plan, and is from no document."""
    if isinstance(argument, ListLiteral):
        return all(map(_is_literal, argument.items))
    return isinstance(argument, String | Number)
