"""Paragraphs: blank lines part them; where there are none, long lines do."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.passages import paragraphs
from pearl.documents.units import Piece, line

_WRAPPED = 120
"""Lines are wrapped at so many characters at most: a longer one is a paragraph."""


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    r"""Every paragraph.

    In a text without blank lines that has lines of more than 120 characters, each line is one.

    Example:
        >>> [text[a:b] for text in ["One,\ntwo.\n\nThree."] for a, b, _ in split(text)]
        ['One,\ntwo.', 'Three.']
    """
    pieces = [Piece(span.start, span.end, {}) for span in paragraphs(text)]
    if not pieces:
        raise ValueError("no paragraph: the text is blank")
    if len(pieces) == 1:
        lines = line.split(text)
        if any(each.end - each.start > _WRAPPED for each in lines):
            return lines
    return pieces
