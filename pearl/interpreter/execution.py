"""Checked plan + document + limits → `Answer`; records the start and end of the run in the trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal

from msgspec.structs import replace

from pearl import errors
from pearl.actions import by_search, native
from pearl.actions.arithmetic.program import DivisionByZeroError, MagnitudeError, NotGivenError
from pearl.actions.operators import DIRECT
from pearl.actions.searching import SearchedDocument
from pearl.actions.values import EmptyListError, Value, as_text, behind
from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, StepReply, collect
from pearl.documents.evidence.value_checks import unstated_number
from pearl.documents.numbers import (
    UnclearNumberError,
    find_quantity,
    read_quantity,
)
from pearl.documents.rows import Rows, shortened
from pearl.documents.units.record import below_headers
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import PlanGraph, build_graph
from pearl.dsl.nodes import ListLiteral, Plan, Reference, Step, String
from pearl.dsl.passes import Rewritten, rewrite_plan
from pearl.dsl.signatures import CTX, NOTHING, PERIOD, Action, ActionLibrary, ValueType
from pearl.interpreter.answer import Answer, compose, step_evidence
from pearl.interpreter.checking import REFUSED, Claim, check_claims, passage_of, with_checks
from pearl.interpreter.composing import compose_answer, composed_result
from pearl.interpreter.context import Context, fail_step, off_loop, unseen
from pearl.interpreter.looking import PERIODS, looks, of_other_period
from pearl.interpreter.model_calls import Asker, Reader, TextReply
from pearl.interpreter.naming import named_rows
from pearl.interpreter.parts import answer_parts, deciding_of, sources_of_part
from pearl.interpreter.prompt_taint import as_input, contents
from pearl.interpreter.provenance import Sources, heads_of, merged, sources_of
from pearl.interpreter.requests import RequestBuilder, query_of
from pearl.interpreter.results import Look, StepResult, computed, void
from pearl.interpreter.row import Passage, QuoteData
from pearl.interpreter.row_steps import RowReader, RowRequests, check_numbers
from pearl.llm import ActionTask, Usage
from pearl.llm.client import Role
from pearl.llm.concurrency import first_failure
from pearl.retrieval.search import Searcher
from pearl.trace import (
    PlanRewritten,
    RunFinished,
    RunStarted,
    StepFailed,
    StepStarted,
    Trace,
    retrieved,
)

N_HEAD = 200  # Characters shown from the beginning of a document, which often names its company


async def run(
    graph: PlanGraph,
    document: Document,
    readers: Mapping[Role, Reader],
    trace: Trace,
    searcher: Searcher | None = None,
) -> tuple[StepResult, ...]:
    """Run the steps of a plan; `readers` has the models by role."""
    main = readers["main"]
    asker = Asker(main, RequestBuilder(graph, document, main.limits, searcher), trace)
    others = {role: asker.of(reader) for role, reader in readers.items() if role != "main"}
    row_asker, escalation = others.get("rows", asker), others.get("escalate")
    for each in (asker, row_asker):
        each.escalation = escalation if escalation and escalation.name != each.name else None
        each.checker = None if main.limits.check == "off" else others.get("checker", asker)
    return await _Interpreter(asker, row_asker).run()


class _Interpreter:
    """One run of one plan over one document."""

    def __init__(self, asker: Asker, row_asker: Asker) -> None:
        self._calls = asker.calls
        self._graph = asker.calls.graph
        self._row_calls = RowRequests(row_asker.calls)
        self._trace = asker.trace
        self._asker = asker
        self._row_asker = row_asker
        self._contents = contents(self._graph)
        self._tasks: dict[int, asyncio.Task[StepResult]] = {}

    async def run(self) -> tuple[StepResult, ...]:
        for step in self._graph.steps:
            check_numbers(step, self._graph.checked.action(step))
        if len(self._graph.steps) == 1:  # No other step runs concurrently
            return (await self._when_ready(0),)
        try:
            async with asyncio.TaskGroup() as self._group:
                for i in sorted(self._graph.always):
                    self._begun(i)
        except BaseExceptionGroup as failed:
            first = first_failure(failed)
            if isinstance(first, errors.ExecutionError):
                first.finished = tuple(
                    task.result()
                    for _, task in sorted(self._tasks.items())
                    if task.done() and not task.cancelled() and task.exception() is None
                )
            raise first from first.__cause__
        results = []
        for i, step in enumerate(self._graph.steps):
            if i in self._tasks:
                results.append(self._tasks[i].result())
                continue
            is_native = self._graph.checked.action(step).is_native
            result = StepResult(
                step.output, step.action, "", is_native, state="not_needed", is_used=False
            )
            self._trace.append(result.event)
            results.append(result)
        return tuple(results)

    def _begun(self, i: int) -> asyncio.Task[StepResult]:
        """The task of a step; on first use, it is started after the tasks of the steps it needs."""
        if i not in self._tasks:
            for needed in sorted(self._graph.needs[i]):
                self._begun(needed)
            self._tasks[i] = self._group.create_task(self._when_ready(i))
        return self._tasks[i]

    async def _when_ready(self, i: int) -> StepResult:
        step = self._graph.steps[i]
        is_last = step is self._graph.composer  # The composer cites quotes of all steps before it
        needs = self._graph.always - {i} if is_last else self._graph.needs[i]
        before = [await self._begun(needed) for needed in sorted(needs)]
        if is_last:
            before = [task.result() for at, task in sorted(self._tasks.items()) if at != i]
        self._trace.append(StepStarted(step=step.output, action=step.action))
        began = time.monotonic()
        for tried in self._graph.tried.get(i, ())[1:]:
            if not before[-1].has_found:
                before.append(await self._begun(tried))
        results = {result.output: result for result in before}
        try:
            result = await self._step(step, results)
        except (errors.BudgetError, errors.PausedError) as error:  # Not specific to this step
            self._trace.append(StepFailed(step=step.output, error=str(error)))
            raise
        except (errors.PearlError, ValueError) as error:  # An action cannot use a value
            if (
                not isinstance(error, errors.ModelError)
                or error.kind not in ("refused", "filtered")
                or self._calls.limits.is_strict
            ):
                self._trace.append(StepFailed(step=step.output, error=str(error)))
                fail_step(step, error)
            result = replace(
                void(step, self._graph.checked.action(step), error.message),
                state="refused", value="refused: the model did not carry out this step",
            )  # fmt: skip
        self._calls.finished(step)
        if result.fetched is not None and not result.looks:
            self._trace.append(retrieved(step.output, result.fetched))
        asker, row_asker = self._asker, self._row_asker
        askers = (asker, row_asker, asker.escalation, row_asker.escalation, asker.checker)
        models = dict.fromkeys(a.name for a in askers if a and step.output in a.outputs)
        cut = self._asker.cut_prompts.get(step.output, "") or result.truncated
        n_calls, usage = asker.spent.get(step.output, (0, Usage()))
        result = replace(
            result, n_calls=n_calls, usage=usage, duration_s=time.monotonic() - began,
            models=tuple(models), truncated=cut,
        )  # fmt: skip
        n_characters = 100 * sum(len(each.rows or ()) for each in (result, *results.values()))
        result = await off_loop(n_characters, partial(self._with_sources, step, result, results))
        self._trace.append(result.event)
        return result

    async def _step(self, step: Step, before: Mapping[str, StepResult]) -> StepResult:
        action = self._graph.checked.action(step)
        if action.composes:
            return await self._compose(step, action, before)
        if "tries" in action.traits:
            return _taken(step, action, list(before.values()))
        unsure = next((result for result in _inputs(step, before) if result.is_void), None)
        if unsure is not None and not _may_take(action, unsure):
            return void(step, action, _traced(unsure))
        if action.cost == "computed":
            values = {name: result.value for name, result in before.items()}
            # Over many rows, a computation would block other calls, so it runs in a thread.
            n_rows = sum(len(value) for value in values.values() if isinstance(value, Rows))
            n_characters = 100 * n_rows + self._calls.length(step)
            why = "" if unsure is None else _traced(unsure)
            return await off_loop(
                n_characters, partial(self._compute, step, action, before, values, why)
            )
        is_reply = not (action.searches or action.asks_table)  # These read values, not replies
        inputs = {
            name: as_input(self._contents[name], result, is_reply=is_reply)
            for name, result in before.items()
        }
        if action.searches:
            return await self._search(step, action, inputs)
        if action.extracts:
            # Imported on use: few plans extract
            from pearl.interpreter.extracting import extract

            return await extract(step, inputs, self._row_calls, self._asker, self._row_asker)
        if "reduces" in action.traits:
            # Imported on use: few plans reduce rows
            from pearl.interpreter.reducing import Reducer

            return await Reducer(step, inputs, self._calls).run(self._asker)
        if action.reads_rows:
            row_step = self._row_calls.step(step, inputs)
            row_step = await off_loop(100 * len(row_step.rows), row_step.over)
            return await RowReader(step, row_step, self._row_asker).run()
        if action.asks_table:
            # Imported on use: few plans query a table
            from pearl.interpreter.table_steps import read_table

            given, question = self._calls.values(step, inputs)
            return await read_table(step, action, as_text(question), given, self._asker)
        task, shown = self._calls.task(step, inputs)
        if task.document is None:
            read = await self._asker.read(step, "step", self._calls.whole(task))
            context: Context | None = None
        else:
            context, pieces = await self._calls.pieces(task)
            read = await self._asker.over_pieces(step, task, pieces)
        result = replace(await self._of_reply(step, task, read), shown=shown)
        if context is None:
            return result
        if shown is None and context.spans is not None:
            result = replace(result, sources=Sources(context.spans))
        result = replace(
            result, context=context.strategy, coverage=context.coverage if shown is None else None,
            fetched=context.fetched,
        )  # fmt: skip
        search = self._calls.search_of(step, task.document or "")
        if result.state != "nothing" or not self._calls.n_looks or search is None:
            return result
        view, name = search
        queries, spans = [query_of(task)], context.spans or ()
        if name and (fetched := before[name].fetched) is not None:
            queries, spans = [*fetched.queries], self._calls.beside.get(step.output, ())
            spans = spans or tuple(hit.span for hit in fetched.hits)
        elif context.strategy != "retrieve":
            return result
        return await self._looked_again(step, task, view, result, queries, spans)

    async def _of_reply(self, step: Step, task: ActionTask, read: TextReply) -> StepResult:
        """The result of a step from the model's reply."""
        result = StepResult(
            step.output, task.action.name, read.reply.value, False, reply=read.text, quotes=read.reply.quotes,
            state=read.reply.state, why=read.reply.why, truncated=read.truncated,
        )  # fmt: skip
        is_number = task.gives is ValueType.NUMBER and task.document is not None
        if result.state == "found" and (is_number or "claims" in task.action.traits):
            return await self._with_checked_figure(step, task, read, result)
        return result

    async def _looked_again(
        self, step: Step, task: ActionTask, view: SearchedDocument, first: StepResult, queries: Sequence[str],
        shown: Sequence[errors.Span],
    ) -> StepResult:  # fmt: skip
        """Search further for a step that found nothing in the passages `shown`; return the final result."""
        seen, read = [*merged(view.text, shown)], list[TextReply]()
        tried, result = list[Look](), first
        async for look, asked in looks(
            step, task, queries, self._asker, read, lambda: any(unseen([each], seen) for each in view.every())
        ):  # fmt: skip
            if first.fetched is not None and not tried:
                self._trace.append(retrieved(step.output, first.fetched))
            # A search for other periods may use passages again: they may have another figure.
            excluded = () if look.by == PERIODS else seen
            context = await self._calls.further(asked, view, look.queries or queries, excluded)
            if context.fetched is not None:
                self._trace.append(retrieved(step.output, context.fetched, look.by))
            if not context.texts:
                tried.append(look)
                continue
            piece = replace(asked, document=context.texts[0])
            read.append(await self._asker.read(step, "look", piece))
            other = await self._of_reply(step, asked, read[-1])
            spans = context.spans or ()
            seen[:] = merged(view.text, (*seen, *spans))
            tried.append(look._replace(passages=len(spans), state=other.state))
            if other.state == "found":
                result = self._in_period(step, task, asked, other)
                break
            if result.state == "nothing":  # Keep an undecided result, which may be the value
                result = replace(other, truncated=result.truncated or other.truncated)
        note = f"step '{step.output}' found nothing and looked again: {'; '.join(map(str, tried))}"
        n_seen = sum(span.end - span.start for span in seen)
        return replace(
            result, shown=first.shown, looks=tuple(tried), fetched=first.fetched,
            notes=(note,) if tried else (), sources=Sources(tuple(seen)), context=first.context,
            coverage=first.coverage and min(1.0, n_seen / len(view.document.text)),
        )  # fmt: skip

    def _in_period(
        self, step: Step, task: ActionTask, asked: ActionTask, result: StepResult
    ) -> StepResult:
        """Mark a value of another period than the one asked for, so that other steps do not use it."""
        text, headings = self._calls.document.text, list[str]()
        passages, _ = collect([self._quoting(step, result.reply)], self._calls.document)
        amount = (quantity := find_quantity(result.text)) and quantity.value
        for quoted in (each.span for each in passages):
            part = self._calls.searched.part_at(quoted.start)
            for start, end, cells in below_headers(text[part.start : part.end]):
                if part.start + start < quoted.end and quoted.start < part.start + end:
                    read = ((name, read_quantity(cell)) for name, cell in cells.items())
                    headings += [name for name, each in read if each and each.value == amount]
        around = [" ".join(headings), " ".join(each.text for each in passages)]
        around += [passage_of(self._calls.document, passages), " ".join(self._heads(passages))]
        if not (other := of_other_period(task, asked, around)):
            return result
        wanted = dict(task.arguments).get(PERIOD) or " ".join(value for _, value in task.arguments)
        reason = f"asked for {shortened(wanted)}, found under {other}"
        if not self._calls.is_last(step):
            return replace(result, state="undecided", why=reason, value=f"undecided: {reason}")
        value = f"{result.value} ({reason})" if isinstance(result.value, str) else result.value
        return replace(result, value=value, truncated=reason)

    def _quoting(self, step: Step, reply: str, *given: str) -> StepReply:
        """A reply, with the sources and texts in which its quotes are verified."""
        return StepReply(step.output, reply, given, sources=self._graph.read_by[step.output])

    def _heads(self, passages: Sequence[Evidence]) -> list[str]:
        """The name, metadata and beginning of each passage's document, which name its company and period."""
        searched = self._calls.searched
        names = dict.fromkeys(each.source for each in passages if each.source in searched.names)
        return [" | ".join([name, *searched.head_of(name, N_HEAD)]) for name in names]

    def _with_sources(
        self, step: Step, result: StepResult, before: Mapping[str, StepResult]
    ) -> StepResult:
        """Add the spans of the document that a result derives from."""
        document, action, rows = self._calls.document, self._graph.checked.action(step), result.rows
        if "tries" in action.traits:
            return result
        read = tuple(view.span for view in self._calls.read_by(step))
        uses = bool(read)
        own = result.sources or Sources(
            is_by_row=action.is_native and not (uses or action.composes)
        )
        spans = own.spans or self._calls.beside.get(step.output, ())
        if action.searches:
            hits = result.fetched.hits if uses and result.fetched is not None else ()
            spans, own = tuple(hit.span for hit in hits), Sources(is_by_row=True)
        elif uses and not spans:
            spans = read
        if "splits" in action.traits:
            # Fields of an earlier row stay in a row that is a part of it, although their text is
            # elsewhere.
            heads = heads_of(document, rows.every) if uses and rows is not None else ()
            own = Sources(heads=heads, is_by_row=uses)
        if action.asks_table and not own.is_by_row:
            # The composer's prompt has notes on the rows, which may quote names of columns.
            uses_any = uses or any(r.sources and r.sources.uses_document for r in before.values())
            spans = (read or (errors.Span(0, len(document.text)),)) if uses_any else ()
        uses |= bool(spans) or action.extracts or "claims" in action.traits
        own = replace(own, spans=spans, uses_document=uses)
        earlier = {name: (each.sources or Sources(), each.rows) for name, each in before.items()}
        return replace(result, sources=sources_of(step, action, rows, own, earlier, document.text))

    async def _compose(
        self, step: Step, action: Action, before: Mapping[str, StepResult]
    ) -> StepResult:
        """Compose the answer from the results of other steps."""
        document = self._calls.document
        gather_evidence = partial(step_evidence, self._graph, list(before.values()), document)
        evidence, _ = await off_loop(len(document.text), gather_evidence)
        names = [reference.name for reference in step.references()]
        make = partial(answer_parts, self._graph, before, names, evidence, document)
        parts = await off_loop(sum(len(result.reply) for result in before.values()), make)
        quoted = Sources(tuple(evidence[n - 1].span for part in parts for n in part.evidence))
        if self._calls.limits.compose == "off":
            return replace(composed_result(step, action, parts), sources=quoted, parts=parts)
        question = step.arguments[0]
        asked = question.value if isinstance(question, String) else self._graph.checked.question
        steps = {each.output: each for each in self._graph.steps}
        rows = {
            name: named_rows(
                value, document, deciding_of(before, sources_of_part(name, steps, before)), is_brief=False
            )
            for name in names if isinstance(value := before[name].value, Rows)
        }  # fmt: skip
        computed = {
            name for name, result in before.items()
            if result.is_native and all(before[each].is_native for each in result.took)
        }  # fmt: skip
        composed = await compose_answer(
            step, action, asked, parts, rows, evidence, self._asker, computed
        )
        return replace(composed, sources=quoted, parts=parts)

    async def _with_checked_figure(
        self, step: Step, task: ActionTask, read: TextReply, result: StepResult
    ) -> StepResult:
        """Keep a number only if its quotes contain it or the checker confirms it, else mark it undecided; note a number that the model counted."""
        document = self._calls.document
        quoting = self._quoting(step, read.text, task.document or "")
        passages, others = collect([quoting], document)
        doubt = ""
        if task.gives is ValueType.NUMBER and task.document is not None:
            asked = " ".join((*(value for _, value in task.arguments), task.question))
            given = [each.text for each in others if each.reason == "given"]
            doubt = unstated_number(result.text, [each.text for each in passages] + given, asked)
        if doubt and "counts" in task.action.traits:
            reason = f"the number is counted by the model, {doubt}"
            return replace(result, truncated=result.truncated or reason)
        why = doubt
        if passages and (doubt or "claims" in task.action.traits):
            asked = " ".join(value for _, value in task.arguments if value)
            heads = [*self._heads(passages), passage_of(document, passages)]
            claim = Claim(f"{asked}: {result.text}", "\n...\n".join(heads))
            checked = await check_claims(self._asker, [claim], step=step)
            result = with_checks(result, checked)
            (verdict,) = checked.verdicts
            why = REFUSED.get(verdict) or (doubt if verdict == "not checked" else "")
        elif not self._asker.reads_prompts:
            return result  # People write scripted replies, and the embedded model computes its own: not checked
        if not why:
            return result
        return replace(result, state="undecided", why=why, value=f"undecided: {why}")

    async def _search(self, step: Step, action: Action, inputs: Mapping[str, Value]) -> StepResult:
        values = self._calls.values(step, inputs)
        if n_characters := self._calls.length(step):
            for view in self._calls.read_by(step):
                await off_loop(n_characters, view.prepare)
        search = await by_search.search(action, self._calls.searcher, values)
        return replace(computed(step, action, search.rows), fetched=search.fetched)

    def _compute(
        self,
        step: Step,
        action: Action,
        before: Mapping[str, StepResult],
        given: Mapping[str, Value],
        why: str,
    ) -> StepResult:
        """Compute a native action; `why` is the reason if one of the inputs of a join is undecided."""
        inputs = _inputs(step, before)
        missing = _missing(step, action, before, self._calls.graph.gives)
        values = self._calls.values(step, given)
        try:
            value = native.compute(action, values)
        except EmptyListError:
            rows = behind(values)  # An undecided row may be an entry of the list
            value = [] if rows is None else replace(rows, rows=(), doubtful=rows.undecided)
        except NotGivenError as error:
            names = ", ".join(
                f"'{name}'" for name, each in before.items() if each.state == "nothing"
            )
            lacking = f"{NOTHING} {error}{f': nothing in {names}' if names else ''}"
            return computed(step, action, lacking, "", "nothing")
        except ValueError as error:
            missing = missing or _nothing_in(inputs)
            # An unclear reply or cell of an input explains that a step has no value
            is_reply = any(isinstance(each.value, str | list) for each in inputs)
            is_unclear = not isinstance(error, DivisionByZeroError | MagnitudeError) and (
                is_reply or isinstance(error, UnclearNumberError)
            )
            if not missing and is_unclear and list(step.references()):
                return void(step, action, str(error) or repr(error))
            if not missing:
                raise
        except Exception as error:  # Plug-ins may raise any exception
            raise ValueError(f"the action raised {error!r}") from error
        if missing:
            return computed(step, action, missing, why, "nothing")
        shows_document = any(reference.is_context for reference in step.references())
        found_none = bool(inputs) and all(each.state == "nothing" for each in inputs)
        # A join is "nothing" only if all of its inputs are.
        is_none = native.is_joining(action) and found_none and not shows_document
        return computed(step, action, value, why, "nothing" if is_none else "found")


