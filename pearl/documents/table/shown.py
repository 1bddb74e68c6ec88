"""A text → its tables as they are shown: in Markdown, each with its label, caption and unit."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pearl.documents.rows import Row
from pearl.documents.table import mended, scale_word
from pearl.documents.table.quantities import scale_of
from pearl.documents.table.rendering import markdown
from pearl.documents.units import Piece
from pearl.documents.units.record import below_headers
from pearl.errors import Span

MAX_ROW = 2_000
"""Characters of a row, or of a header: what is longer is prose in cells, and stays in the text."""

MAX_CAPTION = 200
"""Characters of a line that may be a caption, or read like a label."""

_WORD = re.compile(r"\w+")
_OF_RULES = frozenset("|:-=+_, ;\t\n")
_DELIMITER = re.compile(r"[|\t,;]")
_SENTENCE_END = re.compile(r"[.!?…。！？]['\"”’)]*$")
_LIKE_LABEL = re.compile(r"tables|text|table\d+.*")


@dataclass(frozen=True)
class ShownTable:
    """A table as it is shown."""

    label: str
    mark: str
    span: Span
    caption: str
    header: tuple[str, ...]
    header_span: Span | None
    rows: tuple[tuple[Span, tuple[str, ...]], ...]

    @cached_property
    def head(self) -> str:
        """What stands above its rows, wherever some of them are shown."""
        caption = [escaped(self.caption)] if self.caption else []
        return "\n\n".join([self.label, *caption, markdown(self.header, [])])

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its rows in Markdown."""
        return tuple(markdown(self.header, (cells for _, cells in self.rows)).split("\n")[2:])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each row begins; the first one with all that stands above it."""
        return (self.span.start, *(span.start for span, _ in self.rows[1:]))

    def within(self, span: Span) -> range:
        """The rows that a span has something of."""
        first = max(0, bisect_right(self.starts, span.start) - 1)
        last = bisect_right(self.starts, span.end - 1)
        return range(first, last)


def shown_tables(text: str, part: Span, name: str) -> Iterator[ShownTable]:
    """The tables of a document, in order."""
    source = text[part.start : part.end]
    name = " ".join(name.split()).translate({ord("["): "(", ord("]"): ")"})
    of = f" of {name}" if name else ""
    end = number = 0
    for pieces in _grouped(source, below_headers(source)):
        table = _table(source, end, pieces)
        if table is None:
            continue
        number += 1
        end = table.span.end
        yield ShownTable(
            f"[table {number}{of}{table.label}]", f"[table {number}{of}]",
            _moved(table.span, part.start), table.caption, table.header,
            None if table.header_span is None else _moved(table.header_span, part.start),
            tuple((_moved(span, part.start), cells) for span, cells in table.rows),
        )  # fmt: skip


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def _grouped(text: str, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """The rows of each table: those with the same fields and nothing but rules between them.

    A sentence below a blank line is none, though it may have as many commas as a row.
    """
    group: list[Piece] = []
    for piece in pieces:
        is_below_blank = group and "\n\n" in text[group[-1].end : piece.start]
        if is_below_blank and _SENTENCE_END.search(text[piece.start : piece.end]):
            continue
        if group and not (
            tuple(piece.fields) == tuple(group[-1].fields)
            and _OF_RULES.issuperset(text[group[-1].end : piece.start])
        ):
            yield group
            group = []
        group.append(piece)
    if group:
        yield group


def _table(text: str, after: int, pieces: Sequence[Piece]) -> ShownTable | None:
    """A table without number, with what belongs to its label; None if it is prose in cells."""
    first = pieces[0]
    names = tuple(first.fields)
    if max(sum(map(len, names)), *(each.end - each.start for each in pieces)) > MAX_ROW:
        return None
    rows: Sequence[Row] = [
        Row("", each.fields, (Span(each.start, each.end),), "") for each in pieces
    ]
    header_span = _header(text, after, first.start, names)
    start = first.start if header_span is None else header_span.start
    written = "" if header_span is None else text[header_span.start : header_span.end]
    tidy = mended(rows)
    if set(_WORD.findall(written)) <= set(_WORD.findall(" ".join(tidy[0].fields))):
        rows = tidy
    above = _line_above(text, after, start)
    caption = "" if above is None else text[above.start : above.end]
    is_caption = above is not None and _stands_alone(text, after, above)
    header = tuple(rows[0].fields)
    scale = scale_word(scale_of(header[0]) or scale_of(caption) or 0)
    is_said = scale in header[0].casefold() or (is_caption and scale in caption.casefold())
    return ShownTable(
        "" if is_said else f": in {scale}", "",
        Span(above.start if above is not None and is_caption else start, pieces[-1].end),
        caption.strip() if is_caption else "", header, header_span,
        tuple((row.spans[0], tuple(row.fields.get(n) or "" for n in header)) for row in rows),
    )  # fmt: skip


def _header(text: str, after: int, before: int, names: Sequence[str]) -> Span | None:
    """The line above the first row that names the columns; with the rule below it."""
    known = set(_WORD.findall(" ".join(names)))
    end = before
    while end > after:
        start = max(after, text.rfind("\n", after, end - 1) + 1)
        line = text[start:end]
        if not _OF_RULES.issuperset(line):
            words = set(_WORD.findall(line))
            is_header = words and words <= known and _DELIMITER.search(line)
            return Span(start, start + len(line.rstrip())) if is_header else None
        end = start
    return None


def _line_above(text: str, after: int, before: int) -> Span | None:
    """The last line of a text that says something, if it is not too long for a caption."""
    end = after + len(text[after:before].rstrip())
    start = max(after, text.rfind("\n", after, end) + 1)
    said = end - start
    return Span(start, end) if 0 < said <= MAX_CAPTION and text[start:end].strip() else None


def _stands_alone(text: str, after: int, line: Span) -> bool:
    """Whether a line above a table is its caption, and not the end of what is said before it."""
    before = text[after : line.start]
    is_alone = not before.strip() or before.endswith("\n\n") or not before.split("\n")[-2].strip()
    return is_alone and not _SENTENCE_END.search(text[line.start : line.end])


def escaped(text: str) -> str:
    r"""A text with lines that read like labels escaped.

    Example:
        >>> escaped("[text]\nas [text] shows\n [Table 2: in millions]")
        '\\[text]\nas [text] shows\n \\[Table 2: in millions]'
    """
    return "\n".join(_escaped_line(line) for line in text.split("\n")) if text else text


def _escaped_line(line: str) -> str:
    if len(line) > MAX_CAPTION or "t" not in line.casefold():
        return line
    plain = "".join(c for c in unicodedata.normalize("NFKC", line) if c.isalnum() or c in "[]")
    if not (plain.startswith("[") and plain.endswith("]")):
        return line
    if not _LIKE_LABEL.fullmatch(plain[1:-1].casefold()):
        return line
    at = len(line) - len(line.lstrip())
    return f"{line[:at]}\\{line[at:]}"
