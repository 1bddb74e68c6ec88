"""Send spans to a collector by OTLP (`OTEL_...`) from a queue; it delays the end by at most `CLOSE_S` seconds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from pearl.contrib.telemetry.tracing import Telemetry
from pearl.errors import UsageError
from pearl.errors.escaping import redacted
from pearl.plugins.version import __version__

CLOSE_S = 2.0  # Maximum seconds to send the last spans at the end

PROTOCOL_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Collector(Telemetry):
    """Sends spans to a collector."""

    def __init__(self, on_trouble: Callable[[str], object]) -> None:
        for variable in PROTOCOL_VARIABLES:
            protocol = os.environ.get(variable, "").strip()
            if protocol and protocol != "http/protobuf":
                raise UsageError(
                    f"{variable} is '{protocol}', but spans are sent by http/protobuf only",
                    help=f"export {variable}=http/protobuf, with its port, usually 4318",
                )
        self._counting = _Counting(OTLPSpanExporter())
        self._processor = _Counted(self._counting)
        self._is_closed = False
        name = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "pearl"}
        resource = Resource.create({**name, "service.version": __version__})
        # Not at the exit of the process, where the wait has no bound.
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(self._processor)
        super().__init__(provider, on_trouble=on_trouble)

    def close(self) -> None:
        """Send the remaining spans within `CLOSE_S`, and report undelivered ones."""
        if self._is_closed:
            return
        self._is_closed = True
        closing = threading.Thread(target=self._processor.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_S)
        n, n_delivered = self._processor.n_ended, self._counting.n_delivered
        if n_delivered < n:
            named = (os.environ.get(variable, "").strip() for variable in ENDPOINT_VARIABLES)
            address = redacted(next(filter(None, named), "http://localhost:4318"))
            self._on_trouble(
                f"{n - n_delivered:,} of {n:,} spans did not reach the collector at {address}"
            )


class _Counted(BatchSpanProcessor):
    """Counts ended spans."""

    n_ended = 0

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self.n_ended += 1
        super().on_end(span)


class _Counting(SpanExporter):
    """Counts delivered spans."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.n_delivered = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.n_delivered += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()
