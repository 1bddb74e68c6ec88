"""Blocks of `Key: value` lines with blank lines between them."""

from __future__ import annotations

import re
from collections import Counter

from pearl.documents.passages import paragraphs
from pearl.documents.units import Piece
from pearl.documents.units.record.names import Keys, fields_of

_KEYED = re.compile(r"^[ \t]*([^:\n|]{1,60}):(?=\s|\Z)", re.M)


def find(text: str) -> list[Piece]:
    r"""The paragraphs that begin with a key and have at least two, none of them twice.

    Lines without a key go on with the value before. Of the keys or of the lines of a block, half or
    more are keys that other blocks have, or lines with a key.

    Example:
        >>> [piece.fields for piece in find("Some people:\n\nName: Ann\nAge: 30\n\nName: Bob\nAge: 41")]
        [{'Name': 'Ann', 'Age': '30'}, {'Name': 'Bob', 'Age': '41'}]
    """
    found: list[tuple[Piece, int]] = []
    keys = Keys()
    for span in paragraphs(text):
        keyed = [
            (match.start(), name, match.end())
            for match in _KEYED.finditer(text, span.start, span.end)
            if (name := keys[match[1]])
        ]
        if len(keyed) < 2 or keyed[0][0] != span.start:
            continue
        ends = [start for start, _, _ in keyed[1:]] + [span.end]
        values = [text[a:b].strip() for (_, _, a), b in zip(keyed, ends, strict=True)]
        names = [name for _, name, _ in keyed]
        if len(set(names)) == len(names):
            piece = Piece(span.start, span.end, fields_of(names, values))
            found.append((piece, 1 + text.count("\n", span.start, span.end)))
    shared = Counter(name for piece, _ in found for name in piece.fields)
    return [
        piece
        for piece, n_lines in found
        if 2 * len(piece.fields) >= n_lines
        or 2 * sum(shared[name] > 1 for name in piece.fields) >= len(piece.fields)
    ]
