"""Sentences, as the evidence of answers has them."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.passages import sentences
from pearl.documents.units import Piece


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    """Every sentence.

    Example:
        >>> split("It rained. She left.")
        [Piece(start=0, end=10, fields={}), Piece(start=11, end=20, fields={})]
    """
    pieces = [Piece(span.start, span.end, {}) for span in sentences(text)]
    if not pieces:
        raise ValueError("no sentence: the text is blank")
    return pieces
