"""A document with marks → its files as text or tables, cut where marks begin and end."""

from __future__ import annotations

import base64
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.document import Document, kind_by_name, part_spans
from pearl.documents.pages import Box, PageImage, boxes_of, page_images
from pearl.documents.rows import Row
from pearl.documents.table import cell_span, table_rows
from pearl.errors import DataError, Span, UsageError

MAX_WHOLE = 5_500_000
"""Maximum characters of a text that is shown whole; a longer text is shown only around its marks."""

AROUND = 2_000  # Characters shown before and after a mark of a longer text

BLOCK = 20_000  # Minimum characters of a block

MAX_LIT = 600  # Maximum characters of a highlighted mark; a longer one has a line at its side

MAX_CELL, AROUND_CELL = 120, 45
"""Maximum characters of a cell that is shown whole; characters around a mark of a longer one."""

MAX_TABLE, CHUNK = 20_000, 100
"""Maximum rows of a table that is shown as a table, and rows that the browser lays out together."""


class Piece(Struct, frozen=True):
    """A piece of text with the numbers of the marks that cover it and that begin in it."""

    text: str
    marks: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()
    is_lit: bool = True


class Gap(Struct, frozen=True):
    """A number of characters that are not shown."""

    n: int


class Mark(Struct, frozen=True):
    """The position of a piece of evidence: a passage, or a row with the cells that the answer cites."""

    number: int
    span: Span
    cells: tuple[Span, ...] = ()
    is_row: bool = False


class Cell(Struct, frozen=True):
    """A cell; a long one is shortened, and `whole` has its full text."""

    pieces: list[Piece | Gap]
    whole: str = ""


class Line(Struct, frozen=True):
    """A row of a table, with the numbers of evidence that begins in it."""

    marks: tuple[int, ...]
    cells: list[Cell]
    note: str = ""


class Table(Struct, frozen=True):
    """A table: its columns with widths in percent, and its rows in chunks."""

    columns: list[tuple[str, int]]
    width: str
    chunks: list[Sequence[Line]]
    before: str = ""


class File(Struct, frozen=True):
    """A file of a document as text or tables, with the numbers of its evidence; `whole` has those of evidence that covers the whole file."""

    name: str
    n_characters: int
    numbers: tuple[int, ...]
    whole: tuple[int, ...]
    blocks: list[list[Piece | Gap]]
    tables: list[Table]


def highlighted(
    text: str,
    marks: Sequence[tuple[int, Span]],
    *,
    most: int = MAX_WHOLE,
    around: int = AROUND,
    at: Sequence[Span] = (),
) -> list[Piece | Gap]:
    """Cut a text where marks, which may overlap, begin and end. A long text is shown only around its marks, or around `at` if it has none."""
    shown = _spans_to_show(text, [span for _, span in marks] or at, most, around)
    cuts = {at for span in shown for at in (span.start, span.end)}
    for _, span in marks:
        cuts |= {span.start, span.end}
    order = sorted(cut for cut in cuts if 0 <= cut <= len(text))
    coming = sorted(marks, key=lambda mark: mark[1].start, reverse=True)
    active: list[tuple[int, Span]] = []
    pieces: list[Piece | Gap] = []
    at_end = n_shown = 0
    begun: set[int] = set()
    for start, end in pairwise(order):
        while n_shown < len(shown) and shown[n_shown].end <= start:
            n_shown += 1
        while coming and coming[-1][1].start <= start:
            active.append(coming.pop())
        active = [mark for mark in active if mark[1].end > start]
        if n_shown == len(shown) or start < shown[n_shown].start:
            continue
        if start > at_end:
            pieces.append(Gap(start - at_end))
        begins = sorted({n for n, span in active if span.start == start} - begun)
        begun.update(begins)
        is_lit = any(span.end - span.start <= MAX_LIT for _, span in active)
        covering = sorted(n for n, _ in active)
        pieces.append(Piece(text[start:end], tuple(covering), tuple(begins), is_lit))
        at_end = end
    if at_end < len(text):
        pieces.append(Gap(len(text) - at_end))
    return pieces


def blocks(pieces: Iterable[Piece | Gap]) -> list[list[Piece | Gap]]:
    """Group pieces into blocks that end with an unmarked line; browsers lay out only blocks near the visible part."""
    found: list[list[Piece | Gap]] = [[]]
    n = 0
    for piece in pieces:
        text = "" if isinstance(piece, Gap) or piece.marks else piece.text
        at = 0
        while (end := text.find("\n", max(at, at + BLOCK - n)) + 1) > 0:
            found[-1].append(Piece(text[at:end]))
            found.append([])
            at, n = end, 0
        if isinstance(piece, Gap) or piece.marks:
            found[-1].append(piece)
        elif at < len(text):
            found[-1].append(Piece(text[at:]))
        n += 0 if isinstance(piece, Gap) else len(piece.text) - at
    return [block for block in found if block]


