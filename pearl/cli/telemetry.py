"""Telemetry on the command line: opened for a command, and closed with it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from pearl.cli.terminal import notice

if TYPE_CHECKING:
    from pearl.telemetry import Telemetry


def opened_telemetry(options: Mapping[str, Any]) -> Telemetry | None:
    """What makes spans of the running command; None where they are not asked for, or nothing is done."""
    if not options.get("telemetry") or options.get("dry_run"):
        return None
    from pearl.telemetry import to_collector

    # What is wrong is told once, at the end, and not for every batch.
    log = logging.getLogger("opentelemetry")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    collector = to_collector(notice)
    click.get_current_context().call_on_close(collector.close)
    return collector.telemetry
