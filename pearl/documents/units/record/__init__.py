"""Records: data in a text, one entry after the other, with named fields.

Every module of this folder reads one form, and finds nothing in a text of another:

- JSON objects, one after the other (JSON lines) or in an array;
- tables in Markdown;
- lines of pairs, `Date: Feb 02, 2023 || User: 76153`, with `||`, ` | ` or tabs between them;
- blocks of `Key: value` lines with blank lines between them;
- rows of cells with a header: CSV, TSV, semicolons, bars.

A text has one form: the first in this order whose records cover nearly all of it, else the one whose
records cover most. What stands before, between and after them is no record (`pearl.documents.units.left_out` finds it). Values are as in the source, numbers and
dates too; only what a form escapes is unescaped. A cell that is missing is "", and a row with more
cells than the header has them all in its last field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pearl.documents.units import Piece, left_out
from pearl.documents.units.record import blocks, cells, json_objects, markdown_tables, pairs

__all__ = ["below_headers", "split"]

_FORMS = (json_objects.find, markdown_tables.find, pairs.find, blocks.find, cells.find)
"""The more particular first."""

_NEARLY_ALL = 0.9

_MUCH_MORE = 1.25
"""A later form covers so many times what an earlier one does, or the earlier one is taken."""

_MOST_BESIDE_ONE = 0.5
"""Share of a text that may stand beside its only record: a line with two colons is no data."""


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    r"""Every record, with its fields.

    Example:
        >>> split("Two entries:\nUser: 7 || Text: yes\nUser: 9 || Text: no\n")[1]
        Piece(start=34, end=53, fields={'User': '9', 'Text': 'no'})
    """
    _, found = _best(text)
    if len(found) == 1:
        n_other = sum(span.end - span.start for span in left_out(text, found))
        if n_other > _MOST_BESIDE_ONE * len(text):
            found = []
    if not found:
        raise ValueError(
            "no records: neither JSON objects, tables with a header, nor lines or blocks of 'Key: value'"
        )
    return found


def below_headers(text: str) -> list[Piece]:
    r"""The rows that a header stands above: those of Markdown tables, of CSV and its kin.

    None where the records of the text are in another form: each of these has its names beside its values.

    Example:
        >>> [piece.fields for piece in below_headers("Sales:\n\n| id |\n|---|\n| 1 |")]
        [{'id': '1'}]
        >>> below_headers("User: 7 || Text: yes\nUser: 9 || Text: no")
        []
    """
    form, found = _best(text)
    # One row beside much text is a table in Markdown only.
    return found if form is cells.find and len(found) > 1 else markdown_tables.find(text)


def _best(text: str) -> tuple[Callable[[str], list[Piece]] | None, list[Piece]]:
    """The form that a text has, and its records."""
    form, found, covered = None, list[Piece](), 0
    for find in _FORMS:
        pieces = find(text)
        size = sum(piece.end - piece.start for piece in pieces)
        if size > _MUCH_MORE * covered:
            form, found, covered = find, pieces, size
        if covered > _NEARLY_ALL * len(text):
            break
    return form, found
