"""`Answer` + `Document` → one HTML file: the answer beside the document, with what it rests on lit in both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pearl.documents.document import Document
from pearl.documents.evidence import Evidence, placed
from pearl.dsl.nodes import Argument, ListLiteral, Number, Reference, String
from pearl.dsl.parser import parse
from pearl.errors import Span
from pearl.interpreter.answer import Answer
from pearl.interpreter.row_evidence import RowEvidence
from pearl.trace import CallFailed, ModelCalled, ModelWaited, PlanAttempted, PlanChosen
from pearl.view.highlights import blocks, highlighted
from pearl.view.page import render_page
from pearl.view.plan_graph import draw_plan
from pearl.view.timeline import bars, n_at_once

__all__ = ["answer_page"]

MAX_ROWS = 1_000
"""Rows behind an answer that the page lists; `--rows FILE` has all."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place of the document that the answer rests on, numbered from 1."""

    number: int
    span: Span
    text: str
    where: str
    note: str = ""


def answer_page(answer: Answer, document: Document) -> str:
    """The page of an answer.

    Everything on it comes from the answer, its trace and the document, escaped. It has no scripts, and
    its policy allows its own style alone, by its hash.

    Args:
        answer: With its trace.
        document: That it was asked of.

    Example:
        >>> import asyncio
        >>> from pearl import Pearl
        >>> document = Document("Ada sold the boat because it leaked. <b>Then</b> she slept.")
        >>> answer = asyncio.run(Pearl().ask("Why did Ada sell the boat?", document))
        >>> page = answer_page(answer, document)
        >>> "&lt;b&gt;Then&lt;/b&gt;" in page, "<script" in page
        (True, False)
    """
    marks = [*_of_evidence(answer.evidence), *_of_rows(answer, document)]
    by_place = {mark.span: mark.number for mark in reversed(marks)}
    plan = parse(answer.plan)
    results = {step.output: step for step in answer.steps}
    calls = bars(answer.trace)
    last_s = max([answer.duration_s, *(bar.end_s for bar in calls)]) or 1.0
    pieces, _ = placed(answer.text, answer.evidence)
    return render_page(
        "answer",
        answer.question,
        answer=answer,
        document=document,
        pieces=[(text, None if each is None else by_place[each.span]) for text, each in pieces],
        marks=marks,
        n_rows_left=max(0, len(answer.rows) - MAX_ROWS),
        drawing=draw_plan(plan, {s.output: s.duration_s for s in answer.steps}),
        steps=[
            (step, results[step.output], [list(_shown(each)) for each in step.arguments])
            for step in plan.steps
            if step.output in results
        ],
        attempts=[event for event in answer.trace if isinstance(event, PlanAttempted)],
        chosen=[event for event in answer.trace if isinstance(event, PlanChosen)],
        failures=[event for event in answer.trace if isinstance(event, CallFailed)],
        n_waits=sum(isinstance(event, ModelWaited) for event in answer.trace),
        n_kept=sum(isinstance(e, ModelCalled) and e.is_remembered for e in answer.trace),
        n_calls=sum(isinstance(event, ModelCalled) for event in answer.trace),
        n_at_once=n_at_once(calls),
        bars=calls,
        last_s=last_s,
        blocks=blocks(highlighted(document.text, [(mark.number, mark.span) for mark in marks])),
    )


def _of_evidence(evidence: Iterable[Evidence]) -> list[_Mark]:
    return [
        _Mark(number, each.span, each.marked, each.where, "elided" if each.omitted else "")
        for number, each in enumerate(evidence, start=1)
    ]


def _of_rows(answer: Answer, document: Document) -> list[_Mark]:
    """Rows of the document, or those of their cells that the answer is from."""
    first = dict(reversed(document.parts))  # a file has its first place
    number = len(answer.evidence)
    marks: list[_Mark] = []
    for row in answer.rows[:MAX_ROWS]:
        at = first.get(row.source, 0)
        for span, text in _places(row):
            number += 1
            note = "" if row.is_decided else "undecided"
            marks.append(_Mark(number, Span(at + span.start, at + span.end), text, row.where, note))
    return marks


def _places(row: RowEvidence) -> list[tuple[Span, str]]:
    if row.cells:
        return [(cell.span, f"{cell.column}: {cell.text}") for cell in row.cells]
    return [] if row.span is None else [(row.span, row.line)]


def _shown(argument: Argument) -> Iterable[tuple[str, str]]:
    """An argument as texts, each with the output that it names or ""."""
    match argument:
        case Reference():
            yield argument.name, "" if argument.is_context else argument.name
        case String():
            yield f'"{argument.value}"', ""
        case Number():
            yield str(argument.value), ""
        case ListLiteral():
            yield "[", ""
            for i, item in enumerate(argument.items):
                if i:
                    yield ", ", ""
                yield from _shown(item)
            yield "]", ""
