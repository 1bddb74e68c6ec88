"""Exporters of traces: they listen to the events of tasks and send them to the user's monitoring system.

A module has `create`, whose result Python callers may also give to a `Session`. `OTEL_TRACES_EXPORTER` names the one that
`--telemetry` opens. No error of an exporter may affect the work: it calls `on_trouble` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pearl.trace import Event, Trace

EventListener = Callable[[str, Event], None]  # Called with the id of a task and each of its events


class RunExporter(Protocol):
    """Exports the tasks of one run."""

    def listening(self, listener: EventListener | None = None) -> EventListener:
        """A listener that exports events and passes them on to another listener."""

    def kept(self, id: str, status: str) -> None:
        """Export a task that is skipped because its row is stored."""

    def finished(
        self, id: str, trace: Trace | None = None, *, error: BaseException | None = None, status: str = "", answer: str = "",
    ) -> None:  # fmt: skip
        """End a task; if its events were not received by a listener, export those of its trace."""

    def close(self) -> None:
        """End all unfinished tasks."""


class TraceExporter(Protocol):
    """Exports the tasks of runs."""

    def run(self, run_id: str = "") -> RunExporter:
        """Start the export of a run."""

    def close(self) -> None:
        """Send the remaining data, within a time limit."""


class ExporterModule(Protocol):
    """The contract of an exporter plug-in."""

    DESCRIPTION: str

    def create(self, on_trouble: Callable[[str], object]) -> TraceExporter:
        """Create the exporter of a process; a `UsageError` if it cannot work."""


CONTRACT = ExporterModule
PLUGINS: dict[str, Any] = {}


@contextmanager
def exported(
    exporter: TraceExporter, id: str = "", listener: Callable[[Event], None] | None = None
) -> Iterator[Trace]:
    """A context with the trace of one question, which is exported at its end."""
    run = exporter.run()
    hear = run.listening(None if listener is None else lambda id, event: listener(event))
    try:
        yield Trace(id, lambda event: hear(id, event))
    except BaseException as error:
        run.finished(id, error=error)
        raise
    run.finished(id)
