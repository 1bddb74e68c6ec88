"""Trace → when each call and each wait was, for a drawing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pearl.trace import CallFailed, Event, ModelCalled, ModelWaited, PlanAttempted


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that took time."""

    what: str
    kind: Literal["plan", "call", "kept", "failed", "wait"]
    start_s: float
    end_s: float


def bars(events: Iterable[Event]) -> list[Bar]:
    """What took time, in the order in which it began.

    Example:
        >>> from pearl.trace import ModelWaited
        >>> bars([ModelWaited(t_s=1.0, reason="the server asks for it", wait_s=2.0, attempt=1)])
        [Bar(what='waits: the server asks for it', kind='wait', start_s=1.0, end_s=3.0)]
    """
    found: list[Bar] = []
    planned_s = 0.0
    for event in events:
        match event:
            case PlanAttempted():
                what = "plan" if event.round == 0 else f"plan, repair {event.round}"
                found.append(Bar(what, "plan", planned_s, event.t_s))
                planned_s = event.t_s
            case ModelCalled():
                kind: Literal["kept", "call"] = "kept" if event.is_remembered else "call"
                start_s = max(0.0, event.t_s - event.duration_s)
                found.append(Bar(f"{event.step}: {event.purpose}", kind, start_s, event.t_s))
            case CallFailed():
                start_s = max(0.0, event.t_s - event.duration_s)
                what = f"{event.step}: {event.purpose}, {event.kind}"
                found.append(Bar(what, "failed", start_s, event.t_s))
            case ModelWaited():
                end_s = event.t_s + event.wait_s
                found.append(Bar(f"waits: {event.reason}", "wait", event.t_s, end_s))
            case _:
                pass
    return sorted(found, key=lambda bar: bar.start_s)


def n_at_once(calls: Iterable[Bar]) -> int:
    """The most calls that were under way at the same time."""
    changes = sorted(
        change
        for bar in calls
        if bar.kind in ("call", "failed")
        for change in ((bar.start_s, 1), (bar.end_s, -1))
    )
    n = most = 0
    for _, change in changes:
        n += change
        most = max(most, n)
    return most
