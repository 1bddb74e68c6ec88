"""Split a text into its pieces. Every other module of this folder is one unit; `_plain` has five.

A unit has `split(text, parts=()) -> list[Piece]`. Pieces are in order, are not blank, equal the text
at their offsets, and do not overlap unless the unit has `OVERLAPS = True`. Time is linear in the
length of any text, because documents may be hostile.

Names of fields are as in the text. A name that occurs twice in a piece is numbered, `note` and
`note (2)`; a column without a name is called `column 3`. A field called `text` or `count` takes
precedence over the meaning of these words for operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from pearl import plugins
from pearl.documents.lexicon import words_in
from pearl.documents.passages import stripped
from pearl.errors import Span


class Piece(NamedTuple):
    """One piece of a text. A tuple, because documents have hundreds of thousands."""

    start: int  # Offset of its first character in the text
    end: int  # Offset after its last character
    fields: dict[str, str]  # The names and values in the piece, as written in the text


class DocumentUnit(Protocol):
    """The interface of a unit module."""

    def split(self, text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
        r"""The pieces of a text.

        Args:
            text: Any text; `"\n"` is its only line break.
            parts: Names and start offsets of its parts: of files for the unit `document`, of pages
                for `page`. Other units ignore them.

        Raises:
            ValueError: The text has no such pieces; the message gives the reason.
        """
        ...


CONTRACT = DocumentUnit


def lines(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    r"""The lines of a text with their offsets; only "\n" ends a line."""
    for line in text[start:].split("\n"):
        yield start, line
        start += len(line) + 1


def trimmed(text: str, start: int, end: int, fields: dict[str, str] | None = None) -> list[Piece]:
    """A range of a text as a piece without surrounding blanks; no piece if the range is blank."""
    return [
        Piece(span.start, span.end, {} if fields is None else fields)
        for span in stripped(text, Span(start, end))
    ]


def left_out(text: str, pieces: Sequence[Piece]) -> tuple[Span, ...]:
    """Return the spans outside of all pieces, except table headers and text without letters and digits."""
    names = set(words_in(" ".join(dict.fromkeys(n for piece in pieces for n in piece.fields))))
    found: list[Span] = []
    at = 0
    for start, end in [*((piece.start, piece.end) for piece in pieces), (len(text), len(text))]:
        if start - at > 1 or text[at:start].strip():
            words = set(words_in(text[at:start]))
            if words and not words <= names:
                found += stripped(text, Span(at, start))
        at = end
    return tuple(found)


def left_out_note(spans: Sequence[Span], unit: str) -> str:
    """A note on the text outside all pieces, without quoting it."""
    n = sum(span.end - span.start for span in spans)
    places = f"{len(spans):,} place{'s' * (len(spans) > 1)}"
    return (
        f"{n:,} character{'s' * (n > 1)} of the text belong to no {unit} "
        f"({places}, the first at character {spans[0].start:,})"
    )


UNITS = plugins.names(__name__)  # last, because the units import the names above
"""Names of all units."""
