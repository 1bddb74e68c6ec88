"""Turn the events of tasks into spans."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

from msgspec import Struct, field
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    set_span_in_context,
)

from pearl.actions.operators import DIRECT
from pearl.contrib.telemetry import conventions
from pearl.documents.digest import text_sha256
from pearl.dsl.nodes import Plan, Step
from pearl.dsl.parser import read
from pearl.errors.escaping import to_json
from pearl.llm import Usage
from pearl.plugins.extras import require_extra
from pearl.plugins.version import __version__
from pearl.trace import (
    CallFailed,
    Event,
    LookedUp,
    ModelAttempted,
    ModelCalled,
    ModelProgressed,
    ModelWaited,
    PlanAttempted,
    PlanFailed,
    Retrieved,
    RunFinished,
    RunStarted,
    StepFailed,
    StepFinished,
    StepStarted,
    Trace,
)
from pearl.trace.exporters import EventListener, exported

_NO_PLAN = Plan(())


@lru_cache(maxsize=64)
def _plan(text: str) -> Plan:
    """The plan of a text, cached because many tasks have the same; without steps if the text cannot be parsed."""
    return read(text).plan or _NO_PLAN


NEW_ACTION = "NEW_ACTION"
"""Replaces the name of an action that a plan defines, because a model derives it from the question."""


class _Planning(Struct):
    """A plan that is being written."""

    span: Span
    end_ns: int
    n_written: int = 0
    n_attempts: int = 0
    usage: Usage = field(default_factory=Usage)
    is_asked: bool = False


class _Step(Struct):
    """A step that is running."""

    span: Span
    n_sent: int = 0
    n_kept: int = 0
    failed_by: str | None = None


class TaskSpans:
    """The spans of one task, created from its events."""

    def __init__(
        self,
        telemetry: Telemetry,
        id: str,
        run_id: str,
        *,
        began_ns: int | None = None,
        replayed_with: str | None = None,
    ) -> None:
        self._tracer = telemetry.tracer
        self._has_content = telemetry.has_content
        self._began_ns = self._end_ns = time.time_ns() if began_ns is None else began_ns
        self._replayed_with = replayed_with
        self._plan = _NO_PLAN
        self._nodes: dict[str, Step] = {}  # by output, in their order
        self._planning: _Planning | None = None
        self._steps: dict[str, _Step] = {}
        self._done: dict[str, Span] = {}
        self._usage = Usage()
        self._root = self._tracer.start_span(
            "invoke_workflow pearl",
            start_time=self._began_ns,
            attributes={
                **conventions.named(
                    operation="invoke_workflow",
                    kind="CHAIN",
                    workflow="pearl",
                    conversation=run_id or None,
                ),
                **({"pearl.run.id": run_id} if run_id else {}),
                **self._content("pearl.task.id", id),
            },
        )

    def hear(self, event: Event) -> None:
        """Process an event; events come in the order of the trace."""
        at = self._began_ns + round(event.t_s * 1e9)
        self._end_ns = max(self._end_ns, at)
        match event:
            case ModelAttempted():
                self._attempted(event, at)
            case PlanAttempted() | PlanFailed():
                self._planned(event, at)
            case RunStarted():
                self._plan = _plan(event.plan)
                self._nodes = {step.output: step for step in self._plan.steps}
                if self._planning is not None:
                    self._end_planning(self._planning, plan=event.plan)
                    self._planning = None
                self._root.set_attributes(
                    {
                        "pearl.method": event.method,
                        "pearl.doc.sha256": event.document_sha256,
                        "pearl.doc.characters": event.n_characters,
                        **self._content("input.value", event.question),
                        **self._content("pearl.doc.name", event.document),
                    }
                )
            case StepStarted():
                self._step_started(event, at)
            case ModelCalled() | CallFailed():
                self._called(event, at)
            case Retrieved():
                attributes = {
                    **conventions.search_attributes(event),
                    **self._content("input.value", "\n".join(event.queries)),
                }
                parent = self._span_of(event.step)
                began_ns = at - round(event.duration_s * 1e9)
                self._start("retrieval", parent, began_ns, attributes).end(at)
            case LookedUp():
                self._span_of(event.step).set_attributes(
                    {"pearl.lookup.lines": event.n_lines, "pearl.lookup.repairs": event.n_repairs}
                )
            case StepFinished():
                self._step_finished(event, at)
            case StepFailed():
                if (failed := self._steps.pop(event.step, None)) is not None:
                    self._fail(failed.span, failed.failed_by or "step_failed", event.error)
                    failed.span.end(at)
            case ModelWaited():
                told = {"pearl.wait.seconds": event.wait_s, "pearl.wait.attempt": event.attempt}
                self._root.add_event("pearl.wait", told, at)
            case RunFinished():
                self._root.set_attribute("pearl.status", event.status)
                self._root.set_attributes(self._content("output.value", event.answer))
                self._usage = event.usage

    def end(
        self, error: BaseException | None = None, *, status: str = "", answer: str = ""
    ) -> None:
        """End all open spans."""
        kind = conventions.error_type(error)
        stopped_by = "cancelled" if status == "interrupted" else kind
        if self._planning is not None:
            failed_by = stopped_by if self._plan is _NO_PLAN else None
            self._end_planning(self._planning, failed_by=failed_by)
        for step in self._steps.values():
            self._fail(step.span, "cancelled", "")
            step.span.end(self._end_ns)
        self._planning, self._steps = None, {}
        if error is not None:
            self._fail(self._root, kind or "", str(error))
        if status or error is not None:
            self._root.set_attribute("pearl.status", status or "failed")
        self._root.set_attributes(
            {
                **self._content("output.value", answer),
                "pearl.usage.input_tokens": self._usage.n_input_tokens,
                "pearl.usage.output_tokens": self._usage.n_output_tokens,
            }
        )
        self._root.end(self._end_ns)

    def mark_kept(self, status: str) -> None:
        """Mark the task as skipped because its row is stored."""
        self._root.set_attributes({"pearl.cache": "hit", "pearl.status": status})

    def _planned(self, event: PlanAttempted | PlanFailed, at: int) -> None:
        planning = self._planning_since(at)
        if isinstance(event, PlanAttempted):
            self._usage += event.usage
            planning.usage += event.usage
            planning.n_written += 1
            planning.is_asked |= not conventions.is_computed(event.model)
            planning.span.set_attributes(self._content("output.value", event.reply))
            if event.usage != Usage():
                began_ns = self._began_ns if planning.n_written == 1 else planning.end_ns
                self._replay(event, at, at - began_ns, replied_by=event.model)
        else:
            self._fail(planning.span, "PlanningError", "")
        planning.end_ns = at

    def _planning_since(self, began_ns: int) -> _Planning:
        """The span of the planner, started now if it is new."""
        planning = self._planning
        if planning is None:
            if self._replayed_with is not None:
                began_ns = self._began_ns
            told = conventions.named(operation="plan", kind="AGENT", agent="pearl")
            span = self._start("plan pearl", self._root, began_ns, told)
            planning = self._planning = _Planning(span, began_ns)
        return planning

    def _end_planning(
        self, planning: _Planning, *, plan: str = "", failed_by: str | None = None
    ) -> None:
        span = planning.span
        span.set_attribute("pearl.plan.repairs", max(0, planning.n_written - 1))
        if plan:
            span.set_attribute("pearl.plan.sha256", text_sha256(plan))
            span.set_attributes(self._content("output.value", plan))
        if planning.is_asked and self._replayed_with is None:
            is_kept = not planning.n_attempts and planning.usage == Usage()
            span.set_attribute("pearl.cache", "hit" if is_kept else "miss")
        if failed_by is not None:
            self._fail(span, failed_by, "")
        span.end(planning.end_ns)

    def _step_started(self, event: StepStarted, at: int) -> None:
        node, step = self._node(event.step), self._nodes.get(event.step)
        names = [] if step is None else [each.name for each in step.references()]
        parents = [name for name in dict.fromkeys(names) if name in self._nodes]
        new = {action.name for action in self._plan.new_actions if action != DIRECT}
        action = NEW_ACTION if event.action in new and not self._has_content else event.action
        attributes: dict[str, Any] = {
            **conventions.named(
                operation="execute_tool",
                kind="TOOL",
                tool=action,
                tool_type="function",
                tool_call=node,
            ),
            "pearl.step.id": node,
            "pearl.step.deps": [self._node(parent) for parent in parents],
            "graph.node.id": node,
        }
        if parents:
            attributes["graph.node.parent_id"] = self._node(parents[0])
        if self._has_content and step is not None:
            arguments = conventions.text_of(
                to_json([conventions.argument_data(argument) for argument in step.arguments])
            )
            attributes |= conventions.named(tool_arguments=arguments)
            attributes |= {"input.value": arguments, "pearl.step.output": event.step}
        done = [span for parent in parents if (span := self._done.get(parent))]
        links = [Link(span.get_span_context()) for span in done[1:]]
        span = self._start(f"execute_tool {action}", self._root, at, attributes, links)
        self._steps[event.step] = _Step(span)

    def _step_finished(self, event: StepFinished, at: int) -> None:
        step = self._steps.pop(event.step, None)
        if step is None:
            return
        step.span.set_attributes(conventions.result_attributes(event, step.n_sent, step.n_kept))
        if self._has_content:
            result = conventions.named(tool_result=conventions.text_of(event.value))
            step.span.set_attributes({**result, **self._content("output.value", event.value)})
        step.span.end(at)
        self._done[event.step] = step.span

    def _called(self, event: ModelCalled | CallFailed, at: int) -> None:
        self._usage += event.usage
        step = self._steps.get(event.step)
        if conventions.is_computed(event.model):
            return
        is_kept = isinstance(event, ModelCalled) and event.is_remembered
        error = event.kind if isinstance(event, CallFailed) else None
        if step is not None:
            step.n_kept += is_kept
            step.n_sent += not is_kept
            step.failed_by = error
        if not is_kept:
            self._replay(event, at, round(event.duration_s * 1e9), step=event.step, error=error)

    def _attempted(self, event: ModelAttempted, at: int) -> None:
        began_ns = max(self._began_ns, at - round(event.duration_s * 1e9))
        if event.purpose == "plan":
            planning = self._planning_since(began_ns)
            planning.n_attempts += 1
            planning.is_asked = True
            planning.end_ns = at
            parent = planning.span
        else:
            parent = self._span_of(event.step)
        name, attributes = conventions.call_attributes(event.model, event.replied_by, event.usage)
        is_replayed = self._replayed_with is not None  # without its prompt and reply
        has_content = self._has_content and not is_replayed
        attributes |= conventions.attempt_attributes(event, has_content=has_content)
        is_remote = event.server or is_replayed
        kind = SpanKind.CLIENT if is_remote else SpanKind.INTERNAL
        span = self._start(f"chat {name}", parent, began_ns, attributes, kind=kind)
        if event.error is not None:
            self._fail(span, event.error, "")
        span.end(at)

    def _replay(
        self,
        event: PlanAttempted | ModelCalled | CallFailed,
        at: int,
        duration_ns: int,
        **details: Any,
    ) -> None:
        """Add the call of a recorded reply, because a trace does not record attempts."""
        if self._replayed_with is not None:
            attempted = ModelAttempted(
                model=self._replayed_with, number=0, messages=(),
                purpose="plan" if isinstance(event, PlanAttempted) else "step",
                usage=event.usage, duration_s=duration_ns / 1e9, **details,
            )  # fmt: skip
            self._attempted(attempted, at)

    def _start(
        self,
        name: str,
        parent: Span,
        began_ns: int,
        attributes: dict[str, Any],
        links: list[Link] | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        context = set_span_in_context(parent)
        return self._tracer.start_span(
            name, context, kind, attributes, links or [], start_time=began_ns
        )

    def _fail(self, span: Span, kind: str, message: str) -> None:
        span.set_attributes(conventions.named(error=kind))
        told = conventions.text_of(message) if self._has_content and message else None
        span.set_status(Status(StatusCode.ERROR, told))

    def _span_of(self, step: str) -> Span:
        running = self._steps.get(step)
        return self._root if running is None else running.span

    def _node(self, output: str) -> str:
        """The id of a step in the graph: its number in the plan, because its name is content."""
        return str([*self._nodes].index(output) + 1 if output in self._nodes else 0)

    def _content(self, name: str, text: str) -> dict[str, conventions.AttributeValue]:
        return {name: conventions.text_of(text)} if self._has_content and text else {}


class Telemetry:
    """Creates spans of questions, plans, steps and calls.

    An error in telemetry ends the telemetry with a notice, but not the work.

    Example:
        >>> import pearl
        >>> from opentelemetry.sdk.trace import TracerProvider
        >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        >>> provider, spans = TracerProvider(), InMemorySpanExporter()
        >>> provider.add_span_processor(SimpleSpanProcessor(spans))
        >>> document = pearl.Document("Ada sold the boat because it leaked.")
        >>> with Telemetry(provider).tracing() as trace:
        ...     answer = pearl.run(pearl.Pearl().ask("Why did Ada sell the boat?", document, trace=trace))
        >>> spans.get_finished_spans()[-1].name
        'invoke_workflow pearl'
    """

    def __init__(
        self,
        provider: TracerProvider | None = None,
        *,
        content: bool | None = None,
        on_trouble: Callable[[str], object] | None = None,
    ) -> None:
        require_extra("telemetry", "telemetry", "opentelemetry")
        from opentelemetry.trace import get_tracer_provider

        self.has_content = conventions.captures_content() if content is None else content
        self._on_trouble = on_trouble or (lambda line: warnings.warn(line, stacklevel=2))
        self.tracer = (provider or get_tracer_provider()).get_tracer(
            "pearl", __version__, schema_url=conventions.SCHEMA_URL
        )
        self._is_over = False

    def tracing(
        self, id: str = "", listener: Callable[[Event], None] | None = None
    ) -> AbstractContextManager[Trace]:
        """A trace for one question (`Pearl.ask`, `Pearl.execute`, ...); its spans end with the block."""
        return exported(self, id, listener)

    def close(self) -> None:
        """Close nothing: the caller owns the provider of the spans."""

    def run(self, run_id: str = "") -> RunSpans:
        """The spans of the tasks of one run."""
        return RunSpans(self, run_id)

    @contextmanager
    def guarded(self) -> Iterator[bool]:
        """Guard telemetry code: an error in the block ends telemetry. Yields whether telemetry is on."""
        try:
            yield not self._is_over
        except Exception as error:  # noqa: BLE001 - no error of telemetry may affect the answer
            self._is_over = True
            self._on_trouble(f"telemetry has ended: {type(error).__name__}: {error}")


class RunSpans:
    """The spans of the tasks of one run, by their ids."""

    def __init__(self, telemetry: Telemetry, run_id: str) -> None:
        self._telemetry = telemetry
        self._run_id = run_id
        self._running: dict[str, TaskSpans] = {}

    def listening(self, listener: EventListener | None = None) -> EventListener:
        """A listener that creates spans, and forwards events to another listener."""

        def hear(id: str, event: Event) -> None:
            if not isinstance(event, ModelProgressed):  # frequent, and not in spans
                with self._telemetry.guarded() as is_on:
                    if is_on:
                        if id not in self._running:
                            began_ns = time.time_ns() - round(event.t_s * 1e9)
                            spans = TaskSpans(self._telemetry, id, self._run_id, began_ns=began_ns)
                            self._running[id] = spans
                        self._running[id].hear(event)
            if listener is not None:
                listener(id, event)

        return hear

    def kept(self, id: str, status: str) -> None:
        """Add the span of a task that is skipped because its row is stored."""
        with self._telemetry.guarded() as is_on:
            if is_on:
                spans = TaskSpans(self._telemetry, id, self._run_id)
                spans.mark_kept(status)
                spans.end()

    def finished(
        self,
        id: str,
        trace: Trace | None = None,
        *,
        error: BaseException | None = None,
        status: str = "",
        answer: str = "",
    ) -> None:
        """End the spans of a task; without a listener they are created from its trace."""
        with self._telemetry.guarded() as is_on:
            spans = self._running.pop(id, None)
            if not is_on:
                return
            if spans is None:
                events = () if trace is None else tuple(trace)
                took_ns = round(events[-1].t_s * 1e9) if events else 0
                model = next((e.model for e in events if isinstance(e, RunStarted)), "")
                model = model.partition(" (")[0]  # without those of other roles
                began_ns = time.time_ns() - took_ns
                spans = TaskSpans(
                    self._telemetry, id, self._run_id, began_ns=began_ns, replayed_with=model
                )
                for event in events:
                    spans.hear(event)
            spans.end(error, status=status, answer=answer)

    def close(self) -> None:
        """End the spans of unfinished tasks."""
        for id in tuple(self._running):
            self.finished(id, status="interrupted")
