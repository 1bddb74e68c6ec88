"""JSON objects: one after the other, a line each or not, or in an array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pearl.documents.units import Piece
from pearl.documents.units.record.names import fields_of

__all__ = ["find"]

_MAX_VAIN = 4
"""What is read in vain may have so many times the length of the text: time is linear."""

_CANDIDATE = re.compile(r"^[ \t]*(?:\[\s*)?(?=\{)", re.M)
_AFTER = re.compile(r"\s*,\s*(?=\{)|[ \t]*(?:\s*\]|,?[ \t]*(?=\n|\Z))")
_BLANKS = re.compile(r"[ \t\n\r]*")
_SURROGATES = re.compile(r"[\ud800-\udfff]")

_decode = json.JSONDecoder(
    object_pairs_hook=list, parse_float=str, parse_int=str, parse_constant=str
).raw_decode


def find(text: str) -> list[Piece]:
    r"""The objects that begin a line or follow another one, with nothing else after them.

    Numbers and nested values are as in the source; `null` is "".

    Example:
        >>> [piece.fields for piece in find('[{"a": 1.50, "b": [1, 2]},\n {"a": null}]')]
        [{'a': '1.50', 'b': '[1, 2]'}, {'a': ''}]
    """
    pieces: list[Piece] = []
    at = n_vain = 0
    while n_vain <= _MAX_VAIN * len(text) and (candidate := _CANDIDATE.search(text, at)):
        start = at = candidate.end()
        while text.startswith("{", start):
            try:
                members, end = _decode(text, start)
            except json.JSONDecodeError as error:
                n_vain += error.pos - start
                break
            except RecursionError:  # nested without end
                return pieces
            at = end
            after = _AFTER.match(text, end)
            if not after:
                break
            pieces.append(Piece(start, end, _fields(text, start, members)))
            start = after.end()
        at += 1
    return pieces


def _fields(text: str, start: int, members: list[tuple[str, object]]) -> dict[str, str]:
    names = [_whole(name) for name, _ in members]
    values = [_shown(value) for _, value in members]
    if None in values:
        values = [
            text[begin:end] if value is None else value
            for value, (begin, end) in zip(values, _spans(text, start), strict=True)
        ]
    return fields_of(names, [value or "" for value in values])


def _shown(value: object) -> str | None:
    """A value as text; None for a nested one."""
    match value:
        case str():  # numbers, too: as they are written
            return _whole(value)
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return None


def _whole(text: str) -> str:
    """The text without halves of characters, which may be written as escapes."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _spans(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Where the values of the object that begins at `at` stand; it is valid."""
    while text[at] != "}":
        at = _skip(text, at + 1)
        _, at = _decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _decode(text, start)
        yield start, end
        at = _skip(text, end)


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at
