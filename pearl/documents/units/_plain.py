"""Simple units, found by offsets alone: documents, pages, paragraphs, lines and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace

from pearl.documents.document import part_spans
from pearl.documents.passages import paragraphs, sentences
from pearl.documents.units import Piece, lines, trimmed

Parts = Sequence[tuple[str, int]]

_WRAPPED = 120  # maximum characters of a wrapped line: a longer one is a paragraph


def split_documents(text: str, parts: Parts = ()) -> list[Piece]:
    """Every joined file, with its name in the field `Document`; without `parts`, the whole text."""
    pieces = [
        piece
        for name, span in part_spans(text, parts)
        for piece in trimmed(text, span.start, span.end, {"Document": name})
    ] or trimmed(text, 0, len(text))
    return _some(pieces, "no document: the text is blank")


def split_pages(text: str, parts: Parts = ()) -> list[Piece]:
    """Every page that has text, with its number in the field `Page`: of PDFs and texts with form feeds."""
    pieces = [
        piece
        for (name, start), (_, end) in pairwise([*parts, ("", len(text))])
        for piece in trimmed(text, start, end, {"Page": name})
    ]
    return _some(
        pieces, "no pages: the document's format does not keep them (PDF and form feeds do)"
    )


def split_paragraphs(text: str, parts: Parts = ()) -> list[Piece]:
    """Every paragraph: blank lines separate them, or, without any, the ends of lines of more than 120 characters."""
    pieces = _some(
        [Piece(span.start, span.end, {}) for span in paragraphs(text)],
        "no paragraph: the text is blank",
    )
    if len(pieces) == 1:
        of_lines = split_lines(text)
        if any(each.end - each.start > _WRAPPED for each in of_lines):
            return of_lines
    return pieces


def split_lines(text: str, parts: Parts = ()) -> list[Piece]:
    r"""Every line that is not blank, without the blanks around it. Only "\n" ends a line."""
    pieces = [piece for at, line in lines(text) for piece in trimmed(text, at, at + len(line))]
    return _some(pieces, "no line: the text is blank")


def split_sentences(text: str, parts: Parts = ()) -> list[Piece]:
    """Every sentence, split as for the evidence of answers."""
    pieces = [Piece(span.start, span.end, {}) for span in sentences(text)]
    return _some(pieces, "no sentence: the text is blank")


def _some(pieces: list[Piece], otherwise: str) -> list[Piece]:
    if not pieces:
        raise ValueError(otherwise)
    return pieces


PLUGINS = {
    "document": SimpleNamespace(split=split_documents),
    "page": SimpleNamespace(split=split_pages),
    "paragraph": SimpleNamespace(split=split_paragraphs),
    "line": SimpleNamespace(split=split_lines),
    "sentence": SimpleNamespace(split=split_sentences),
}
