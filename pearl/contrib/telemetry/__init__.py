"""Spans of OpenTelemetry (extra `telemetry`) for questions, plans, steps and calls: pass a `Telemetry` to a session, or trace a `Pearl`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pearl.plugins.extras import require_extra

if TYPE_CHECKING:
    from pearl.contrib.telemetry.collector import Collector as Collector
    from pearl.contrib.telemetry.tracing import RunSpans as RunSpans
    from pearl.contrib.telemetry.tracing import Telemetry as Telemetry

DESCRIPTION = "spans of OpenTelemetry, to a collector by OTLP"

_PACKAGES = (
    "opentelemetry", "opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.exporter.otlp",
    "opentelemetry.exporter.otlp.proto", "opentelemetry.exporter.otlp.proto.http",
)  # fmt: skip


def create(on_trouble: Callable[[str], object]) -> Collector:
    """Create an exporter of spans to a collector; the caller closes it."""
    require_extra("telemetry", "telemetry", *_PACKAGES)
    from pearl.contrib.telemetry.collector import Collector

    # Its errors are reported once, at the end, and not for every batch.
    log = logging.getLogger("opentelemetry")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    return Collector(on_trouble)


def __getattr__(name: str) -> Any:
    """Import a name that needs OpenTelemetry on its first use."""
    if name not in ("RunSpans", "Telemetry"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_extra("telemetry", "telemetry", "opentelemetry")
    from pearl.contrib.telemetry import tracing

    return getattr(tracing, name)
