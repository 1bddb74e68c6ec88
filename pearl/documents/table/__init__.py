"""Tables of a document, in the forms of the unit `record`: their rows as they are written, captions and scales."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from pearl.documents.document import Document, part_spans
from pearl.documents.lexicon import SCALES, is_year, words_in
from pearl.documents.numbers import listed, read_quantity, scale_of
from pearl.documents.rows import Row, shortened
from pearl.documents.units import Piece
from pearl.documents.units.record import columns as unique_names
from pearl.documents.units.record import find_markdown, json_lists, split
from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern


def cell_span(row: Row, column: str) -> Span | None:
    """The span of a cell, or of its row if the document writes the cell differently."""
    if not row.spans:
        return None
    start, at = row.spans[0].start, 0
    for name, text in row.fields.items():
        found = row.text.find(text, at) if text else at
        if name == column:
            is_there = bool(text) and found >= 0
            return (
                Span(start + found, start + found + len(text or "")) if is_there else row.spans[0]
            )
        at = found + len(text or "") if found >= 0 else at
    return row.spans[0]


def mended(rows: Sequence[Row]) -> Sequence[Row]:
    """Merge columns of signs, and a second row of headings, into the cells and names beside them."""
    return _one_heading(_joined_marks(rows))


_BEFORE = frozenset("$€£¥(")
_AFTER = frozenset({")", "%", ")%", ") %"})


def _joined_marks(rows: Sequence[Row]) -> Sequence[Row]:
    """Merge columns that contain only currency signs, brackets or percent signs."""
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    values = {name: {(row.fields.get(name) or "").strip() for row in rows} - {""} for name in names}
    target: dict[str, str] = {}
    for i, name in enumerate(names):
        if values[name] and values[name] <= _BEFORE and i + 1 < len(names):
            target[name] = names[i + 1]
        elif values[name] and values[name] <= _AFTER and i:
            target[name] = next(n for n in reversed(names[:i]) if n not in target)
    if not target or not set(target.values()) - target.keys():
        return rows
    joined = []
    for row in rows:
        fields = {name: text for name, text in row.fields.items() if name not in target}
        for name, into in target.items():
            mark, text = row.fields.get(name) or "", fields.get(into) or ""
            fields[into] = f"{mark}{text}" if values[name] <= _BEFORE else f"{text}{mark}"
        joined.append(row._replace(fields=fields))
    return joined


def base_name(name: str) -> str:
    """The name of a column in the document: `Price` for `Price (2)`, the second column of that name."""
    bare, mark, number = name.rpartition(" (")
    return bare if mark and number.endswith(")") and number[:-1].isdecimal() else name


def _one_heading(rows: Sequence[Row]) -> Sequence[Row]:
    """Merge a second row of headings into the names of the columns: `2008 Q1`, `2008 Q2`."""
    first, *others = rows
    if not others or all(base_name(name) == name for name in first.fields):
        return rows
    texts = [text or "" for text in first.fields.values()]
    if any(read_quantity(text) and not is_year(text) for text in texts):
        return rows
    names = list(map(base_name, first.fields))
    both = (
        name if text in ("", name) else f"{name} {text}"
        for name, text in zip(names, texts, strict=True)
    )
    named = dict(zip(first.fields, unique_names(list(both)), strict=True))
    return [
        row._replace(fields={named.get(name, name): text for name, text in row.fields.items()})
        for row in others
    ]


def scale_word(scale: int) -> str:
    """`millions` for 6; "" for 0."""
    return next((f"{word}s" for word, power in SCALES.items() if power == scale), "")


MAX_NAMES = 4  # names of columns in a note
MAX_ABOVE = 2_000  # maximum characters between a caption and its table
MAX_CAPTION = 200  # maximum characters of a caption


class TableRows(NamedTuple):
    """The rows of one table, as they are written."""

    source: str
    caption: str
    rows: Sequence[Row]
    title: str = ""  # The headings above it: of its sheet or section, and its caption


def table_rows(document: Document) -> Iterator[TableRows]:
    """The rows of each table of a document; cells are not parsed, because that is the slowest part."""
    text = document.text
    for name, span in part_spans(text, document.parts) or [("", Span(0, len(text)))]:
        yield from rows_in(text[span.start : span.end], span.start, name or document.name)


def rows_in(text: str, offset: int | None, source: str = "") -> Iterator[TableRows]:
    """The rows of each table of a text that begins at an offset of its document, or at none."""
    try:
        pieces = json_lists(text) or split(text)
    except ValueError:  # no records, or one row in much text, which may still be a table
        pieces = find_markdown(text)
    end = 0
    for those in tables_of_pieces(text, pieces):
        caption = _caption(text, end, those[0].start, those[0])
        rows = []
        for piece in those:
            own, place = text[piece.start : piece.end], Span(piece.start, piece.end)
            rows.append(
                Row(own, piece.fields, () if offset is None else (place.moved(offset),), own)
            )
        if those[0].fields:  # {} is a record, too
            yield TableRows(source, caption, rows, _title(text, end, those[0]))
        end = those[-1].end


def scale_notes(text: str, pieces: Sequence[Piece]) -> Iterator[str]:
    """Notes on the scales in captions and headers, one sentence each."""
    end = 0
    names: tuple[str, ...] = ()
    for piece in pieces:
        if tuple(piece.fields) != names:
            names = tuple(piece.fields)
            caption = _caption(text, max(end, piece.start - MAX_ABOVE), piece.start, piece)
            for where, words in (("caption", caption), ("header", names[0] if names else "")):
                if scale := scale_of(words):
                    shown = listed(names, MAX_NAMES)
                    yield f"numbers of the table with {shown} are in {scale_word(scale)}, as its {where} says"
            for name in names[1:]:
                if scale := scale_of(name):
                    yield f"numbers of the column '{name}' are in {scale_word(scale)}"
        end = piece.end


def tables_of_pieces(text: str, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """The pieces of each table of a text: it ends where the columns change or other text follows."""
    table: list[Piece] = []
    for piece in pieces:
        between = text[table[-1].end : piece.start] if table else ""
        is_apart = "\n\n" in between and any(map(str.isalnum, between))
        if table and (is_apart or tuple(piece.fields) != tuple(table[-1].fields)):
            yield table
            table = []
        table.append(piece)
    if table:
        yield table


def titles_of(
    text: str, tables: Iterable[Sequence[Piece]]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """The columns and the title of each table of a text."""
    end = 0
    for pieces in tables:
        yield tuple(pieces[0].fields), _title(text, end, pieces[0])
        end = pieces[-1].end


def same_columns_note(titles: Iterable[str]) -> str:
    """The note on rows of several tables with the same columns; "" if they have one title."""
    different = list(dict.fromkeys(titles))
    if len(different) < 2:
        return ""
    named = [shortened(title, MAX_CAPTION) or "(no heading)" for title in different[:MAX_NAMES]]
    more = [f"and {len(different) - MAX_NAMES:,} more"] if len(different) > MAX_NAMES else []
    return f"rows of {len(different):,} tables with the same columns: {'; '.join([*named, *more])}"


def _title(text: str, start: int, first: Piece) -> str:
    """The heading and the caption above a table; "" for records with their names beside their values."""
    if all(name in text[first.start : first.end] for name in first.fields):
        return ""
    lines = text[max(start, first.start - MAX_ABOVE) : first.start].split("\n")
    heading = next((line[2:].strip() for line in reversed(lines) if line.startswith("# ")), "")
    caption = _caption(text, start, first.start, first)
    return ": ".join(filter(None, dict.fromkeys([heading, caption])))


def _caption(text: str, start: int, end: int, first: Piece) -> str:
    """The last line before a table that is not its header."""
    names = set(words_in(" ".join(first.fields)))
    for line in reversed(text[start:end].split("\n")):
        words = set(words_in(line))
        if words and not words <= names:
            if key := _KEY.search(line):
                return key[1]
            line = line.strip().lstrip("#").strip()
            return line if len(line) <= MAX_CAPTION else ""
    return ""


_KEY = lazy_pattern(r'"([^"]+)"\s*:\s*\[\s*\Z')  # the key of a list in a JSON report


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells as a Markdown table, which the unit `record` reads back."""
    lines = []
    for cells in chain((names, ["---"] * len(names)), rows):
        shown = (" ".join(cell.split()).replace("|", r"\|") for cell in cells)
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)
