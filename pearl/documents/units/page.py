"""Pages, of files that have them: PDFs, and texts with form feeds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pearl.documents.units import Piece, trimmed


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    """Every page that has text, with its number in the field `Page`.

    Example:
        >>> split("one two", [("1", 0), ("2", 4)])
        [Piece(start=0, end=3, fields={'Page': '1'}), Piece(start=4, end=7, fields={'Page': '2'})]
    """
    ends = [("", len(text))]
    pieces = [
        piece
        for (name, start), (_, end) in pairwise([*parts, *ends])
        for piece in trimmed(text, start, end, {"Page": name})
    ]
    if not pieces:
        raise ValueError(
            "no pages: the document's format does not keep them (PDF and form feeds do)"
        )
    return pieces
