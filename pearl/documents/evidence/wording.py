"""Evidence in words, the same on terminals, pages and in exports: places, omissions, reasons against a quote."""

from __future__ import annotations

from collections.abc import Iterable

from pearl.documents.document import LOW_OCR
from pearl.errors import Span

DOUBTS = {
    "missing": "not in the document",
    "given": "not in the document, but in what the step was given",
    "short": "too short to verify",
    "apart": "pieces of the document that do not belong together",
    "negation": "could not be verified",  # in rows of earlier versions, as no reason
    "": "could not be verified",
}
"""Why a quote is not verified: each ends "its quote is ...", and stands before a quote, "...: QUOTE"."""


def page_place(number: int) -> str:
    """The place of a page, as in all places and names of rows."""
    return f"page {number:,}"


def with_omissions(text: str, omitted: Iterable[Span]) -> str:
    """A passage on one line; parts that its quote omits are marked as `[left out: ...]`."""
    marked, at = "", 0
    for span in omitted:
        if at <= span.start <= span.end <= len(text):
            marked += f"{text[at : span.start]}[left out: {text[span.start : span.end]}]"
            at = span.end
    return " ".join((marked + text[at:]).split())


def full_place(
    source: str,
    span: Span | None,
    page: int | None = None,
    ocr: float | None = None,
    ranks: Iterable[tuple[str, int]] = (),
    cells: str = "",
) -> str:
    """A place with everything known about it: cells of a table, characters, the confidence of OCR and ranks."""
    parts = [source] if page is None else [f"{source}, {page_place(page)}"]
    if ocr is not None:
        low = ": hardly legible, check it" if ocr < LOW_OCR else ""
        parts.append(f"by OCR (confidence {ocr:.2f}{low})")
    parts += [cells] if cells else []
    parts += [] if span is None else [_characters(span)]
    return f"{', '.join(parts)}{''.join(f'; rank {rank:,} in {step}' for step, rank in ranks)}"


def short_place(source: str, span: Span | None, page: int | None, *, is_by_ocr: bool) -> str:
    """A place as pages show it: the source unless it is "", and the page, or else the characters."""
    at = "" if span is None else _characters(span)
    parts = [source, at if page is None else page_place(page), "by OCR" if is_by_ocr else ""]
    return ", ".join(filter(None, parts))


def _characters(span: Span) -> str:
    return f"characters {span.start:,}-{span.end:,}"
