"""Document + what an answer rests on → the text in pieces, each with the marks that cover it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pearl.errors import Span

MAX_WHOLE = 5_500_000
"""Characters up to which the whole text is shown; of a longer one what is around the marks."""

AROUND = 2_000
"""Characters that are shown before and after a mark of a longer text."""


BLOCK = 20_000
"""Characters of a block, more or less."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the text."""

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


def blocks(pieces: Iterable[Piece | Gap], *, size: int = BLOCK) -> list[list[Piece | Gap]]:
    r"""Put pieces into blocks that end with a line that no mark covers.

    A browser lays out those blocks only that are near what is seen: a text of a million characters is
    there three times as soon.

    Example:
        >>> pieces = highlighted("one\ntwo\nthree", [(1, Span(4, 7))])
        >>> [[piece.text for piece in block] for block in blocks(pieces, size=2)]
        [['one\n'], ['two', '\n'], ['three']]
    """
    found: list[list[Piece | Gap]] = [[]]
    n = 0
    for piece in pieces:
        text = "" if isinstance(piece, Gap) or piece.marks else piece.text
        at = 0
        while (end := text.find("\n", max(at, at + size - n)) + 1) > 0:
            found[-1].append(Piece(text[at:end]))
            found.append([])
            at, n = end, 0
        if isinstance(piece, Gap) or piece.marks:
            found[-1].append(piece)
        elif at < len(text):
            found[-1].append(Piece(text[at:]))
        n += 0 if isinstance(piece, Gap) else len(piece.text) - at
    return [block for block in found if block]


def _shown(text: str, spans: Sequence[Span], most: int) -> list[Span]:
    """What is shown of a text: all, or the surroundings of the marks."""
    if len(text) <= most:
        return [Span(0, len(text))]
    around = [Span(max(0, s.start - AROUND), min(len(text), s.end + AROUND)) for s in spans]
    joined: list[Span] = []
    for span in sorted(around or [Span(0, min(AROUND, len(text)))], key=lambda each: each.start):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined
