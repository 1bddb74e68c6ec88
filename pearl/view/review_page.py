"""The page on which a person decides about a field or answer: the proposed values, next to the document at their passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pearl.documents.document import Document
from pearl.documents.evidence import Quote, Verifier
from pearl.documents.evidence.collecting import passage_at
from pearl.documents.rows import shortened
from pearl.errors import Span
from pearl.interpreter.row import FieldCandidate, Passage, read_as
from pearl.runs.decisions import Decision
from pearl.runs.reviewing import Item, proposed
from pearl.view.page import render_page
from pearl.view.panel import Gap, Mark, Piece, blocks, highlighted, sheets_of
from pearl.view.result import value_text
from pearl.view.sources import ResultRecord

MAX_WHOLE, AROUND = 400_000, 20_000
"""Maximum characters of a text that is shown whole; characters around the passages of a longer one."""

MAX_SHOWN = 2_000  # Maximum characters of a value or a passage

MAX_PROPOSED = 9  # Maximum proposed values, one for each digit key

WANTED = {
    "int": "a whole number", "number": "a number such as 1250.5", "bool": "yes or no", "date": "a date such as 2024-05-31",
    "str": "a text, as the document writes it", "text": "a text",
}  # fmt: skip


class Proposal(NamedTuple):
    """A proposed value with its passages and their positions, or a note that a passage was not found."""

    number: int
    value: str
    passages: Sequence[tuple[str, str]]


def review_page(
    item: Item | None, record: ResultRecord | None, history: Sequence[Decision], **facts: Any
) -> str:
    """The page of an item, whose record has a loaded document; without an item, the final page."""
    if item is None or record is None:
        return render_page("review", "Review", item=None, document=None, sheets={}, **facts)
    problems = list(record.problems)
    document = record.document
    if document is None:
        problems.insert(0, f"{item.document} was not found; name its folder with --documents.")
    marks, proposals = _proposals(item, document)
    lines: list[tuple[int, list[Piece | Gap]]] = []
    if document is not None:
        spans = [(mark.number, mark.span) for mark in marks]
        at = 0
        for part in blocks(highlighted(document.text, spans, most=MAX_WHOLE, around=AROUND)):
            lines.append((at, part))
            at += sum(piece.n if isinstance(piece, Gap) else len(piece.text) for piece in part)
    is_list = item.field.is_list and item.path == item.field.name
    wanted = "one of " + ", ".join(item.field.labels) if item.field.labels else ""
    if item.kind != "unchecked":
        why = str(item.result.get("why") or (item.row_why if item.kind == "degraded" else ""))
    elif item.result.get("evidence"):
        why = "The passage is in the document. Whether it supports the value was not checked."
    else:
        why = "No passage was cited for it, and it was not checked."
    return render_page(
        "review",
        f"{item.field.name} · {item.document}",
        item=item,
        key=item.key,
        value=shortened(value_text(item.result.get("value")), MAX_SHOWN),
        state=str(item.result["state"]).replace("_", " "),
        why=shortened(why, MAX_SHOWN),
        wanted="'complete', if all entries are there" if is_list else wanted or WANTED[item.field.type],
        proposals=proposals[:MAX_PROPOSED],
        document=document,
        lines=lines,
        sheets=sheets_of(document, record.files, marks, problems),
        problems=problems,
        history=history,
        **facts,
    )  # fmt: skip


def _proposals(item: Item, document: Document | None) -> tuple[list[Mark], list[Proposal]]:
    """The proposed values, or the result itself, with their passages; passages in the document are marked with their numbers."""
    marks: list[Mark] = []
    found: list[Proposal] = []
    starts = dict(reversed(document.parts)) if document else {}  # The first of a name counts
    for number, each in enumerate(proposed(item.result) or [item.result], start=1):
        passages = []
        for passage in read_as(FieldCandidate, each).evidence:
            text, span, place = passage.text, passage.span, passage.short_place()
            at = starts.get(passage.source, 0)
            if (
                document
                and span
                and text
                and document.text[at + span.start : at + span.end] == text
            ):
                marks.append(Mark(number, Span(at + span.start, at + span.end)))
            else:
                place += "; not in the text at this place" if document else ""
            passages.append((shortened(text, MAX_SHOWN), place))
        found.append(
            Proposal(number, shortened(value_text(each.get("value")), MAX_SHOWN), passages)
        )
    return marks, found


def picked(document: Document, text: str, near: int) -> dict[str, Any] | None:
    """The passage that a person selected, as evidence; None if the document has no such text of whole words."""
    places = sorted(Verifier(document.text).places(text), key=lambda span: abs(span.start - near))
    if not places:
        return None
    span = places[0]
    is_exact = document.text[span.start : span.end] == text
    quote = Quote(text, (span,), "exact" if is_exact else "normalised")
    return Passage.of(passage_at(quote, "review", document)).to_dict()
