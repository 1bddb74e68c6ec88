"""`PlanGraph` + document → the value of every step.

Independent steps run concurrently. A failing step cancels the others and raises `ExecutionError`.
Requests are built by `RequestBuilder`, which substitutes arguments structurally, never by text
replacement.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pearl.actions import by_search, native
from pearl.actions.arithmetic.faults import DivisionByZeroError, MagnitudeError, NotGivenError
from pearl.actions.ranking import NONE
from pearl.actions.searching import Fetched
from pearl.actions.values import EmptyListError, Scalar, Value, behind
from pearl.documents.document import Document
from pearl.documents.numbers import UnclearNumberError
from pearl.documents.rows import DOCUMENT, Rows
from pearl.dsl.decoding.constraint import Constraint
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Reference, Step
from pearl.dsl.signatures import NOTHING, Action, ValueType
from pearl.errors import BudgetError, ExecutionError, ModelError, PausedError, PearlError
from pearl.interpreter import figure_source
from pearl.interpreter.asking import Asker
from pearl.interpreter.context import Context
from pearl.interpreter.figure_source import ShownPassage
from pearl.interpreter.limits import ContextLimits
from pearl.interpreter.offloading import off_loop
from pearl.interpreter.requests import RequestBuilder
from pearl.interpreter.row_requests import RowRequests, check_numbers
from pearl.interpreter.row_steps import RowReader, TextRead
from pearl.interpreter.step_result import StepResult
from pearl.llm import ActionTask, Completion, Model, Request, Usage
from pearl.llm.fallback import ConstraintFallback, reply_fallback
from pearl.llm.gathering import first_failure
from pearl.llm.middleware.caching import ItemCache
from pearl.replies.typed import Reply, State
from pearl.retrieval.search import Searcher
from pearl.trace import (
    Purpose,
    StepFailed,
    StepStarted,
    Trace,
    retrieved,
)


async def run(
    graph: PlanGraph,
    document: Document,
    model: Model,
    limits: ContextLimits,
    trace: Trace,
    fallback: ConstraintFallback | None = None,
    items: ItemCache | None = None,
    searcher: Searcher | None = None,
) -> tuple[StepResult, ...]:
    """Run every step."""
    interpreter = _Interpreter(graph, document, model, limits, trace, fallback, items, searcher)
    return await interpreter.run()


class _Interpreter:
    """One run of one plan over one document."""

    def __init__(
        self,
        graph: PlanGraph,
        document: Document,
        model: Model,
        limits: ContextLimits,
        trace: Trace,
        fallback: ConstraintFallback | None,
        items: ItemCache | None,
        searcher: Searcher | None,
    ) -> None:
        self._graph = graph
        self._calls = RequestBuilder(graph, document, limits, searcher)
        self._row_calls = RowRequests(self._calls)
        self._items = items
        self._document = document
        self._trace = trace
        self._fallback = fallback or reply_fallback(model.constrains)
        self._asker = Asker(model, self._calls, self._fallback, trace)

    async def run(self) -> tuple[StepResult, ...]:
        for step in self._graph.steps:
            check_numbers(step, self._graph.checked.action(step))
        if self._calls.limits.is_apart and (n := sum(map(self._calls.length, self._graph.steps))):
            await off_loop(n, lambda: self._calls.shown)
        if len(self._graph.steps) == 1:  # nothing to run beside it
            return (await self._when_ready(self._graph.steps[0], []),)
        tasks: list[asyncio.Task[StepResult]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for step, needs in zip(self._graph.steps, self._graph.dependencies, strict=True):
                    before = [tasks[i] for i in sorted(needs)]
                    tasks.append(group.create_task(self._when_ready(step, before)))
        except BaseExceptionGroup as failed:
            first = first_failure(failed)
            if isinstance(first, ExecutionError):
                first.finished = tuple(each.result() for each in tasks if _is_finished(each))
            raise first from first.__cause__
        return tuple(task.result() for task in tasks)

    async def _when_ready(self, step: Step, before: list[asyncio.Task[StepResult]]) -> StepResult:
        results = {result.output: result for result in [await task for task in before]}
        self._trace.append(StepStarted(step=step.output, action=step.action))
        began = time.monotonic()
        try:
            result = await self._step(step, results, began)
        except (BudgetError, PausedError) as error:  # not specific to this step
            self._trace.append(StepFailed(step=step.output, error=str(error)))
            raise
        except PearlError as error:
            if (
                not isinstance(error, ModelError)
                or error.kind not in ("refused", "filtered")
                or self._calls.limits.is_strict
            ):
                self._trace.append(StepFailed(step=step.output, error=str(error)))
                raise _step_error(step, error) from error
            action = self._graph.checked.action(step)
            result = replace(
                self._void(step, action, error.message, began), state="refused", n_calls=1,
                usage=error.usage or Usage(),
                value="refused: the model did not carry out this step",
            )  # fmt: skip
        self._trace.append(result.event)
        return result

    async def _step(self, step: Step, before: Mapping[str, StepResult], began: float) -> StepResult:
        action = self._graph.checked.action(step)
        if action.searches:
            return await self._search(step, action, before, began)
        if action.is_native:
            # Of many rows, it takes so long that calls under way would be late.
            n_rows = sum(len(r.value) for r in before.values() if isinstance(r.value, Rows))
            n_characters = 100 * n_rows + self._calls.length(step)
            return await off_loop(n_characters, partial(self._compute, step, action, before, began))
        inputs = {name: result.as_input for name, result in before.items()}
        if action.reads_rows:
            return await self._by_row(step, before, inputs, began)
        if action.asks_table:
            return await self._of_table(step, action, before, began)
        unsure = self._unsure(step, before)
        if unsure is not None and unsure.state == "refused":
            return self._void(step, action, _traced(unsure), began)
        task, shown = self._calls.task(step, inputs)
        if task.document is None:
            read = await self._asker.read(step, "step", self._calls.whole(task))
            context: Context | None = None
        else:
            context, pieces = await self._calls.pieces(task, task.document)
            read = await self._asker.over_pieces(step, task, pieces)
        if action.name == figure_source.ACTION:
            read = self._of_its_company(step, task, read, before, context)
        return StepResult(
            step.output, action.name, read.reply.value, False,
            "none" if context is None else context.strategy,
            None if context is None or shown is not None else context.coverage,
            read.n_calls, read.usage, time.monotonic() - began, shown,
            read.text, read.reply.quotes, read.reply.state, read.reply.why, read.truncated,
            None if context is None else self._told(step, context.fetched),
        )  # fmt: skip

    def _of_its_company(
        self,
        step: Step,
        task: ActionTask,
        read: TextRead,
        before: Mapping[str, StepResult],
        context: Context | None,
    ) -> TextRead:
        """What was read; undecided if it is the figure of another company than the one that is named."""
        inputs = (before[each.name].rows for each in step.references() if not each.is_context)
        shown = [
            ShownPassage(row.fields.get(DOCUMENT) or "", row.text)
            for rows in inputs
            for row in rows or ()
        ]
        if not shown and context is not None and context.fetched is not None:
            shown = [ShownPassage(hit.document, hit.text) for hit in context.fetched.hits]
        why = figure_source.why_of_another(task, read.reply, shown, self._calls.searched)
        reply = Reply("undecided", f"undecided: {why}", read.reply.quotes, why)
        return replace(read, reply=reply) if why else read

    async def _by_row(
        self,
        step: Step,
        before: Mapping[str, StepResult],
        inputs: Mapping[str, Value],
        began: float,
    ) -> StepResult:
        """The result of a step that is carried out for each row."""
        row_step = self._row_calls.step(step, inputs)
        unsure = next((r for r in before.values() if r.is_void), None)
        if unsure is not None:
            return self._void(step, row_step.task.action, _traced(unsure), began)
        reader = RowReader(
            step, row_step, self._row_calls, self._calls.limits,
            partial(self._asker.ask, step, "items"), partial(self._read_alone, step), self._items,
            self._document.digest, self._fallback, self._calls.searcher.reranker,
        )  # fmt: skip
        read = await reader.run()
        n_undecided = len(read.rows.undecided)
        state: State = "undecided" if n_undecided else "found" if read.rows else "nothing"
        return StepResult(
            step.output, row_step.task.action.name, read.rows, False, "rows",
            self._calls.coverage(row_step.rows), read.n_calls, read.usage,
            time.monotonic() - began, reply="\n\n".join(read.replies), state=state,
            why=_rows_undecided(read.rows, len(row_step.rows)), fetched=self._told(step, read.ranked),
            verdicts=read.verdicts,
        )  # fmt: skip

    async def _read_alone(self, step: Step, task: ActionTask) -> TextRead:
        """Read one row as a document of its own."""
        _, pieces = await self._calls.pieces(task, task.document or "")
        return await self._asker.over_pieces(step, task, pieces)

    async def _search(
        self, step: Step, action: Action, before: Mapping[str, StepResult], began: float
    ) -> StepResult:
        """The result of an action that searches; undecided inputs make it undecided."""
        unsure = self._unsure(step, before)
        if unsure is not None:
            return self._void(step, action, _traced(unsure), began)
        inputs = {name: each.value for name, each in before.items()}
        values = self._calls.searched_values(step, inputs)
        if n_characters := self._calls.length(step):
            await off_loop(n_characters, self._calls.searched.prepare)
        try:
            found = await by_search.search(action, self._calls.searcher, values)
        except ValueError as error:
            raise ExecutionError(str(error), step=step.output) from error
        result = self._computed(step, action, found.rows, "", "found", began)
        return replace(result, fetched=self._told(step, found.fetched))

    async def _of_table(
        self, step: Step, action: Action, before: Mapping[str, StepResult], began: float
    ) -> StepResult:
        """The result of a question of a table; undecided inputs make it undecided."""
        from pearl.interpreter.table_steps import read_table  # late: few plans ask a table
        from pearl.tables.finding import SeveralTablesError

        unsure = self._unsure(step, before)
        if unsure is not None:
            return self._void(step, action, _traced(unsure), began)
        given, question = self._calls.asked(step, {n: each.value for n, each in before.items()})
        try:
            read = await read_table(
                step.output, action, question, given, self._calls.limits, partial(self._query, step)
            )
        except SeveralTablesError as error:
            return self._void(step, action, str(error), began)
        except ValueError as error:
            raise ExecutionError(str(error), step=step.output) from error
        result = self._computed(step, action, read.value, read.why, read.state, began)
        if read.event is not None:
            self._trace.append(read.event)
        return replace(
            result, is_native=False, n_calls=read.n_calls, usage=read.usage, cited=read.cited
        )  # fmt: skip

    async def _query(
        self,
        step: Step,
        request: Request,
        constraint: Constraint | None,
        flaw: Callable[[str], str | None],
    ) -> Completion:
        """Send a request for a query."""
        purpose: Purpose = "step" if len(request.messages) == 1 else "again"
        return await self._asker.ask(step, purpose, request, constraint, flaw)

    def _told(self, step: Step, fetched: Fetched | None) -> Fetched | None:
        """What was searched, told to the trace."""
        if fetched is not None:
            self._trace.append(retrieved(step.output, fetched))
        return fetched

    def _unsure(self, step: Step, before: Mapping[str, StepResult]) -> StepResult | None:
        """The first input of a step that has no value."""
        inputs = (before[r.name] for r in step.references() if not r.is_context)
        return next((result for result in inputs if result.is_void), None)

    def _compute(
        self, step: Step, action: Action, before: Mapping[str, StepResult], began: float
    ) -> StepResult:
        """The result of a native action; undecided inputs make it undecided."""
        unsure = self._unsure(step, before)
        why = "" if unsure is None else _traced(unsure)
        is_joined = native.is_joining(action)
        if unsure and not is_joined:  # joined texts include the undecided one
            return self._void(step, action, why, began)
        missing = _missing(step, action, before)
        values = self._calls.values(step, {name: each.value for name, each in before.items()})
        try:
            value = native.compute(action, values)
        except EmptyListError:
            given = behind(values)  # of which one that is undecided may be an entry
            value = [] if given is None else replace(given, rows=(), doubtful=given.undecided)
        except NotGivenError as error:
            return self._computed(step, action, _absent(error, before), "", "nothing", began)
        except ValueError as error:
            inputs = [before[r.name] for r in step.references() if not r.is_context]
            missing = missing or _nothing_in(inputs)
            if not missing and list(step.references()) and _is_unclear(error, inputs):
                return self._void(step, action, str(error), began)
            if not missing:
                raise ExecutionError(str(error), step=step.output) from error
            value = missing
        if missing:
            return self._computed(step, action, missing, why, "nothing", began)
        inputs = [before[r.name] for r in step.references() if not r.is_context]
        shows_document = any(reference.is_context for reference in step.references())
        found_none = bool(inputs) and all(each.state == "nothing" for each in inputs)
        # Joined texts say so, too, if all of them do.
        is_none = is_joined and found_none and not shows_document
        return self._computed(step, action, value, why, "nothing" if is_none else "found", began)

    def _computed(
        self, step: Step, action: Action, value: Value, why: str, state: State, began: float
    ) -> StepResult:
        """The result of a step that is computed, with the state that it has if it is not empty."""
        rows = behind([value])
        if rows is not None and rows.undecided and not why:
            why = _rows_undecided(rows)
        found = value.rows if isinstance(value, Scalar) and value.value == NONE else value
        is_empty = isinstance(found, list | Rows) and not found and not why
        if is_empty:
            state = "nothing"
        elif why and state == "found":
            state = "undecided"
        return StepResult(
            step.output, action.name, value, True, "none", None, 0, Usage(),
            time.monotonic() - began, state=state, why=why,
        )  # fmt: skip

    def _void(self, step: Step, action: Action, why: str, began: float) -> StepResult:
        """The result of a step that has no value, or whose input has none."""
        return StepResult(
            step.output, action.name, f"undecided: {why}", action.is_native, "none", None, 0,
            Usage(), time.monotonic() - began, state="undecided", why=why,
        )  # fmt: skip


def _is_finished(task: asyncio.Task[StepResult]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _missing(step: Step, action: Action, before: Mapping[str, StepResult]) -> str:
    """What is said in place of a value that an input did not find; "" if none is missing.

    "Nothing found: no sales in 2015" is a text with a number in it, and not that number.
    """
    for i, argument in enumerate(step.arguments):
        if not isinstance(argument, Reference) or argument.is_context:
            continue
        given, parameter = before[argument.name], action.parameter(i)
        is_text = isinstance(given.value, str)
        is_value = parameter.reads in ("value", "figure") or (
            is_text and parameter.type is not ValueType.TEXT and not parameter.reads
        )
        if given.state == "nothing" and is_value:
            return given.text if is_text else _nothing_in([given])
    return ""


def _nothing_in(inputs: Sequence[StepResult]) -> str:
    """What is said where an input found nothing; "" if all found something."""
    names = [each.output for each in inputs if each.state == "nothing"]
    return f"{NOTHING} There is nothing in '{names[0]}'" if names else ""


def _is_unclear(error: ValueError, inputs: Sequence[StepResult]) -> bool:
    """Whether a step has no value because a model's reply, or a cell, is not clear."""
    if isinstance(error, DivisionByZeroError | MagnitudeError):
        return False
    is_reply = any(isinstance(each.value, str | list) for each in inputs)
    return is_reply or isinstance(error, UnclearNumberError)


def _traced(result: StepResult) -> str:
    """Why a result is undecided, with the first undecided step."""
    if result.state == "refused":
        return f"step '{result.output}' was refused by the model"
    return result.why if result.is_native else f"step '{result.output}': {result.why}"


def _absent(error: NotGivenError, before: Mapping[str, StepResult]) -> str:
    """The value of a step that lacks an operand, and the steps that found none."""
    names = ", ".join(f"'{name}'" for name, each in before.items() if each.state == "nothing")
    return f"{NOTHING} {error}{f': nothing in {names}' if names else ''}"


def _rows_undecided(rows: Rows, n_asked: int = 0) -> str:
    n = len(rows.undecided)
    n_rows = max(n_asked, n + len(rows.values))
    return f"{n:,} of {n_rows:,} rows are undecided" if n else ""


def _step_error(step: Step, error: PearlError) -> ExecutionError:
    failed = ExecutionError(
        f"step '{step.output}' ({step.action}): {error.message}", step=step.output, help=error.help
    )
    failed.exit_code = error.exit_code  # keep the exit code of the cause
    return failed
