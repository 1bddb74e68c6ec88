"""A document or some of its passages → its tables in Markdown, followed by its text without them.

Every line of the document is in one of the two parts, and rows are always shown with their header. Only
rows below a header are a table (`pearl.documents.units.record.below_headers`). A line of the document
that looks like one of the labels is escaped.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

from pearl.documents.document import Document, heading, part_spans
from pearl.documents.passages import chunks
from pearl.documents.rows import Row
from pearl.documents.table import markdown, mended, scale_word
from pearl.documents.table.quantities import scale_of
from pearl.documents.units import Piece
from pearl.documents.units.record import below_headers
from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern

MAX_ROW = 2_000
"""Maximum characters of a row or header; longer ones are prose, and stay in the text."""

MAX_CAPTION = 200  # maximum characters of a caption or a label

_WORD = lazy_pattern(r"\w+")
_OF_RULES = frozenset("|:-=+_, ;\t\n")
_DELIMITER = lazy_pattern(r"[|\t,;]")
_SENTENCE_END = lazy_pattern(r"[.!?…。！？]['\"”’)]*$")
_LIKE_LABEL = lazy_pattern(r"tables|text|table\d+.*")


@dataclass(frozen=True)
class ShownTable:
    """A table in the form that prompts show."""

    label: str
    mark: str
    span: Span
    caption: str
    header: tuple[str, ...]
    header_span: Span | None
    rows: tuple[tuple[Span, tuple[str, ...]], ...]

    @cached_property
    def head(self) -> str:
        """The label, caption and header, shown above any of its rows."""
        caption = [escaped(self.caption)] if self.caption else []
        return "\n\n".join([self.label, *caption, markdown(self.header, [])])

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Its rows in Markdown."""
        return tuple(markdown(self.header, (cells for _, cells in self.rows)).split("\n")[2:])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The start of each row; the first row includes the header and caption."""
        return (self.span.start, *(span.start for span, _ in self.rows[1:]))

    def within(self, span: Span) -> range:
        """The rows that overlap a span."""
        first = max(0, bisect_right(self.starts, span.start) - 1)
        last = bisect_right(self.starts, span.end - 1)
        return range(first, last)


def shown_tables(text: str, part: Span, name: str) -> Iterator[ShownTable]:
    """The tables of a document, in order."""
    name = " ".join(name.split()).translate({ord("["): "(", ord("]"): ")"})
    of = f" of {name}" if name else ""
    found = below_headers(text[part.start : part.end])
    pieces = [Piece(part.start + start, part.start + end, fields) for start, end, fields in found]
    number, after = 1, part.start
    for group in _grouped(text, pieces):
        if table := _table(text, after, group, f"table {number}{of}"):
            yield table
            number, after = number + 1, table.span.end


def _grouped(text: str, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """The rows of each table: rows with the same fields and only rules between them."""
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


def _table(text: str, after: int, pieces: Sequence[Piece], name: str) -> ShownTable | None:
    """A table from its rows and the text after an offset; None if its cells are prose."""
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
        f"[{name}]" if is_said else f"[{name}: in {scale}]", f"[{name}]",
        Span(above.start if above is not None and is_caption else start, pieces[-1].end),
        caption.strip() if is_caption else "", header, header_span,
        tuple((row.spans[0], tuple(row.fields.get(n) or "" for n in header)) for row in rows),
    )  # fmt: skip


def _header(text: str, after: int, before: int, names: Sequence[str]) -> Span | None:
    """The line above the first row that names the columns, if any."""
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
    """The last non-blank line of a text, if it is short enough for a caption."""
    end = after + len(text[after:before].rstrip())
    start = max(after, text.rfind("\n", after, end) + 1)
    said = end - start
    return Span(start, end) if 0 < said <= MAX_CAPTION and text[start:end].strip() else None


def _stands_alone(text: str, after: int, line: Span) -> bool:
    """Whether a line above a table is its caption rather than the end of a paragraph."""
    before = text[after : line.start]
    is_alone = not before.strip() or before.endswith("\n\n") or not before.split("\n")[-2].strip()
    return is_alone and not _SENTENCE_END.search(text[line.start : line.end])


def escaped(text: str) -> str:
    """Escape the lines of a text that look like labels."""
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


TABLES, TEXT, GAP = "[tables]", "[text]", "[...]"

LABELS = f"{TABLES}\n\n\n\n{TEXT}\n\n"
"""The labels around tables and text, for counting their tokens."""

ATOMS = 8  # minimum atoms of a part of a document


class Atom(NamedTuple):
    """An indivisible part: a row of a table, or a passage of the text."""

    span: Span
    text: str
    n_tokens: int


class TablesApart:
    """The tables and the text of a document; each part is searched for tables when it is first shown."""

    def __init__(self, document: Document) -> None:
        self.text = document.text
        self._all = Span(0, len(document.text))
        self._parts = part_spans(document.text, document.parts) or [("", self._all)]
        self._starts = [span.start for _, span in self._parts]
        self._found: dict[int, tuple[ShownTable, ...]] = {}

    @cached_property
    def whole(self) -> str:
        """The whole document, unchanged if it has no table."""
        return self.show([self._all]) if any(self.tables(self._all)) else self.text

    def tables(self, span: Span) -> Iterator[ShownTable]:
        """The tables that overlap a span, in order."""
        for i in range(self._part(span.start), self._part(span.end - 1) + 1):
            if i not in self._found:
                name, part = self._parts[i]
                self._found[i] = tuple(shown_tables(self.text, part, name))
            found = self._found[i]
            first = bisect_right(found, span.start, key=lambda table: table.span.end)
            for table in islice(found, first, None):
                if table.span.start >= span.end:
                    break
                yield table

    def show(self, spans: Sequence[Span], *, is_named: bool = False) -> str:
        """Passages of the document, with `[...]` where something is left out between them."""
        rows: dict[str, tuple[ShownTable, set[int]]] = {}
        said: list[str] = []
        is_said = False
        end: int | None = None
        part: int | None = None
        beside: ShownTable | None = None  # the table whose mark was added last
        for span in _joined(spans):
            for piece, table in self._pieces(span):
                if end is not None and piece.start < end:  # windows overlap
                    piece = Span(min(end, piece.end), piece.end)
                skipped = "" if end is None else self.text[end : piece.start]
                gap = [GAP] if skipped.strip() else []
                end = piece.end if end is None else max(end, piece.end)
                if table is not None:
                    if table.mark != (beside and beside.mark):
                        _add_below(said, *gap, table.mark)
                    rows.setdefault(table.mark, (table, set()))[1].update(table.within(piece))
                    beside = table
                    continue
                text = self.text[piece.start : piece.end]
                if not text.strip():
                    said += [text] if beside is None else []
                    continue
                here = self._part(piece.start)
                is_new = is_named and here != part
                if is_new:
                    _add_below(said, heading(self._parts[here][0]).strip("\n"))
                elif gap:
                    _add_below(said, GAP)
                if beside or skipped or is_new:
                    _add_below(said, escaped(text).lstrip("\n"))
                else:
                    said.append(escaped(text))
                part, beside, is_said = here, None, True
        tables = [_rendered(table, sorted(found)) for table, found in rows.values()]
        text = "".join(said).lstrip("\n")
        return "\n\n".join(
            [*([TABLES] if tables else []), *tables, *([TEXT, text] if is_said else [])]
        )

    def atoms(self, max_tokens: int, count: Callable[[str], int]) -> list[Atom]:
        """The indivisible parts of the document, in order."""
        atoms: list[Atom] = []
        for piece, table in self._pieces(self._all):
            if table is not None:
                edges = [*table.starts, table.span.end]
                heads = [table.caption] if table.caption else []
                for (start, end), line, (_, cells) in zip(
                    pairwise(edges), table.lines, table.rows, strict=True
                ):
                    named = (f"{n}: {c}" for n, c in zip(table.header, cells, strict=True) if c)
                    atoms.append(Atom(Span(start, end), "; ".join([*heads, *named]), count(line)))
                continue
            said = self.text[piece.start : piece.end]
            if atoms and not said.strip():  # the text between tables
                before = atoms[-1]
                atoms[-1] = before._replace(span=Span(before.span.start, piece.end))
                continue
            for each in chunks(said, max_tokens, count):
                passage = said[each.start : each.end]
                span = Span(piece.start + each.start, piece.start + each.end)
                atoms.append(Atom(span, passage, count(passage)))
        return atoms

    def parts(self, max_tokens: int, count: Callable[[str], int]) -> list[str]:
        """Split the document into parts of at most `max_tokens`, each with the heads of its tables."""
        atoms = self.atoms(max(1, max_tokens // ATOMS), count)
        labels = count(LABELS)
        done: list[str] = []
        at = 0
        while at < len(atoms):
            used, to, seen = labels, at, set[str]()
            while to < len(atoms) and (to == at or used <= max_tokens):
                used += atoms[to].n_tokens
                for table in self.tables(atoms[to].span):
                    if table.mark not in seen:
                        seen.add(table.mark)
                        used += count(f"{table.head}\n\n{table.mark}\n\n")
                to += 1
            while True:  # token counts are not additive
                text = self.show([Span(atoms[at].span.start, atoms[to - 1].span.end)])
                excess = count(text) - max_tokens
                if excess <= 0 or to == at + 1:
                    break
                while excess > 0 and to > at + 1:
                    to -= 1
                    excess -= atoms[to].n_tokens
            done += [text] if text else []
            at = to
        return done

    def _part(self, at: int) -> int:
        """The number of the joined document at an offset."""
        return max(0, bisect_right(self._starts, at) - 1)

    def _pieces(self, span: Span) -> Iterator[tuple[Span, ShownTable | None]]:
        """Split a span into tables and text, in order."""
        at = span.start
        for table in self.tables(span):
            if at < table.span.start:
                yield Span(at, table.span.start), None
            at = min(span.end, table.span.end)
            yield Span(max(span.start, table.span.start), at), table
        if at < span.end:
            yield Span(at, span.end), None


def _joined(spans: Sequence[Span]) -> Iterator[Span]:
    """Merge adjacent spans, so that lines are not split."""
    start = end = -1
    for span in spans:
        if span.start == end:
            end = span.end
            continue
        if end >= 0:
            yield Span(start, end)
        start, end = span.start, span.end
    if end >= 0:
        yield Span(start, end)


def _rendered(table: ShownTable, rows: Sequence[int]) -> str:
    """Some rows of a table below its head."""
    lines = [table.head]
    for before, row in zip([None, *rows], rows, strict=False):
        lines += [GAP] if before is not None and before != row - 1 else []
        lines.append(table.lines[row])
    return "\n".join(lines)


def _add_below(said: list[str], *blocks: str) -> None:
    """Add texts below the others, with blank lines between."""
    while said:
        if last := said.pop().rstrip("\n"):
            said.append(last)
            break
    for block in blocks:
        said += ["\n\n", block] if said else [block]
