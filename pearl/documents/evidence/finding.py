"""Find the quotes in a reply, and the table rows that they quote, in whatever form the document has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import groupby

from pearl.documents.document import Document, part_spans
from pearl.documents.evidence.normal import UNSPACED, normalise
from pearl.documents.units.record import below_headers, row_cells
from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern

MIN_PASSAGE_WORDS = 4
"""Minimum words of a passage; a shorter quote is a term or a title, which may occur in many
places."""
CHARACTERS_PER_WORD = 2  # minimum characters in scripts without blanks between words

_QUOTED_LINE = lazy_pattern(  # "> He left." or "1. > He left."
    r"""[ \t]* (?:(?:[-*+•]|\d{1,3}[.)])[ \t]+)?  # may be an item of a list
    > (?:[ \t]*>)*+ (?!=|[-+−–±~≈<.,$€£¥₹]*\d(?!\d?[.)]\s))  # `>=` and `>5 mg` compare
    [ \t]* (?P<text>.*)""",
    re.VERBOSE,
)
_WITHIN = r"(?!\n\s*\n)"  # a quotation may run over a line break, not over a paragraph's end
_INLINE = lazy_pattern(
    rf'(?<!\w)"((?:{_WITHIN}[^"])+)"(?!\w)'  # "a dog", not 5" by 4"
    rf"|[“„«‹「『]((?:{_WITHIN}[^“”„«»‹›「」『』])+)[”“»›」』]"  # “a dog”, „ein Hund“, « un chien », 「犬」
)
_MARKS = '>"“„«‹「『'  # One of them begins every quote


def quoted_line(line: str) -> str | None:
    """The content of a Markdown block-quote line, or None; a `>` right before a number means "more than"."""
    match = _QUOTED_LINE.fullmatch(line)
    return None if match is None else match["text"].rstrip()


def find_quotes(reply: str) -> list[str]:
    """The quotes of a reply in order: block quotes and inline quotations of any length."""
    if not any(mark in reply for mark in _MARKS):  # A tenth of the time of the patterns
        return []
    quotes: list[str] = []
    lines = [(quoted_line(line), line) for line in reply.splitlines()]
    for is_block, run in groupby(lines, lambda pair: pair[0] is not None):
        text = "\n".join(line if quoted is None else quoted for quoted, line in run)
        found = [text] if is_block else [one or two for one, two in _INLINE.findall(text)]
        quotes += [quote.strip() for quote in found if any(map(str.isalnum, quote))]
    return quotes


def n_words(text: str) -> int:
    """Number of words in a text; two characters of scripts without blanks count as one."""
    n_unspaced = len(UNSPACED.findall(text))
    return max(len(text.split()), n_unspaced // CHARACTERS_PER_WORD)


def is_passage(quote: str) -> bool:
    """Whether a quote is long enough to be a passage rather than a term."""
    return n_words(quote) >= MIN_PASSAGE_WORDS


class TableRowFinder:
    r"""Finds rows of the tables of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def find(self, quote: str) -> Iterator[Span]:
        """Find the rows that contain the cells of a quote, adjacent and in order; a quote without bars is a whole row."""
        if "|" not in quote:
            yield from self._lines.get(normalise(quote), ())
            return
        quoted = [cell.strip().replace(r"\|", "|") for cell in row_cells(quote)]
        bare = [_bare(cell) for cell in quoted]
        if len(quoted) < 2 or not any(bare) or "\n" in quote:
            return
        for span, cells in self._rows.get(max(bare, key=len), ()):
            runs = (cells[i : i + len(quoted)] for i in range(len(cells) - len(quoted) + 1))
            if any(all(map(_agree, run, quoted)) for run in runs):
                yield span

    @cached_property
    def _rows(self) -> dict[str, list[tuple[Span, tuple[str, ...]]]]:
        """The rows, indexed by the letters and digits of their cells."""
        found: dict[str, list[tuple[Span, tuple[str, ...]]]] = {}
        for line in self._every:
            for key in set(map(_bare, line[1])):
                found.setdefault(key, []).append(line)
        return found

    @cached_property
    def _lines(self) -> dict[str, list[Span]]:
        """The places of the rows, by their cells in normal form, joined by blanks."""
        found: dict[str, list[Span]] = {}
        for span, cells in self._every:
            found.setdefault(normalise(" ".join(filter(None, cells))), []).append(span)
        return found

    @cached_property
    def _every(self) -> list[tuple[Span, tuple[str, ...]]]:
        """The rows of all tables that have a header."""
        text = self._document.text
        return [
            (Span(span.start + start, span.start + end), tuple(fields.values()))
            for _, span in part_spans(text, self._document.parts) or [("", Span(0, len(text)))]
            for start, end, fields in below_headers(text[span.start : span.end])
        ]


def _bare(cell: str) -> str:
    """The letters and digits of a cell, for a first comparison."""
    return "".join(filter(str.isalnum, cell))


def _agree(cell: str, quoted: str) -> bool:
    return cell == quoted or (_bare(cell) == _bare(quoted) and normalise(cell) == normalise(quoted))
