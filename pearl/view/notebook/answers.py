"""An answer, as notebooks show it: numbered marks lead from its text to what it rests on."""

from __future__ import annotations

from pearl.documents.evidence import placed
from pearl.interpreter.answer import MAX_SHOWN, Answer
from pearl.view.notebook.markup import MARK, SOFT, Html, card, element, joined, lines, shortened

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
