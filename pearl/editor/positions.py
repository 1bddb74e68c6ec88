"""Offsets of a text ↔ lines and columns of the Language Server Protocol."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]
"""What columns count; client and server agree on one, UTF-16 where nothing is said."""

_CODECS: dict[Encoding, tuple[str, int]] = {
    "utf-8": ("utf-8", 1),
    "utf-16": ("utf-16-le", 2),
    "utf-32": ("utf-32-le", 4),
}
"""Python's codec, and the bytes of its units."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A line and a column in code units, both from 0."""

    line: int
    column: int


def n_units(text: str, encoding: Encoding) -> int:
    """How many code units a text has.

    Example:
        >>> n_units("a🔑", "utf-16"), n_units("a🔑", "utf-8")
        (3, 5)
    """
    if text.isascii():
        return len(text)
    codec, size = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // size


class LineIndex:
    r"""The lines of a text in an editor.

    Example:
        >>> index = LineIndex("a\r\n🔑b")
        >>> index.position(index.text.index("b"))
        Position(line=1, column=2)
        >>> index.offset(Position(1, 2)) == index.text.index("b")
        True
    """

    def __init__(self, source: str, encoding: Encoding = "utf-16") -> None:
        unified = source.replace("\r\n", "\n").replace("\r", "\n")
        self.text = unified.removeprefix("\ufeff")
        self._encoding = encoding
        # The mark is a character to the editor, on the first line.
        self._lead = n_units(unified[: len(unified) - len(self.text)], encoding)
        self._starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = self.text.find("\n", at + 1)

    def position(self, offset: int) -> Position:
        """Where an offset is."""
        line = bisect_right(self._starts, offset) - 1
        column = n_units(self.text[self._starts[line] : offset], self._encoding)
        return Position(line, column + (self._lead if line == 0 else 0))

    def offset(self, position: Position) -> int:
        """The offset of a position; of one past the end of a line or of the text, that end.

        One inside of a character is before it.
        """
        if position.line < 0:
            return 0
        if position.line >= len(self._starts):
            return len(self.text)
        start, end = self.line(position.line)
        line = self.text[start:end]
        column = max(0, position.column - (self._lead if position.line == 0 else 0))
        if line.isascii():
            return start + min(column, len(line))
        places = range(len(line) + 1)
        n_before = bisect_right(places, column, key=lambda at: n_units(line[:at], self._encoding))
        return start + n_before - 1

    def line(self, number: int) -> tuple[int, int]:
        """Where a line begins and ends, without its line break."""
        is_last = number + 1 == len(self._starts)
        return self._starts[number], len(self.text) if is_last else self._starts[number + 1] - 1

    def end(self) -> Position:
        """Where the text ends."""
        return self.position(len(self.text))
