r"""A document → its tables, in Markdown, apart from its text; of all of it, or of passages.

Every line of the document is in one of the two parts, and rows are never without their header. A table is what
has a header: `pearl.documents.units.record.below_headers`. What a document says cannot be taken for
one of the labels: a line that reads like one is escaped.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

from pearl.documents.document import Document, heading, part_spans
from pearl.documents.passages import chunks
from pearl.documents.table.shown import ShownTable, escaped, shown_tables
from pearl.errors import Span

TABLES, TEXT, GAP = "[tables]", "[text]", "[...]"

LABELS = f"{TABLES}\n\n\n\n{TEXT}\n\n"
"""What is shown beside tables and text, for counting it."""

ATOMS = 8
"""A part of a document has so many atoms at least."""


class Atom(NamedTuple):
    """What is shown as a whole or not at all: a row of a table, or a passage of the text."""

    span: Span
    text: str
    n_tokens: int


class TablesApart:
    r"""The tables and the text of a document. Tables are looked for in the parts that are shown.

    Example:
        >>> text = "Sales rose.\n\nIn millions:\n\nitem,2008\nsales,$5\ncosts,$4\n\nCosts did, too.\n"
        >>> print(TablesApart(Document(text)).whole)
        [tables]
        <BLANKLINE>
        [table 1]
        <BLANKLINE>
        In millions:
        <BLANKLINE>
        | item | 2008 |
        | --- | --- |
        | sales | $5 |
        | costs | $4 |
        <BLANKLINE>
        [text]
        <BLANKLINE>
        Sales rose.
        <BLANKLINE>
        [table 1]
        <BLANKLINE>
        Costs did, too.
        <BLANKLINE>
    """

    def __init__(self, document: Document) -> None:
        self.text = document.text
        self._all = Span(0, len(document.text))
        self._parts = part_spans(document.text, document.parts) or [("", self._all)]
        self._starts = [span.start for _, span in self._parts]
        self._found: dict[int, tuple[ShownTable, ...]] = {}

    @cached_property
    def whole(self) -> str:
        """All of the document; as it is where it has no table."""
        return self.show([self._all]) if any(self.tables(self._all)) else self.text

    def tables(self, span: Span) -> Iterator[ShownTable]:
        """The tables that a span of the document has something of, in order."""
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
        beside: ShownTable | None = None  # the table in whose place the text now stands
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
        """All that the document consists of."""
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
            if atoms and not said.strip():  # between tables
                before = atoms[-1]
                atoms[-1] = before._replace(span=Span(before.span.start, piece.end))
                continue
            for each in chunks(said, max_tokens, count):
                passage = said[each.start : each.end]
                span = Span(piece.start + each.start, piece.start + each.end)
                atoms.append(Atom(span, passage, count(passage)))
        return atoms

    def parts(self, max_tokens: int, count: Callable[[str], int]) -> list[str]:
        """The document in parts of so many tokens at most, each with the heads of its tables.

        One that has a single row, or a word, may be longer.
        """
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
        """The number of the joined document that an offset is in."""
        return max(0, bisect_right(self._starts, at) - 1)

    def _pieces(self, span: Span) -> Iterator[tuple[Span, ShownTable | None]]:
        """A span in order: what is of a table, and the text between."""
        at = span.start
        for table in self.tables(span):
            if at < table.span.start:
                yield Span(at, table.span.start), None
            at = min(span.end, table.span.end)
            yield Span(max(span.start, table.span.start), at), table
        if at < span.end:
            yield Span(at, span.end), None


def _joined(spans: Sequence[Span]) -> Iterator[Span]:
    """Spans of which none begins where another ends: lines that they divide are read as a whole."""
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
