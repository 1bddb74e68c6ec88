"""Entries: the items that a text lists, in whatever form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pearl.documents.passages import is_wrapped, paragraphs
from pearl.documents.units import Piece, left_out, record, trimmed, turn
from pearl.documents.units._plain import split_lines, split_paragraphs
from pearl.errors.patterns import lazy_pattern

_LEAST_BY_FORM = 0.5  # minimum share of the text in records or turns, which have a distinctive form

_LEAST_OF_ITEMS = 0.9
"""Minimum share of the text in the items of lists; prose may contain lists, too."""

_MAX_LINES = 10  # maximum mean number of lines of a paragraph that is an entry

_ITEM = lazy_pattern(  # - salt, 3. salt, (b) salt
    r"^([ \t]*+)(?:[-*•‣▪–]|\(?\d{1,9}[.)]|\(?[a-zA-Z][.)])[ \t]+(?=\S)", re.M
)


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    r"""The entries of a text.

    They have the first of these forms that the text has:

    1. records, two or more, that cover half of the text, or the only row below a header;
    2. turns of a conversation that cover half of it;
    3. items of lists that cover nine tenths of it;
    4. lines, if they are not wrapped and blank lines do not group them: the text has no blank lines, at
       least half of the paragraphs have one line, or paragraphs have more than ten lines on average;
    5. paragraphs.

    A line that is a row below a header has its cells as fields.
    """
    length = len(text.strip())
    fields: dict[int, dict[str, str]] = {}
    for unit, share in (
        (record.split, _LEAST_BY_FORM),
        (turn.split, _LEAST_BY_FORM),
        (_items, _LEAST_OF_ITEMS),
    ):
        try:
            pieces = unit(text)
        except ValueError:
            continue
        if unit is record.split:
            if _is_only_row(text, pieces):
                return pieces
            fields = {piece.start: piece.fields for piece in pieces}
        n_other = sum(span.end - span.start for span in left_out(text, pieces))
        if len(pieces) > 1 and n_other <= (1 - share) * length:
            return pieces
    if not length:
        raise ValueError("no entry: the text is blank")
    lines = [1 + text.count("\n", span.start, span.end) for span in paragraphs(text)]
    n_grouped = sum(n > 1 for n in lines)
    are_short = len(lines) == 1 or 2 * n_grouped <= len(lines)
    if is_wrapped(text) or not (are_short or sum(lines) > _MAX_LINES * len(lines)):
        return split_paragraphs(text)
    return [piece._replace(fields=fields.get(piece.start, {})) for piece in split_lines(text)]


def _is_only_row(text: str, pieces: Sequence[Piece]) -> bool:
    """Whether the text is only a table; without a rule, its row must contain a number."""
    if len(pieces) != 1 or text[pieces[0].end :].strip():
        return False
    (row,) = pieces
    header = text[: row.start].strip()
    is_ruled = "\n" in header and record.OF_RULES.issuperset(header.rpartition("\n")[2])
    is_table = len(row.fields) > 1 and all(name in header for name in row.fields)
    is_number = any(value[:1].isdigit() for value in row.fields.values())
    return is_table and (is_ruled or (is_number and "\n" not in header))


def _items(text: str) -> list[Piece]:
    """The outermost items of lists, with their inner items; prose after a blank line belongs to no item."""
    starts = list(_ITEM.finditer(text))
    if not starts:
        return []
    least = min(len(match[1]) for match in starts)
    starts = [match for match in starts if len(match[1]) == least]
    pieces: list[Piece] = []
    for match, following in zip(starts, [*starts[1:], None], strict=True):
        end = following.start() if following else len(text)
        prose = re.compile(rf"\n[^\S\n]*\n(?![ \t]{{{least + 1}}}|\s)").search(
            text, match.end(), end
        )
        pieces += trimmed(text, match.start(), prose.start() if prose else end)
    return pieces
