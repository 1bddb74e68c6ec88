"""Documents: the files that were joined to one."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.documents.document import part_spans
from pearl.documents.units import Piece, trimmed


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    r"""Every file, with its name in the field `Document`; without `parts`, the whole text is one.

    Example:
        >>> split("# a\n\none\n\n# b\n\ntwo", [("a", 5), ("b", 15)])
        [Piece(start=5, end=8, fields={'Document': 'a'}), Piece(start=15, end=18, fields={'Document': 'b'})]
    """
    pieces = [
        piece
        for name, span in part_spans(text, parts)
        for piece in trimmed(text, span.start, span.end, {"Document": name})
    ] or trimmed(text, 0, len(text))
    if not pieces:
        raise ValueError("no document: the text is blank")
    return pieces
