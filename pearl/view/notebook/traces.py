"""A trace, as notebooks show it: its calls in time, then its events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from pearl.llm import Usage
from pearl.trace import Trace
from pearl.trace.events import Event
from pearl.view.notebook.markup import SOFT, Html, card, element, shortened
from pearl.view.timeline import Bar, bars, n_at_once

MAX_FIRST, MAX_LAST = 40, 10
"""Events that are listed, of the beginning and of the end."""

MAX_BARS = 30
MAX_FIELDS, MAX_VALUE = 8, 80
"""Fields of an event, and characters of each, that are shown."""

_COLOURS = {
    "plan": "#8b6fc0", "call": "#3f86c4", "kept": "#8a97a4", "failed": "#d64550", "wait": "#c4912a",
}  # fmt: skip
_LEFT, _ROW = 240, 20
_CELL = "text-align:left;vertical-align:top;padding:.1em .8em .1em 0;word-break:normal"


def trace_html(trace: Trace) -> Html:
    """A trace; of a long one the longest calls, and the first and last events."""
    events = list(trace)
    usage = trace.usage
    last_s = events[-1].t_s if events else 0.0
    head = element(
        "div", element("b", "Trace"), f" {shortened(trace.id, MAX_VALUE)} " if trace.id else " ",
        f"{len(events):,} events, {trace.n_calls:,} calls, {usage.n_input_tokens:,} tokens in, "
        f"{usage.n_output_tokens:,} out, {last_s:.2f} s",
    )  # fmt: skip
    left = len(events) - MAX_FIRST - MAX_LAST
    shown = [*map(_row, events if left <= 0 else events[:MAX_FIRST])]
    if left > 0:
        between = element("td", f"… {left:,} more", colspan=3, style=f"{_CELL};{SOFT}")
        shown += [element("tr", between), *map(_row, events[-MAX_LAST:])]
    table = element("table", element("tbody", *shown), style="border-collapse:collapse")
    summary = element("summary", "Events", style=SOFT)
    return card(head, *_timeline(bars(events)), element("details", summary, table))


def _timeline(calls: Sequence[Bar]) -> list[Html]:
    if not calls:
        return []
    last_s = max(bar.end_s for bar in calls) or 1.0
    longest = sorted(calls, key=lambda bar: bar.start_s - bar.end_s)[:MAX_BARS]
    drawn = sorted(longest, key=lambda bar: bar.start_s)
    rows: list[Html] = []
    for i, bar in enumerate(drawn):
        took = f"{bar.end_s - bar.start_s:.2f} s"
        rows += [
            element(
                "rect", element("title", f"{shortened(bar.what, MAX_VALUE)}: {took}"),
                x=f"{_LEFT + 400 * bar.start_s / last_s:.1f}", y=i * _ROW + 4,
                width=f"{max(1.5, 400 * (bar.end_s - bar.start_s) / last_s):.1f}", height=12,
                rx=2, fill=_COLOURS[bar.kind],
            ),
            _text(0, i * _ROW + 14, shortened(bar.what, 34)),
            _text(_LEFT + 410, i * _ROW + 14, took),
        ]  # fmt: skip
    svg = element(
        "svg", *rows, viewBox=f"0 0 {_LEFT + 470} {_ROW * len(drawn)}", width=_LEFT + 470, role="img",
        aria_label=f"Calls and waits over {last_s:.2f} seconds",
        style="max-width:100%;height:auto;display:block;color:inherit",
    )  # fmt: skip
    which = f"the longest {MAX_BARS} of {len(calls):,}" if len(calls) > MAX_BARS else "all"
    told = f"Planning, calls and waits in time ({which}), at most {n_at_once(calls)} at once"
    return [svg, element("div", told, style=SOFT)]


def _text(x: int, y: int, text: str) -> Html:
    return element("text", text, x=x, y=y, fill="currentColor", font_size=11)


def _row(event: Event) -> Html:
    return element(
        "tr",
        element("td", f"{event.t_s:.3f} s", style=f"{_CELL};white-space:nowrap"),
        element("td", event.event, style=_CELL),
        element("td", "; ".join(_fields(event)), style=f"{_CELL};{SOFT}"),
    )


def _fields(event: Event) -> list[str]:
    """What an event says beyond its kind and its time, where it is not what it is by default."""
    said = []
    for name, field in type(event).model_fields.items():
        value = getattr(event, name)
        if name in ("event", "t_s") or value == field.default:
            continue
        said.append(f"{name.removeprefix('n_')}: {_shown(value)}")
    return said[:MAX_FIELDS]


def _shown(value: object) -> str:
    match value:
        case Usage():
            return f"{value.n_input_tokens:,} in, {value.n_output_tokens:,} out"
        case str():
            return shortened(value, MAX_VALUE)
        case float():
            return f"{value:.3g}"
        case int() | date() | None:
            return str(value)
        case tuple() | list() | dict():
            return f"{len(value):,}"
        case _:
            return shortened(str(value), MAX_VALUE)
