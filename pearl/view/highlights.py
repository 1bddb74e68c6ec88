"""Document + what an answer rests on → the text in pieces, each with the marks that cover it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pearl.errors import Span

__all__ = ["Gap", "Piece", "highlighted"]

MAX_WHOLE = 5_500_000
"""Characters up to which the whole text is shown; of a longer one what is around the marks."""

AROUND = 2_000
"""Characters that are shown before and after a mark of a longer text."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the text.

    Attributes:
        text: As it stands there.
        marks: Numbers of the marks that cover it, the smallest first.
        begins: Those of them that begin here.
    """

    text: str
    marks: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """Characters of the text that are not shown."""

    n: int


def highlighted(
    text: str, marks: Sequence[tuple[int, Span]], *, most: int = MAX_WHOLE
) -> list[Piece | Gap]:
    """Cut a text where marks begin and end, which may lie within one another.

    Args:
        text: Of the document.
        marks: Number and place of each.
        most: Characters up to which all of the text is in the pieces.

    Example:
        >>> for piece in highlighted("Nils sold the boat.", [(1, Span(0, 9)), (2, Span(5, 18))]):
        ...     print(repr(piece.text), piece.marks, piece.begins)
        'Nils ' (1,) (1,)
        'sold' (1, 2) (2,)
        ' the boat' (2,) ()
        '.' () ()
    """
    shown = _shown(text, [span for _, span in marks], most)
    cuts = {at for span in shown for at in (span.start, span.end)}
    for _, span in marks:
        cuts |= {span.start, span.end}
    order = sorted(cut for cut in cuts if 0 <= cut <= len(text))
    pieces: list[Piece | Gap] = []
    at = 0
    for start, end in pairwise(order):
        if not any(span.start <= start and end <= span.end for span in shown):
            continue
        if start > at:
            pieces.append(Gap(start - at))
        covering = sorted(n for n, span in marks if span.start <= start and end <= span.end)
        begins = sorted(n for n, span in marks if span.start == start and span.end >= end)
        pieces.append(Piece(text[start:end], tuple(covering), tuple(begins)))
        at = end
    if at < len(text):
        pieces.append(Gap(len(text) - at))
    return pieces


def _shown(text: str, spans: Sequence[Span], most: int) -> list[Span]:
    """What is shown of a text: all, or the surroundings of the marks."""
    if len(text) <= most:
        return [Span(0, len(text))]
    around = [Span(max(0, s.start - AROUND), min(len(text), s.end + AROUND)) for s in spans]
    joined: list[Span] = []
    for span in sorted(around or [Span(0, AROUND)], key=lambda each: each.start):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined
