"""Spans of OpenTelemetry (extra `telemetry`) for questions, plans, steps and calls: pass a `Telemetry` to a session, or trace a `Pearl`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    from pearl.telemetry.collector import Collector
    from pearl.telemetry.tracing import RunSpans as RunSpans
    from pearl.telemetry.tracing import Telemetry as Telemetry

_PACKAGES = (
    "opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.exporter.otlp",
    "opentelemetry.exporter.otlp.proto", "opentelemetry.exporter.otlp.proto.http",
)  # fmt: skip


def to_collector(on_trouble: Callable[[str], object]) -> Collector:
    """An exporter of spans to a collector; close it at the end."""
    require_extra("telemetry", "telemetry", *_PACKAGES)
    from pearl.telemetry.collector import Collector

    return Collector(on_trouble)


def __getattr__(name: str) -> Any:
    """What needs OpenTelemetry, imported when it is first taken."""
    if name not in ("RunSpans", "Telemetry"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("telemetry", "telemetry", "opentelemetry")
    from pearl.telemetry import tracing

    return getattr(tracing, name)