def _spans_to_show(text: str, spans: Sequence[Span], most: int, n_around: int) -> list[Span]:
    """The parts of a text to show: all of it, or the surroundings of the marks."""
    if len(text) <= most:
        return [Span(0, len(text))]
    around = [Span(max(0, s.start - n_around), min(len(text), s.end + n_around)) for s in spans]
    joined: list[Span] = []
    first = Span(0, min(n_around, len(text)))
    for span in sorted(around or [first], key=lambda span: span.start):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def files_of(document: Document, marks: Sequence[Mark]) -> list[File]:
    """The files of a document with their marks; spreadsheets and row files become tables."""
    most = MAX_WHOLE if len(document.text) <= MAX_WHOLE else 2 * AROUND
    one = [(document.name, Span(0, len(document.text)))]
    ordered = sorted(marks, key=lambda mark: mark.span.start)
    starts = [mark.span.start for mark in ordered]
    files = []
    for name, span in part_spans(document.text, document.parts) or one:
        text = document.text[span.start : span.end]
        own = ordered[bisect_left(starts, span.start) : bisect_left(starts, span.end)]
        numbers = tuple(sorted(mark.number for mark in own))
        is_table = document.kind == "table" or kind_by_name(name) == "table"
        tables = _tables(text, span.start, own) if is_table else []
        n_text = len(text.strip())
        is_whole = [m.is_row and m.span.end - m.span.start >= n_text for m in own]
        whole = tuple(mark.number for mark, is_all in zip(own, is_whole, strict=True) if is_all)
        pairs = [
            (m.number, Span(lit.start - span.start, lit.end - span.start))
            for m, is_all in zip(own, is_whole, strict=True)
            for lit in m.cells or (m.span,)  # The cited cells instead of the whole row
            if not is_all
        ]
        lines = [] if tables else blocks(highlighted(text, pairs, most=most))
        files.append(File(name, len(text), numbers, whole, lines, tables))
    return files


def _tables(text: str, offset: int, marks: Sequence[Mark]) -> list[Table]:
    """The tables of a file; [] if they are very long, or much of the file is other text."""
    found = list(table_rows(Document(text)))
    if sum(len(each.rows) for each in found) > MAX_TABLE:
        return []
    tables, end, n_other = [], 0, 0
    for each in found:
        names = list(dict.fromkeys(name for row in each.rows for name in row.fields))
        lines = text[end : each.rows[0].spans[0].start].split("\n")
        # Lines of names, and rules such as |---|, are no text before the table.
        others = [line for line in lines if any(map(str.isalnum, line))]
        before = "\n".join(
            line for line in others if not all(name in line for name in names)
        ).strip()
        n_other += len(before)
        tables.append(_table(names, each.rows, offset, marks, before, above=offset + end))
        end = each.rows[-1].spans[-1].end
    return tables if n_other + len(text) - end < len(text) / 4 else []


def _table(
    names: list[str],
    rows: Sequence[Row],
    offset: int,
    marks: Sequence[Mark],
    before: str,
    above: int,
) -> Table:
    starts = [offset + row.spans[0].start for row in rows]
    of_row: dict[int, list[Mark]] = {}
    begun: dict[int, list[int]] = {}
    for mark in marks:
        first = max(0, bisect_left(starts, mark.span.start + 1) - 1)
        last = max(first + 1, bisect_left(starts, mark.span.end))
        # Evidence in the header, which may stand after `above`, leads to the first row.
        is_in = mark.span.end > starts[first] or (first == 0 and mark.span.start >= above)
        if is_in and mark.span.start < offset + rows[first].spans[0].end:
            begun.setdefault(first, []).append(mark.number)
            for i in range(first, last):
                of_row.setdefault(i, []).append(mark)
    lines = [
        Line(
            tuple(begun.get(i, ())),
            [_table_cell(row, name, offset, of_row.get(i, ())) for name in names],
        )
        for i, row in enumerate(rows)
    ]
    return make_table(names, lines, before)


