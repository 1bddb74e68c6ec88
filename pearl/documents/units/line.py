r"""Lines that are not blank, without the blanks around them. Only "\n" ends a line."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.units import Piece


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    r"""Every line.

    Example:
        >>> [text[a:b] for text in [" one\n\n two\u2028three"] for a, b, _ in split(text)]
        ['one', 'two\u2028three']
    """
    pieces: list[Piece] = []
    at = 0
    for line in text.split("\n"):
        if bare := line.strip():
            start = at + len(line) - len(line.lstrip())
            pieces.append(Piece(start, start + len(bare), {}))
        at += len(line) + 1
    if not pieces:
        raise ValueError("no line: the text is blank")
    return pieces
