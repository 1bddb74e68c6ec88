"""Plans, graphs, traces, answers, errors and documents → HTML for notebooks: `_repr_html_`.

Every object is one element of bounded size, without scripts or addresses. Texts are escaped where they are put into an
element, so documents, models and users cannot inject markup. Colours are the notebook's own or visible on light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import singledispatch
from html import escape

from pearl.documents.document import Document, part_spans
from pearl.documents.evidence import placed
from pearl.dsl.checker import CheckedPlan
from pearl.dsl.graph import PlanGraph
from pearl.dsl.nodes import Plan, Step, one_line, print_argument, print_header
from pearl.errors import PearlError
from pearl.errors.diagnostics import Diagnostic, excerpt
from pearl.errors.escaping import escaped
from pearl.errors.patterns import lazy_pattern
from pearl.interpreter.answer import MAX_SHOWN, Answer
from pearl.llm import Usage
from pearl.trace import Event, Trace
from pearl.view.page import HEIGHT, WIDTH, Bar, bars, draw_plan, n_at_once

__all__ = ["html_of"]


SOFT = "opacity:.75"
MONO = (
    # Notebooks override the style of `pre`: they break words and change the font.
    "font-family:monospace;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;"
    "color:inherit;background:rgba(128,128,128,.1);padding:.4em .6em;margin:.4em 0"
)
MARK = "color:inherit;background:rgba(255,196,0,.28);padding:0 .15em"

_FRAME = "border-left:3px solid #7a8794;padding:.1em 0 .1em .9em;margin:.3em 0;max-width:62em"
_NOT_TYPESET = "tex2jax_ignore mathjax_ignore"
"""Else notebooks read what is between two dollar signs as a formula."""

_SURROGATE = lazy_pattern("[\ud800-\udfff]")


class Html(str):
    """Markup, which stays as it is where it is put into an element; any other text is escaped."""

    __slots__ = ()


def element(name: str, *content: str, **attributes: str | float) -> Html:
    """An element of HTML or SVG."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_safe(str(value))}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{said}>{joined(*content)}</{name}>")


def joined(*content: str) -> Html:
    """Texts, which are escaped, and elements, one after the other."""
    return Html("".join(each if isinstance(each, Html) else _safe(each) for each in content))


def card(*content: str) -> Html:
    """The frame around what a notebook shows of an object."""
    return element("div", *content, class_=_NOT_TYPESET, style=_FRAME)


def lines(text: str, most: int = 4_000) -> Html:
    """A text with its lines and blanks as they are, at most so many characters of it."""
    return element("pre", shortened(text, most), style=MONO)


def shortened(text: str, most: int) -> str:
    """The beginning of a text, and how much is left out."""
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}… ({left:,} more characters)"


def _safe(text: str) -> str:
    text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped(text))
    return escape(text)


MAX_DIAGNOSTICS = 15
MAX_ATTEMPTS = 4
MAX_MESSAGE = 200
"""Characters of a message that are shown."""

_UNDERLINED = "font-weight:bold;text-decoration:underline wavy #d9480f;text-underline-offset:.2em"


def error_html(error: PearlError) -> Html:
    """An error with what it says to do, and with every diagnostic that it has."""
    text = getattr(error, "text", None)
    diagnostics: Sequence[Diagnostic] = getattr(error, "diagnostics", ())
    attempts = [a for a in getattr(error, "attempts", ()) if a.diagnostics][-MAX_ATTEMPTS:]
    if diagnostics:
        told = [diagnostics_html(diagnostics, text)]
    else:
        told = [element("p", shortened(error.message, 4 * MAX_MESSAGE)), *_help(error.help)]
        told += [diagnostics_html(a.diagnostics, a.text, most=4) for a in attempts]
    return card(element("b", type(error).__name__), *told)


def diagnostics_html(
    diagnostics: Sequence[Diagnostic], text: str | None, *, most: int = MAX_DIAGNOSTICS
) -> Html:
    """Diagnostics, one after the other."""
    left = len(diagnostics) - most
    more = [element("p", f"… and {left:,} more", style=SOFT)] if left > 0 else []
    return joined(*(diagnostic_html(each, text) for each in diagnostics[:most]), *more)


def diagnostic_html(diagnostic: Diagnostic, text: str | None = None) -> Html:
    """A diagnostic, with its place underlined in its line where the text is at hand."""
    span = diagnostic.span
    place = f"characters {span.start:,}-{span.end:,}"
    source = []
    if text is not None:
        line, column = span.position(text)
        place = f"{line}:{column}"
        shown, lead, width = excerpt(diagnostic.span, text)
        marked = element("span", shown[lead : lead + width] or " ", style=_UNDERLINED)
        source = [
            element("pre", f"{line} | {shown[:lead]}", marked, shown[lead + width :], style=MONO)
        ]
    fix = []
    if diagnostic.fix is not None:
        replacement = element("code", shortened(diagnostic.fix.replacement, MAX_MESSAGE))
        fix = [element("div", "fix: ", replacement, style=SOFT)]
    head = element(
        "div", element("b", diagnostic.severity), f" {place}: ",
        shortened(diagnostic.message, MAX_MESSAGE),
        element("span", f" [{shortened(diagnostic.code, 60)}]", style=SOFT),
    )  # fmt: skip
    return element("div", head, *source, *_help(diagnostic.help), *fix, style="margin:.4em 0")


def _help(help: str | None) -> list[Html]:
    return [element("div", f"help: {shortened(help, MAX_MESSAGE)}", style=SOFT)] if help else []


MAX_PRINTED_STEPS, MAX_CHARACTERS = 40, 200
"""Steps of a plan, and characters of an argument or an explanation, that are shown."""

MAX_DRAWN, MAX_LINES = 60, 400
"""Steps and dependencies that are drawn."""


def plan_html(plan: Plan) -> Html:
    """A plan as it is printed."""
    return card(_printed(plan))


def checked_html(checked: CheckedPlan) -> Html:
    """A checked plan, with who carries out its steps and what the checker noted."""
    n, n_model = len(checked.plan.steps), checked.n_model_steps
    told = f"{n} step{'' if n == 1 else 's'}, {n_model} by a model; the answer: "
    outputs = element("code", shortened(", ".join(checked.outputs), MAX_CHARACTERS))
    notes = diagnostics_html(checked.notes, str(checked), most=5) if checked.notes else ""
    return card(_printed(checked.plan), element("div", told, outputs, style=SOFT), notes)


def graph_html(graph: PlanGraph) -> Html:
    """A graph drawn, each step below those whose outputs it takes, and the plan as text."""
    plan = graph.checked.plan
    n = len(plan.steps)
    # A step takes outputs of earlier ones only, so the first ones of a plan are a plan, too.
    drawing = draw_plan(type(plan)(plan.steps[:MAX_DRAWN]), {})
    boxes = [
        element(
            "g",
            element(
                "rect", x=box.x, y=box.y, width=WIDTH, height=HEIGHT, rx=6,
                fill="rgba(128,128,128,.12)", stroke="currentColor", stroke_opacity=0.45,
            ),
            _label(box.x + 12, box.y + 19, 13, f"{box.number}. {box.output}"),
            _label(box.x + 12, box.y + 36, 11, box.action),
        )
        for box in drawing.boxes
    ]  # fmt: skip
    path = "".join(line.path for line in drawing.lines[:MAX_LINES])
    told = shortened(drawing.text, 2_000)
    svg = element(
        "svg",
        element("title", "The plan as a graph"),
        element("desc", told),
        element("path", d=path, fill="none", stroke="currentColor", stroke_opacity=0.6),
        *boxes,
        viewBox=f"-2 -2 {drawing.width + 4} {drawing.height + 4}",
        width=drawing.width + 4,
        role="img",
        aria_label="The plan as a graph",
        style="max-width:100%;height:auto;color:inherit",
    )
    left = len(drawing.lines) - MAX_LINES
    cut = [f"the first {MAX_DRAWN} of {n:,} steps"] * (n > MAX_DRAWN)
    cut += [f"without {left:,} of their dependencies"] * (left > 0)
    return card(
        svg,
        element("div", f"Drawn are {', '.join(cut)}.", style=SOFT) if cut else "",
        element("details", element("summary", "As text", style=SOFT), _printed(plan)),
    )


def _printed(plan: Plan) -> Html:
    """The text of a plan, its actions marked."""
    question = f"Question: {one_line(plan.question)}\n\n" if plan.question else ""
    header = print_header(plan.new_actions)
    left = len(plan.steps) - MAX_PRINTED_STEPS
    return element(
        "pre",
        shortened(question, 1_000),
        shortened(header, 2_000),
        "\n\n",
        joined(
            *(
                _printed_step(step, i)
                for i, step in enumerate(plan.steps[:MAX_PRINTED_STEPS], start=1)
            )
        ),
        f"… and {left:,} more steps" if left > 0 else "",
        style=MONO,
    )


def _printed_step(step: Step, number: int) -> Html:
    arguments = ", ".join(shortened(print_argument(a), MAX_CHARACTERS) for a in step.arguments)
    explanation = shortened(one_line(step.explanation), MAX_CHARACTERS)
    return joined(
        f"{number}. {shortened(step.output, MAX_CHARACTERS)} = ",
        element("b", shortened(step.action, MAX_CHARACTERS)),
        f"({shortened(arguments, 3 * MAX_CHARACTERS)})",
        element("span", f" : {explanation}", style=SOFT),
        "\n",
    )


def _label(x: int, y: int, size: int, text: str) -> Html:
    return element("text", text, x=x, y=y, fill="currentColor", font_size=size)


FIRST, LAST = 1_200, 400
"""Characters of the beginning and of the end that are shown, both together whole."""

FIRST_LINES, LAST_LINES = 12, 5

MAX_NAME, MAX_PARTS = 200, 20


def document_html(document: Document) -> Html:
    """A document; of a long one its beginning and its end."""
    text = document.text
    n_lines = text.count("\n") + 1
    facts = [
        f"{len(text):,} character{'' if len(text) == 1 else 's'}",
        f"{n_lines:,} line{'' if n_lines == 1 else 's'}",
    ]
    if document.pages:
        facts.append(f"{len(document.pages):,} pages")
    if document.kind != "document":
        facts.append(f"asked as a {document.kind}")
    head = element(
        "div", element("b", shortened(document.name, MAX_NAME)),
        element("span", f" {', '.join(facts)}", style=SOFT),
    )  # fmt: skip
    if len(text) <= FIRST + LAST and n_lines <= FIRST_LINES + LAST_LINES:
        return card(head, *_parts(document), lines(text))
    first = "\n".join(text[:FIRST].split("\n")[:FIRST_LINES])
    last = "\n".join(text[max(len(first), len(text) - LAST) :].split("\n")[-LAST_LINES:])
    left = element("div", f"… {len(text) - len(first) - len(last):,} characters …", style=SOFT)
    return card(head, *_parts(document), lines(first), left, lines(last))


def _parts(document: Document) -> list[Html]:
    """The files that it is joined of, each with its size."""
    if not document.parts:
        return []
    items = [
        element("li", f"{shortened(name, MAX_NAME)}, {span.end - span.start:,} characters")
        for name, span in part_spans(document.text, document.parts)[:MAX_PARTS]
    ]
    left = len(document.parts) - MAX_PARTS
    more = [element("div", f"… and {left:,} more", style=SOFT)] if left > 0 else []
    said = f"{len(document.parts):,} part{'' if len(document.parts) == 1 else 's'}"
    return [element("details", element("summary", said), element("ol", *items), *more)]


MAX_FIRST, MAX_LAST = 40, 10
"""Events that are listed, of the beginning and of the end."""

MAX_BARS = 30
MAX_FIELDS, MAX_VALUE = 8, 80
"""Fields of an event, and characters of each, that are shown."""

_COLOURS = {
    "plan": "#8b6fc0", "call": "#3f86c4", "kept": "#8a97a4", "failed": "#d64550", "wait": "#c4912a",
}  # fmt: skip
_LEFT, _ROW = 240, 20
_EVENT_CELL = "text-align:left;vertical-align:top;padding:.1em .8em .1em 0;word-break:normal"


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
    shown = [*map(_event_row, events if left <= 0 else events[:MAX_FIRST])]
    if left > 0:
        between = element("td", f"… {left:,} more", colspan=3, style=f"{_EVENT_CELL};{SOFT}")
        shown += [element("tr", between), *map(_event_row, events[-MAX_LAST:])]
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
            _bar_label(0, i * _ROW + 14, shortened(bar.what, 34)),
            _bar_label(_LEFT + 410, i * _ROW + 14, took),
        ]  # fmt: skip
    svg = element(
        "svg", *rows, viewBox=f"0 0 {_LEFT + 470} {_ROW * len(drawn)}", width=_LEFT + 470, role="img",
        aria_label=f"Calls and waits over {last_s:.2f} seconds",
        style="max-width:100%;height:auto;display:block;color:inherit",
    )  # fmt: skip
    which = f"the longest {MAX_BARS} of {len(calls):,}" if len(calls) > MAX_BARS else "all"
    told = f"Planning, calls and waits in time ({which}), at most {n_at_once(calls)} at once"
    return [svg, element("div", told, style=SOFT)]


def _bar_label(x: int, y: int, text: str) -> Html:
    return element("text", text, x=x, y=y, fill="currentColor", font_size=11)


def _event_row(event: Event) -> Html:
    return element(
        "tr",
        element("td", f"{event.t_s:.3f} s", style=f"{_EVENT_CELL};white-space:nowrap"),
        element("td", event.event, style=_EVENT_CELL),
        element("td", "; ".join(_fields(event)), style=f"{_EVENT_CELL};{SOFT}"),
    )


def _fields(event: Event) -> list[str]:
    """What an event says beyond its kind and its time, where it is not what it is by default."""
    said = []
    for name, field in type(event).model_fields.items():
        value = getattr(event, name)
        if name in ("event", "t_s") or value == field.default:
            continue
        said.append(f"{name.removeprefix('n_')}: {_field_text(value)}")
    return said[:MAX_FIELDS]


def _field_text(value: object) -> str:
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


MAX_TEXT, MAX_QUOTE, MAX_PLACE = 4_000, 240, 100
"""Characters of the answer, of each quote and of each place that are shown."""

MAX_PLAN, MAX_VALUES = 1_500, 2_500
"""Characters of the plan, and of the values of all steps."""

MAX_EVIDENCE, MAX_STEPS = 6, 8

_CELL = "text-align:left;vertical-align:top;white-space:pre-wrap;padding:.1em .8em .1em 0"
_STATUS = "border:1px solid currentColor;border-radius:1em;padding:0 .6em;font-size:85%"


def answer_html(answer: Answer) -> Html:
    """An answer with its status, its evidence, what could not be verified, its plan and its steps."""
    understood = answer.understood
    notes = [*(understood.notes if understood else ()), *answer.notes]
    if answer.method == "direct":
        notes.insert(0, "answered directly: no valid plan could be had")
    if answer.agreement is not None:
        notes.append(f"agreement: {answer.agreement}")
    status = element("span", answer.status.replace("_", " "), style=_STATUS)
    return card(
        element("div", element("b", shortened(answer.question, MAX_QUOTE)), " ", status),
        _soft(f"Understood as: {understood.question}") if understood else "",
        _soft(answer.why) if answer.why else "",
        element("p", *_marked(answer), style="white-space:pre-wrap;margin:.5em 0"),
        *_evidence(answer),
        *_rows(answer),
        *_unverified(answer),
        *map(_soft, notes[:MAX_SHOWN]),
        *_more(len(notes), MAX_SHOWN),
        _steps(answer),
    )