def _taken(step: Step, action: Action, tried: Sequence[StepResult]) -> StepResult:
    """The result of FIRST_FOUND: the last input tried if it found something, else the first undecided one."""
    unsure = [result for result in tried[:-1] if result.state != "nothing"]
    chosen = tried[-1]
    note = ""
    if chosen.has_found and unsure:
        note = f"'{chosen.output}' is taken, because of {'; '.join(map(_traced, unsure))}"
    elif not chosen.has_found:
        chosen = (*unsure, chosen)[0]
    uses = any(result.sources and result.sources.uses_document for result in tried)
    names = [chosen] if chosen.has_found else tried
    return StepResult(
        step.output, action.name, chosen.value, action.is_native, reply=chosen.reply, record=chosen.record,
        state=chosen.state, why=_traced(chosen) if chosen.why else "", truncated=note,
        sources=replace(chosen.sources or Sources(), uses_document=uses),
        took=tuple(name for result in names for name in result.took or (result.output,)),
    )  # fmt: skip


def _inputs(step: Step, before: Mapping[str, StepResult]) -> list[StepResult]:
    """The results that a step refers to, in order."""
    return [before[r.name] for r in step.references() if not r.is_context]


def _may_take(action: Action, unsure: StepResult) -> bool:
    """Whether an action can use an input that has no value."""
    if action.searches or action.reads_rows or action.asks_table:
        return False
    if action.is_native:
        return native.is_joining(action)  # A join includes the undecided text
    return unsure.state != "refused"


