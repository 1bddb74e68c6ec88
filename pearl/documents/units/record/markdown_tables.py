"""Tables in Markdown: a header, a line of dashes, and rows up to a line without bars."""

from __future__ import annotations

import re

from pearl.documents.units import Piece
from pearl.documents.units.record.names import columns

_BAR = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r"\s*:?-+:?\s*")
_OF_RULES = frozenset("|:- \t")


def find(text: str) -> list[Piece]:
    r"""The rows of all tables; blank rows are none.

    Example:
        >>> [piece.fields for piece in find("| id | what |\n|---|---|\n| 1 | a \\| b |\n| 2 |")]
        [{'id': '1', 'what': 'a | b'}, {'id': '2', 'what': ''}]
    """
    pieces: list[Piece] = []
    names: tuple[str, ...] = ()  # of the table that goes on
    previous = ""
    at = 0
    for line in text.split("\n"):
        if "|" not in line:
            names = ()
        elif not _OF_RULES.issuperset(line):
            if names and (row := line.strip()):
                start = at + line.index(row)
                pieces.append(Piece(start, start + len(row), _fields(row, names)))
        elif all(map(_DASHES.fullmatch, rules := _cells(line))):
            header = _cells(previous) if "|" in previous else []
            if len(header) == len(rules):
                names = columns([cell.replace(r"\|", "|") for cell in header])
                if pieces and pieces[-1].end > at - len(previous) - 1:
                    pieces.pop()  # the row before was this header
        previous = line
        at += len(line) + 1
    return pieces


def _fields(row: str, names: tuple[str, ...]) -> dict[str, str]:
    cells = [cell.strip().replace(r"\|", "|") for cell in _cells(row, len(names))]
    return dict(zip(names, cells + [""] * (len(names) - len(cells)), strict=True))


def _cells(row: str, most: int = 0) -> list[str]:
    """The cells of a row; the last of `most` has all that is left."""
    bare = row.strip().removeprefix("|")
    if bare.endswith("|") and not bare.endswith(r"\|"):
        bare = bare[:-1]
    return _BAR.split(bare, max(0, most - 1)) if most != 1 else [bare]
