"""Events → spans of every task."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pearl.plugins.extras import require_extra
from pearl.plugins.version import __version__
from pearl.telemetry.conventions import SCHEMA_URL, captures_content
from pearl.trace import Event, ModelProgressed, RunStarted, Trace

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from pearl.telemetry.spans import TaskSpans

EventListener = Callable[[str, Event], None]
"""Callback for the events of a task, with its id."""


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

        self.has_content = captures_content() if content is None else content
        self._on_trouble = on_trouble or (lambda line: warnings.warn(line, stacklevel=2))
        self._tracer = (provider or get_tracer_provider()).get_tracer(
            "pearl", __version__, schema_url=SCHEMA_URL
        )
        self._is_over = False

    @contextmanager
    def tracing(
        self, id: str = "", listener: Callable[[Event], None] | None = None
    ) -> Iterator[Trace]:
        """A trace for one question (`Pearl.ask`, `Pearl.execute`, ...); its spans end with the block."""
        run = self.run()
        told = run.listening(None if listener is None else lambda id, event: listener(event))
        try:
            yield Trace(id, lambda event: told(id, event))
        except BaseException as error:
            run.finished(id, error=error)
            raise
        run.finished(id)

    def run(self, run_id: str = "") -> RunSpans:
        """The spans of the tasks of one run."""
        return RunSpans(self, run_id)

    def spans(self, id: str, run_id: str, **options: Any) -> TaskSpans:
        """The spans of one task; options as of `TaskSpans`."""
        from pearl.telemetry.spans import TaskSpans

        return TaskSpans(
            self._tracer, has_content=self.has_content, id=id, run_id=run_id, **options
        )

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
                        self._spans(id, event).hear(event)
            if listener is not None:
                listener(id, event)

        return hear

    def kept(self, id: str, status: str) -> None:
        """Add the span of a task that is skipped because its row is stored."""
        with self._telemetry.guarded() as is_on:
            if is_on:
                spans = self._telemetry.spans(id, self._run_id)
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
                spans = self._telemetry.spans(
                    id, self._run_id, began_ns=time.time_ns() - took_ns, replayed_with=model
                )
                for event in events:
                    spans.hear(event)
            spans.end(error, status=status, answer=answer)

    def close(self) -> None:
        """End the spans of unfinished tasks."""
        for id in tuple(self._running):
            self.finished(id, status="interrupted")

    def _spans(self, id: str, event: Event) -> TaskSpans:
        spans = self._running.get(id)
        if spans is None:
            began_ns = time.time_ns() - round(event.t_s * 1e9)
            spans = self._telemetry.spans(id, self._run_id, began_ns=began_ns)
            self._running[id] = spans
        return spans