def _table_cell(row: Row, name: str, offset: int, marks: Sequence[Mark]) -> Cell:
    """A cell with its marked parts."""
    text = row.fields.get(name) or ""
    if not marks or not text:
        return shown_cell(text)
    cell, whole = cell_span(row, name), row.spans[0]
    lit: list[tuple[int, Span]] = []
    for mark in marks:
        for span in mark.cells or (() if mark.is_row else (mark.span,)):
            start, end = span.start - offset, span.end - offset
            if start <= whole.start and end >= whole.end:
                lit.append((mark.number, Span(0, len(text))))
            elif cell is not None and cell != whole and start < cell.end and end > cell.start:
                inner = Span(max(0, start - cell.start), min(len(text), end - cell.start))
                lit.append((mark.number, inner))
    return shown_cell(text, lit)


def shown_cell(text: str, marks: Sequence[tuple[int, Span]] = ()) -> Cell:
    """Shorten a long cell to the surroundings of its marks, or to its beginning."""
    is_long = len(text) > MAX_CELL
    if not marks and not is_long:
        return Cell([Piece(text)])
    at = [Span(AROUND_CELL, AROUND_CELL)] if is_long else []
    pieces = highlighted(text, marks, most=MAX_CELL, around=AROUND_CELL, at=at)
    plain = [replace(p, begins=()) if isinstance(p, Piece) else p for p in pieces]
    return Cell(plain, text if is_long else "")


def make_table(names: Sequence[str], lines: Sequence[Line], before: str = "") -> Table:
    """A table with columns as wide as their first cells need."""
    weights = [13 if any(line.note for line in lines) else 9]
    for i, name in enumerate(names):
        cells = [line.cells[i].pieces for line in lines[:50]]
        sample = sorted(sum(len(p.text) for p in ps if isinstance(p, Piece)) for ps in cells)
        weights.append(min(max(4, len(name) * 6 // 5, sample[len(sample) * 9 // 10]), 24) + 6)
    n = sum(weights)
    shares = (max(1, 100 * weight // n) for weight in weights)
    columns = list(zip(("no.", *names), shares, strict=True))
    width = "100%" if n < 84 else f"{8 * n}"  # Pixels; a wider table is scrolled
    return Table(columns, width, chunked(lines), before)


def chunked(lines: Sequence[Line]) -> list[Sequence[Line]]:
    """Divide rows into chunks; browsers lay out only chunks near the visible part."""
    return [lines[i : i + CHUNK] for i in range(0, len(lines), CHUNK)]


MAX_SHEETS = 20  # Maximum pages shown as pictures


class Sheet(Struct, frozen=True):
    """A page as a picture, with the boxes of its evidence by number, and the numbers of evidence that begins on it."""

    page: int
    image: PageImage
    boxes: Mapping[int, Sequence[Box]]
    begins: frozenset[int]

    @property
    def address(self) -> str:
        """The picture as a `data:` URL."""
        return f"data:{self.image.mime};base64,{base64.b64encode(self.image.data).decode()}"


def sheets_of(
    document: Document | None,
    files: Mapping[str, Path],
    marks: Sequence[Mark],
    problems: list[str],
    most: int = MAX_SHEETS,
) -> dict[str, list[Sheet]]:
    """The pages with evidence of each PDF file, by the file's name in the document."""
    sheets: dict[str, list[Sheet]] = {}
    if document is None or not files:
        return sheets
    n_left = most
    n_omitted = 0
    one = [(document.name, Span(0, len(document.text)))]
    for name, whole in part_spans(document.text, document.parts) or one:
        own = [mark for mark in marks if whole.start <= mark.span.start < whole.end]
        if name not in files or not own or not document.pages:
            continue
        places = [(mark.number, span) for mark in own for span in mark.cells or (mark.span,)]
        try:
            found = boxes_of(files[name], document, [span for _, span in places])
            by_page: dict[int, dict[int, list[Box]]] = {}
            for (number, _), boxes in zip(places, found, strict=True):
                for box in boxes:
                    by_page.setdefault(box.page, {}).setdefault(number, []).append(box)
            chosen = sorted(by_page)[:n_left]
            images = page_images(files[name], chosen) if chosen else {}
        except DataError as error:
            problems.append(f"Its pages cannot be shown: {error.message.splitlines()[0]}.")
            continue
        except UsageError as error:  # an extra is missing
            problems.append(f"Its cited pages are shown as text: {error.message}; {error.help}")
            break
        n_left -= len(images)
        n_omitted += len(by_page) - len(chosen)
        first = {number: page for page in sorted(images, reverse=True) for number in by_page[page]}
        sheets[name] = [
            Sheet(page, image, by_page[page], frozenset(n for n in first if first[n] == page))
            for page, image in sorted(images.items())
        ]
    if n_omitted:
        problems.append(f"Cited pages beyond the first {most:,} are not shown as pictures.")
    return sheets