def _marked(answer: Answer) -> list[Html]:
    """The text, with the number of its evidence after each quote."""
    pieces, _ = placed(answer.text, answer.evidence)
    numbers = {id(each): number for number, each in enumerate(answer.evidence, start=1)}
    shown: list[Html] = []
    room = MAX_TEXT
    for text, each in pieces:
        number = "" if each is None else element("sup", f" [{numbers[id(each)]}]")
        shown.append(joined("\n" if shown else "", shortened(text, room), number))
        room -= len(text)
        if room <= 0:
            break
    return shown


def _evidence(answer: Answer) -> list[Html]:
    if not answer.evidence:
        return []
    items = [
        element(
            "li",
            element("span", shortened(each.marked, MAX_QUOTE), style=MARK),
            _place(each.where),
        )
        for each in answer.evidence[:MAX_EVIDENCE]
    ]
    more = _more(len(answer.evidence), MAX_EVIDENCE)
    return [element("div", "Evidence"), element("ol", *items), *more]


def _rows(answer: Answer) -> list[Html]:
    """The first rows behind it, numbered after the evidence."""
    if not answer.rows:
        return []
    items = [
        element("li", shortened(row.line, MAX_QUOTE), _place(row.where))
        for row in answer.rows[:MAX_SHOWN]
    ]
    rows = element("ol", *items, start=len(answer.evidence) + 1)
    return [element("div", f"Rows behind it: {len(answer.rows):,}"), rows]


def _unverified(answer: Answer) -> list[Html]:
    items = [
        element("li", element("b", f"{q.why}:"), " ", shortened(q.text, MAX_QUOTE), _place(q.step))
        for q in answer.unverified[:MAX_SHOWN]
    ]
    return [element("ul", *items), *_more(len(answer.unverified), MAX_SHOWN)] if items else []


def _steps(answer: Answer) -> Html:
    rows: list[Html] = []
    room = MAX_VALUES
    for step in answer.steps[:MAX_STEPS]:
        names = (element("code", shortened(name, 60)) for name in (step.output, step.action))
        value = shortened(step.preview, room)
        room = max(0, room - len(step.preview))
        cells = (element("td", cell, style=_CELL) for cell in (*names, value))
        rows.append(element("tr", *cells))
    return element(
        "details",
        element("summary", f"Plan and steps ({shortened(answer.model, MAX_PLACE)})", style=SOFT),
        lines(answer.plan, MAX_PLAN),
        element("table", element("tbody", *rows)),
        *_more(len(answer.steps), MAX_STEPS),
    )


def _place(text: str) -> Html:
    return element("small", f" ({shortened(text, MAX_PLACE)})", style=SOFT)


def _soft(text: str) -> Html:
    return element("div", shortened(text, MAX_QUOTE), style=SOFT)


def _more(n: int, most: int) -> list[Html]:
    return [_soft(f"… and {n - most:,} more")] if n > most else []


@singledispatch
def html_of(shown: object) -> str:
    """What a notebook shows of an object of one of these types."""
    raise TypeError(f"notebooks cannot show {type(shown).__name__}")


html_of.register(Answer, answer_html)
html_of.register(CheckedPlan, checked_html)
html_of.register(Diagnostic, lambda diagnostic: card(diagnostic_html(diagnostic)))
html_of.register(Document, document_html)
html_of.register(PearlError, error_html)
html_of.register(Plan, plan_html)
html_of.register(PlanGraph, graph_html)
html_of.register(Trace, trace_html)
