"""Windows: overlapping ranges of about the same size, cut between words."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.units import Piece

SIZE = 1_100  # maximum characters of a window
OVERLAP = 300  # maximum characters shared by two windows

OVERLAPS = True


def split(
    text: str, parts: Sequence[tuple[str, int]] = (), size: int = SIZE, overlap: int = OVERLAP
) -> list[Piece]:
    """Every window; a word that is longer than a window is cut."""
    if not 0 <= overlap < size:
        raise ValueError(f"windows of {size} characters cannot overlap by {overlap}")
    pieces: list[Piece] = []
    start, last = _next_word(text, 0), len(text.rstrip())
    while start < last:
        source = text[start : start + size + 1]
        if len(source) <= size:
            end = start + len(source.rstrip())
        else:  # the last end of a word in it, if any
            words = [source, ""] if source[-1].isspace() else source.rsplit(None, 1)
            end = start + (size if len(words) == 1 else len(words[0].rstrip()))
        if pieces and end <= pieces[-1].end:  # this window would add no text: a long word follows
            start = _next_word(text, pieces[-1].end)
            continue
        pieces.append(Piece(start, end, {}))
        if end == last:
            break
        start = max(start + 1, end - overlap)
        if not text[start - 1].isspace():  # inside a word: go on to the next word
            while start < end and not text[start].isspace():
                start += 1
        start = _next_word(text, start)
    if not pieces:
        raise ValueError("no window: the text is blank")
    return pieces


def _next_word(text: str, start: int) -> int:
    while start < len(text) and text[start].isspace():
        start += 1
    return start
