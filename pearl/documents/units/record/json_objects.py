"""JSON objects: one after the other, a line each or not, or in an array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import cast

from pearl.documents.units import Piece
from pearl.documents.units.record.names import fields_of

_MAX_VAIN = 4
"""What is read in vain may have so many times the length of the text: time is linear."""

_CANDIDATE = re.compile(r"^[ \t]*+(?:\[\s*+)?(?=\{)", re.M)
_AFTER = re.compile(r"\s*+(?:,\s*+(?=\{)|\])|[ \t]*+,?[ \t]*+(?=\n|\Z)")
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
    while candidate := _CANDIDATE.search(text, at):
        start = at = candidate.end()
        end = text.find("\n", start)
        line = text[start : None if end < 0 else end]
        is_whole = line.count("{") + line.count("[") <= line.count("}") + line.count("]")
        try:
            if is_whole:
                at += max(1, _read(line, 0, start, pieces)[0])
            elif n_vain <= _MAX_VAIN * len(text):
                reached, n_more = _read(text, start, 0, pieces)
                at = max(start + 1, reached)
                n_vain += n_more
            else:
                at += 1
        except RecursionError:  # nested without end
            break
    return pieces


_LIST = re.compile(r'"(?:[^"\\\n]|\\.){1,100}"\s*:\s*\[\s*(?=\{)')
"""A key with a list of objects; what is in that list is none of its own."""


def lists(text: str) -> list[Piece]:
    r"""The objects of the lists in a JSON report, `{"title": ..., "rows": [{...}, ...]}`; no others.

    Example:
        >>> [piece.fields for piece in lists('{"unit": "$", "rows": [{"a": 1}, {"a": 2}]}')]
        [{'a': '1'}, {'a': '2'}]
    """
    if not text.lstrip().startswith("{"):
        return []
    pieces: list[Piece] = []
    at = n_vain = 0
    while n_vain <= _MAX_VAIN * len(text) and (key := _LIST.search(text, at)):
        try:
            reached, n_more = _read(text, key.end(), 0, pieces)
        except RecursionError:
            break
        at = max(key.end(), reached)
        n_vain += n_more
    return pieces


def _read(source: str, start: int, offset: int, pieces: list[Piece]) -> tuple[int, int]:
    """Read one object after the other."""
    reached = start
    while source.startswith("{", start):
        try:
            members, reached = _decode(source, start)
        except json.JSONDecodeError as error:  # to make one counts the lines before
            return reached, error.pos - start + error.pos // 16
        after = _AFTER.match(source, reached)
        if not after:
            break
        fields = _fields(source, start, reached, members)
        pieces.append(Piece(offset + start, offset + reached, fields))
        start = after.end()
    return reached, 0


def _fields(source: str, start: int, end: int, members: list[tuple[str, object]]) -> dict[str, str]:
    fields = dict(members)
    is_flat = len(fields) == len(members) and set(map(type, fields.values())) <= {str}
    if is_flat and source.find("\\u", start, end) < 0:
        return cast(dict[str, str], fields)
    names = [_whole(name) for name, _ in members]
    values = [
        source[a:b] if (shown := _shown(value)) is None else shown
        for (_, value), (a, b) in zip(members, _spans(source, start), strict=True)
    ]
    return fields_of(names, values)


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