def _missing(
    step: Step, action: Action, before: Mapping[str, StepResult], gives: Mapping[str, ValueType]
) -> str:
    """Why a step cannot run: the text of an input that found nothing; "" if every input has a value."""
    for i, argument in enumerate(step.arguments):
        if isinstance(argument, ListLiteral) and action.parameter(i).name == "NUMBERS":
            items = [before[one.name] for one in argument.items if isinstance(one, Reference)]
            if none := _nothing_in([one for one in items if gives[one.output] is ValueType.NUMBER]):
                return none
        if not isinstance(argument, Reference) or argument.is_context:
            continue
        given, parameter = before[argument.name], action.parameter(i)
        is_text = isinstance(given.value, str)
        is_value = parameter.reads in ("value", "figure", "date") or (
            is_text and parameter.type is not ValueType.TEXT and not parameter.reads
        )
        if given.state == "nothing" and is_value:
            return given.text if is_text else _nothing_in([given])
    return ""


def _nothing_in(inputs: Sequence[StepResult]) -> str:
    """The text of an input that found nothing; "" if all inputs found something."""
    names = [each.output for each in inputs if each.state == "nothing"]
    return f"{NOTHING} There is nothing in '{names[0]}'" if names else ""


def _traced(result: StepResult) -> str:
    """Why a result is undecided, naming the first undecided step."""
    if result.state == "refused":
        return f"step '{result.output}' was refused by the model"
    return result.why if result.is_native else f"step '{result.output}': {result.why}"


