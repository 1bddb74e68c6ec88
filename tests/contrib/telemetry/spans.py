"""Spans in memory, and as a readable tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SHOWN = (
    "error.type", "http.request.resend_count", "pearl.status", "pearl.cache", "pearl.cache.hits",
    "pearl.plan.repairs", "pearl.step.context", "pearl.step.state", "graph.node.id",
    "graph.node.parent_id",
)  # fmt: skip


class Spans:
    """A provider that keeps its spans in memory."""

    def __init__(self) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self._kept = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self._kept.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all if span.name == name]

    def tree(self, *shown: str) -> str:
        """A line a span, below its parent, in the order of their beginnings, with some attributes."""
        below: defaultdict[int | None, list[ReadableSpan]] = defaultdict(list)
        ids = {span.context.span_id: span for span in self.all if span.context}
        assert len(ids) == len(self.all)
        for span in self.all:
            assert span.start_time is not None
            assert span.end_time is not None
            assert span.start_time <= span.end_time
            parent = span.parent and ids.get(span.parent.span_id)
            below[parent.context.span_id if parent and parent.context else None].append(span)
        lines: list[str] = []

        def add(parent: int | None, depth: int) -> None:
            for span in sorted(below[parent], key=lambda each: each.start_time or 0):
                assert span.context is not None
                told = {name: (span.attributes or {}).get(name) for name in shown or SHOWN}
                said = [
                    f"{name.rpartition('.')[2]}={value}"
                    for name, value in told.items()
                    if value is not None
                ]
                mark = "! " if span.status.status_code.name == "ERROR" else ""
                links = [f"links={len(span.links)}"] if span.links else []
                lines.append(" ".join(["  " * depth + mark + span.name, *said, *links]))
                add(span.context.span_id, depth + 1)

        add(None, 0)
        return "\n".join(lines)
