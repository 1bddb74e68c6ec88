"""Plans, graphs, traces, answers, errors and documents → HTML for notebooks: `_repr_html_`.

Every object is one element of bounded size, without scripts or addresses: a macro of `notebook.html`. The template
escapes every text, so documents, models and users cannot inject markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from typing import Any

from pearl.documents.document import Document, part_spans
from pearl.documents.evidence import placed
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Plan, Step, one_line, print_argument, print_header
from pearl.errors import PearlError
from pearl.errors.diagnostics import Diagnostic, excerpt
from pearl.errors.escaping import escaped
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.answer import Answer
from pearl.interpreter.results import StepResult
from pearl.llm import Usage
from pearl.trace import Event, Trace
from pearl.view.page import TEMPLATES, bars, draw_plan, environment, n_at_once

__all__ = ["html_of"]

MAX_ATTEMPTS = 4
"""Maximum failed plans of an error."""

MAX_DRAWN, MAX_LINES = 60, 400
"""Maximum steps and dependencies that are drawn."""

MAX_TEXT = 4_000
"""Maximum characters of an answer."""

MAX_STEPS, MAX_VALUES = 8, 2_500
"""Maximum steps of an answer, and characters of their values together."""

FIRST, LAST = 1_200, 400
"""Maximum characters of the beginning and of the end of a document."""

FIRST_LINES, LAST_LINES = 12, 5

MAX_FIRST, MAX_LAST = 40, 10
"""Maximum events from the beginning and from the end of a trace."""

MAX_BARS = 30
"""Maximum calls that are drawn, the longest ones."""

MAX_FIELDS, MAX_VALUE = 8, 80
"""Maximum fields of an event, and characters of each."""

_SURROGATE = lazy_pattern("[\ud800-\udfff]")


@cache
def _macros() -> Any:
    # An overlay, so that templates of pages do not see these filters.
    shown = environment(TEMPLATES).overlay()
    shown.filters = {
        **shown.filters,
        "short": shortened,
        "one_line": one_line,
        "header": print_header,
        "arguments": _arguments,
        "fields": lambda event: list(_fields(event))[:MAX_FIELDS],
    }
    shown.globals = {**shown.globals, "located": _located}
    return shown.get_template("notebook.html").module


def shortened(text: str, most: int) -> str:
    """The beginning of a text, and how much is left out."""
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}… ({left:,} more characters)"


def _arguments(step: Step) -> str:
    return ", ".join(shortened(print_argument(each), 200) for each in step.arguments)


def _located(diagnostic: Diagnostic, text: str | None) -> dict[str, Any]:
    """The place of a diagnostic and, if the text is known, its line in three pieces."""
    span = diagnostic.span
    if text is None:
        return {"place": f"characters {span.start:,}-{span.end:,}", "line": 0}
    line, column = span.position(text)
    shown, lead, width = excerpt(span, text)
    return {
        "place": f"{line}:{column}", "line": line, "before": shown[:lead],
        "marked": shown[lead : lead + width] or " ", "after": shown[lead + width :],
    }  # fmt: skip


def _fields(event: Event) -> Iterator[str]:
    """The fields of an event whose values are not the default ones."""
    for name, field in type(event).model_fields.items():
        value = getattr(event, name)
        if name in ("event", "t_s") or value == field.default:
            continue
        match value:
            case Usage():
                text = f"{value.n_input_tokens:,} in, {value.n_output_tokens:,} out"
            case float():
                text = f"{value:.3g}"
            case int() | date() | None:
                text = str(value)
            case tuple() | list() | dict():
                text = f"{len(value):,}"
            case _:
                text = shortened(str(value), MAX_VALUE)
        yield f"{name.removeprefix('n_')}: {text}"


def error_html(error: PearlError) -> str:
    """An error with its help, and with every diagnostic that it has."""
    attempts = [a for a in getattr(error, "attempts", ()) if a.diagnostics][-MAX_ATTEMPTS:]
    found, text = getattr(error, "diagnostics", ()), getattr(error, "text", None)
    return str(_macros().error(error, type(error).__name__, found, text, attempts))


def graph_html(graph: PlanGraph) -> str:
    """A drawing of the graph, each step below its inputs, and the plan as text."""
    plan = graph.checked.plan
    # Steps use outputs of earlier steps only, so the first steps are a valid plan.
    drawing = draw_plan(type(plan)(plan.steps[:MAX_DRAWN]), {})
    left = len(drawing.lines) - MAX_LINES
    cut = [f"the first {MAX_DRAWN} of {len(plan.steps):,} steps"] * (len(plan.steps) > MAX_DRAWN)
    cut += [f"without {left:,} of their dependencies"] * (left > 0)
    paths = [line.path for line in drawing.lines[:MAX_LINES]]
    return str(_macros().graph(plan, drawing, paths, cut))


def document_html(document: Document) -> str:
    """A document; of a long one its beginning and its end."""
    text = document.text
    n_lines = text.count("\n") + 1
    first, last = text, None
    if len(text) > FIRST + LAST or n_lines > FIRST_LINES + LAST_LINES:
        first = "\n".join(text[:FIRST].split("\n")[:FIRST_LINES])
        last = "\n".join(text[max(len(first), len(text) - LAST) :].split("\n")[-LAST_LINES:])
    parts = list(part_spans(text, document.parts)) if document.parts else []
    return str(_macros().document(document, n_lines, parts, first, last))


def trace_html(trace: Trace) -> str:
    """A trace; of a long one the longest calls, and the first and last events."""
    recorded = list(trace)
    events: list[Event | None] = [*recorded]
    last_s = recorded[-1].t_s if recorded else 0.0
    left = len(events) - MAX_FIRST - MAX_LAST
    if left > 0:
        events[MAX_FIRST:-MAX_LAST] = [None]
    calls = bars(recorded)
    longest = sorted(calls, key=lambda bar: bar.start_s - bar.end_s)[:MAX_BARS]
    drawn = sorted(longest, key=lambda bar: bar.start_s)
    return str(_macros().trace(trace, events, left, calls, drawn, last_s, n_at_once(calls)))


def answer_html(answer: Answer) -> str:
    """An answer with its status, its evidence, what could not be verified, its plan and its steps."""
    notes = [*(answer.understood.notes if answer.understood else ()), *answer.notes]
    if answer.method == "direct":
        notes.insert(0, "answered directly, because no plan was valid")
    numbers = {id(each): number for number, each in enumerate(answer.evidence, start=1)}
    pieces: list[tuple[str, int | None]] = []
    room = MAX_TEXT
    for text, each in placed(answer.text, answer.evidence)[0]:
        pieces.append((shortened(text, room), None if each is None else numbers[id(each)]))
        room -= len(text)
        if room <= 0:
            break
    steps: list[tuple[StepResult, str]] = []
    room = MAX_VALUES
    for step in answer.steps[:MAX_STEPS]:
        steps.append((step, shortened(step.preview, room)))
        room = max(0, room - len(step.preview))
    return str(_macros().answer(answer, pieces, notes, steps))


_DRAWN: dict[type, Callable[[Any], str]] = {
    Answer: answer_html,
    CheckedPlan: lambda checked: str(_macros().checked(checked)),
    Diagnostic: lambda diagnostic: str(_macros().diagnostic(diagnostic)),
    Document: document_html,
    PearlError: error_html,
    Plan: lambda plan: str(_macros().plan(plan)),
    PlanGraph: graph_html,
    Trace: trace_html,
}


def html_of(shown: object) -> str:
    """The HTML of an object for notebooks."""
    draw = next((_DRAWN[kind] for kind in type(shown).__mro__ if kind in _DRAWN), None)
    if draw is None:
        raise TypeError(f"notebooks cannot show {type(shown).__name__}")
    html = re.sub(r">\n+(?=<)", ">", draw(shown))  # line breaks of the template
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped(html))
