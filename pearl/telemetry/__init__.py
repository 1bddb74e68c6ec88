"""Spans of OpenTelemetry (extra `telemetry`) for questions, plans, steps and calls: pass a `Telemetry` to a session, or trace a `Pearl`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pearl.plugins.extras import require_extra
from pearl.telemetry.tracing import RunSpans as RunSpans
from pearl.telemetry.tracing import Telemetry as Telemetry

if TYPE_CHECKING:
    from pearl.telemetry.collector import Collector

_PACKAGES = (
    "opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.exporter.otlp",
    "opentelemetry.exporter.otlp.proto", "opentelemetry.exporter.otlp.proto.http",
)  # fmt: skip


def to_collector(on_trouble: Callable[[str], object]) -> Collector:
    """An exporter of spans to a collector; close it at the end."""
    require_extra("telemetry", "telemetry", *_PACKAGES)
    from pearl.telemetry.collector import Collector

    return Collector(on_trouble)
