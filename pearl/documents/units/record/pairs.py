"""Lines of pairs: `Date: Feb 02, 2023 || User: 76153 || Text: ...`."""

from __future__ import annotations

import re

from pearl.documents.units import Piece
from pearl.documents.units.record.names import Keys, fields_of

_SEPARATORS = ("||", " | ", "\t")
_BULLET = re.compile(r"\s*(?:[-*•]|\(?\d{1,9}[.)])\s+")


def find(text: str) -> list[Piece]:
    r"""The lines of at least two pairs, with the separator that most of them have.

    Lines between two records, without a blank line, go on with the value that is last in the first.

    Example:
        >>> [piece.fields for piece in find("A: 1 || B: x || y\nmore\nA: 2 || B: z\nThe end")]
        [{'A': '1', 'B': 'x || y\nmore'}, {'A': '2', 'B': 'z'}]
    """
    found = (_find(text, separator) for separator in _SEPARATORS if separator in text)
    return max(found, key=len, default=[])


def _find(text: str, separator: str) -> list[Piece]:
    pieces: list[Piece] = []
    keys = Keys()
    at = 0
    going_on = 0  # end of the lines after the last record that may belong to it
    for line in text.split("\n"):
        if separator in line and (pairs := _pairs(line, separator, keys)):
            if pieces and going_on > pieces[-1].end:
                pieces[-1] = _longer(text, pieces[-1], going_on)
            names, values = pairs
            start = at + len(line) - len(line.lstrip())
            going_on = at + len(line.rstrip())
            pieces.append(Piece(start, going_on, fields_of(names, values)))
        elif not line or line.isspace():
            going_on = 0
        elif going_on:
            going_on = at + len(line.rstrip())
        at += len(line) + 1
    return pieces


def _pairs(line: str, separator: str, keys: Keys) -> tuple[list[str], list[str]] | None:
    """The keys and values of a line, or None if it has fewer than two pairs.

    What no key is in belongs to the value before it.
    """
    names: list[str] = []
    values: list[str] = []
    more: dict[int, list[str]] = {}
    for part in line.split(separator):
        before, colon, value = part.partition(":")
        if not names and (bullet := _BULLET.match(before)):
            before = before[bullet.end() :]
        if colon and (not value or value[0].isspace()) and (name := keys[before]):
            names.append(name)
            values.append(value)
        elif names:
            more.setdefault(len(values) - 1, []).append(part)
        else:
            return None
    if len(names) < 2:
        return None
    for index, rest in more.items():
        values[index] = separator.join([values[index], *rest])
    return names, [value.strip() for value in values]


def _longer(text: str, piece: Piece, end: int) -> Piece:
    """The record with more lines at its end."""
    last = next(reversed(piece.fields))
    start = piece.end - len(piece.fields[last])
    return Piece(piece.start, end, {**piece.fields, last: text[start:end]})