async def answer_plan(
    checked: CheckedPlan,
    document: Document,
    readers: Mapping[Role, Reader],
    *,
    method: Literal["plan", "direct"],
    models: str,
    searcher: Searcher | None = None,
    trace: Trace | None = None,
) -> Answer:
    """Run a plan over a document; `readers` has the models by role, `models` names them all."""
    check_document(document)
    limits = readers["main"].limits
    began = time.monotonic()
    trace = Trace() if trace is None else trace
    graph, rewritten = prepared(checked)
    trace.append(
        RunStarted(
            question=checked.question,
            parameters=checked.given,
            plan=graph.text,
            method=method,
            document=document.name,
            document_sha256=document.digest,
            n_characters=len(document.text),
            n_document_tokens=limits.known_tokens(document.text),
            token_count=limits.counter.method,
            model=models,
            window=limits.window,
            steps=tuple(step.output for step in graph.steps),
        )
    )
    for rewrite in rewritten.rewrites:
        trace.append(PlanRewritten(by=rewrite.by, what=rewrite.what))
    try:
        ran = await run(rewritten.graph, document, readers, trace, searcher)
    except errors.PearlError:
        _fail(trace, time.monotonic() - began)
        raise
    put_together = partial(
        compose,
        graph,
        _as_written(graph, rewritten, ran, trace),
        document,
        method=method,
        model=models,
        usage=trace.usage,
        duration_s=time.monotonic() - began,
        trace=trace,
    )
    answer = await off_loop(len(document.text), put_together)
    if limits.is_strict and answer.status == "degraded":
        _fail(trace, answer.duration_s)
        error = errors.ExecutionError(
            f"the answer is degraded: {answer.why}",
            help="without --strict, degraded answers are kept",
        )
        error.finished = answer.steps
        raise error
    trace.append(
        RunFinished(
            status=answer.status,
            answer=answer.text,
            usage=answer.usage,
            duration_s=answer.duration_s,
            evidence=tuple(Passage.of(passage).to_dict() for passage in answer.evidence),
            unverified_quotes=tuple(QuoteData.of(quote).to_dict() for quote in answer.unverified),
            n_rows=len(answer.row_evidence),
        )
    )
    return answer


def _fail(trace: Trace, duration_s: float) -> None:
    trace.append(RunFinished(status="failed", answer="", usage=trace.usage, duration_s=duration_s))


def check_document(document: object) -> None:
    """Raise an error for anything but a `Document`, such as a text or a path."""
    if not isinstance(document, Document):
        raise errors.UsageError(
            f"expected a Document, not a {type(document).__name__}",
            help="pearl.load(path) reads a file, pearl.Document(text) holds a text",
        )


@lru_cache(maxsize=256)
def prepared(checked: CheckedPlan) -> tuple[PlanGraph, Rewritten]:
    """The graph of a plan as written, and the rewritten one that runs; built once for all documents."""
    graph = build_graph(checked)
    return graph, rewrite_plan(graph)


def _as_written(
    graph: PlanGraph, rewritten: Rewritten, ran: Sequence[StepResult], trace: Trace
) -> list[StepResult]:
    """One result for each step of the plan as written, in order."""
    by_output = {result.output: result for result in ran}
    for output, same in rewritten.stands_for.items():
        result = replace(by_output[same], output=output, n_calls=0, usage=Usage(), duration_s=0.0)
        by_output[output] = result
        trace.append(StepStarted(step=output, action=result.action))
        trace.append(result.event)
    written = [by_output[step.output] for step in graph.steps]
    # For other steps, or another order, evidence has other numbers.
    return written if rewritten.graph is graph else [replace(each, parts=()) for each in written]


def direct_plan(question: str) -> CheckedPlan:
    """A plan of one step, which answers the question directly."""
    step = Step("answer", DIRECT.name, (Reference(CTX), String(question)), "Answer the question")
    plan = Plan((step,), (DIRECT,), question)
    return CheckedPlan(plan, ActionLibrary("direct", [DIRECT]), ("answer",))
