"""Records: data in a text, one entry after the other, with named fields.

The forms:

- JSON objects, one after the other (JSON lines) or in an array;
- tables in Markdown;
- lines of pairs, `Date: Feb 02, 2023 || User: 76153`, with `||`, ` | ` or tabs between them;
- blocks of `Key: value` lines with blank lines between them;
- rows of cells with a header: CSV, TSV, semicolons, bars.

A text has one form: the first in this order whose records cover nearly all of it, else the one whose
records cover most. The text before, between and after the records does not belong to any
(`pearl.documents.units.left_out` finds it). Values are as in the source, numbers and
dates too; only escapes of a form are removed. A missing cell is "", and the last field of a row with more
cells than the header contains all the surplus cells.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from typing import NamedTuple, cast

from pearl.documents.lexicon import is_year
from pearl.documents.passages import paragraphs, without_list_mark
from pearl.documents.units import Piece, left_out, lines
from pearl.errors.patterns import lazy_pattern

MAX_LENGTH = 40  # maximum characters of a name

MAX_WORDS = 5  # maximum words of a field's name; a longer text is a sentence


def _key(text: str) -> str:
    """The name of the field before a colon; "" if the text is the beginning of a sentence."""
    name = text.strip()
    if len(name) > MAX_LENGTH or name.count(" ") >= MAX_WORDS:
        return ""
    return name if name[:1].isalpha() and not any(mark in name for mark in ":|\t\n") else ""


def fields_of(names: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """The fields of a record; a name that occurs twice is numbered."""
    fields = dict(zip(names, values, strict=True))
    return fields if len(fields) == len(names) else dict(zip(columns(names), values, strict=True))


def columns(header: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, made unique and not blank."""
    names: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for column, cell in enumerate(header, 1):
        name = unique = cell.strip() or f"column {column}"
        while unique in names:
            numbers[name] = numbers.get(name, 1) + 1
            unique = f"{name} ({numbers[name]})"
        names[unique] = None
    return tuple(names)


# JSON objects: one after the other, each on its own line or not, or in an array.

_MAX_VAIN = 4  # failed parses may scan at most this many times the text, so time stays linear

_CANDIDATE = lazy_pattern(r"^[ \t]*+(?:\[\s*+)?(?=\{)", re.M)  # {, or [{ at the beginning of a line
_AFTER = lazy_pattern(  # behind an object: `, {`, `]`, or the end of its line
    r"\s*+(?:,\s*+(?=\{)|\])|[ \t]*+,?[ \t]*+(?=\n|\Z)"
)
_SURROGATES = lazy_pattern(r"[\ud800-\udfff]")

_decode = json.JSONDecoder(
    object_pairs_hook=list, parse_float=str, parse_int=str, parse_constant=str
).raw_decode


def find_json(text: str) -> list[Piece]:
    """The objects that begin a line or follow another one, with nothing else after them."""
    pieces: list[Piece] = []
    at = n_vain = 0
    while candidate := _CANDIDATE.search(text, at):
        start = at = candidate.end()
        end = text.find("\n", start)
        line = text[start : None if end < 0 else end]
        is_whole = line.count("{") + line.count("[") <= line.count("}") + line.count("]")
        try:
            if is_whole:
                at += max(1, _read_objects(line, 0, start, pieces)[0])
            elif n_vain <= _MAX_VAIN * len(text):
                reached, n_more = _read_objects(text, start, 0, pieces)
                at = max(start + 1, reached)
                n_vain += n_more
            else:
                at += 1
        except RecursionError:  # nested too deeply
            break
    return pieces


_LIST = lazy_pattern(r'"(?:[^"\\\n]|\\.){1,100}"\s*:\s*\[\s*(?=\{)')  # A key with a list of objects


def json_lists(text: str) -> list[Piece]:
    """The objects of the lists in a JSON report, `{"title": ..., "rows": [{...}, ...]}`."""
    if not text.lstrip().startswith("{"):
        return []
    pieces: list[Piece] = []
    at = n_vain = 0
    while n_vain <= _MAX_VAIN * len(text) and (key := _LIST.search(text, at)):
        try:
            reached, n_more = _read_objects(text, key.end(), 0, pieces)
        except RecursionError:
            break
        at = max(key.end(), reached)
        n_vain += n_more
    return pieces


def _read_objects(source: str, start: int, offset: int, pieces: list[Piece]) -> tuple[int, int]:
    """Read one object after the other."""
    reached = start
    while source.startswith("{", start):
        try:
            members, reached = _decode(source, start)
        except json.JSONDecodeError as error:  # raising it counts the preceding lines
            return reached, error.pos - start + error.pos // 16
        after = _AFTER.match(source, reached)
        if not after:
            break
        fields = _json_fields(source, start, reached, members)
        pieces.append(Piece(offset + start, offset + reached, fields))
        start = after.end()
    return reached, 0


def _json_fields(
    source: str, start: int, end: int, members: list[tuple[str, object]]
) -> dict[str, str]:
    fields = dict(members)
    is_flat = len(fields) == len(members) and set(map(type, fields.values())) <= {str}
    if is_flat and source.find("\\u", start, end) < 0:
        return cast(dict[str, str], fields)
    names = [_whole(name) for name, _ in members]
    values = [
        source[a:b] if (shown := _json_text(value)) is None else shown
        for (_, value), (a, b) in zip(members, _value_spans(source, start), strict=True)
    ]
    return fields_of(names, values)


def _json_text(value: object) -> str | None:
    """A value as text; None for a nested one."""
    match value:
        case str():  # numbers also stay as written
            return _whole(value)
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return None


def _whole(text: str) -> str:
    """Replace lone surrogates, which JSON escapes may contain."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def _value_spans(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The spans of the values of the valid object that begins at `at`."""
    while text[at] != "}":
        at = _skip_blanks(text, at + 1)
        _, at = _decode(text, at)
        start = _skip_blanks(text, _skip_blanks(text, at) + 1)
        _, end = _decode(text, start)
        yield start, end
        at = _skip_blanks(text, end)


def _skip_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in tuple(" \t\n\r"):
        at += 1
    return at


# Tables in Markdown: a header, a line of dashes, and rows up to a line without bars.

_BAR = lazy_pattern(r"(?<!\\)\|")  # not one that is escaped
OF_RULES = frozenset("|:- \t")


def find_markdown(text: str) -> list[Piece]:
    """The rows of all tables, without blank rows."""
    pieces: list[Piece] = []
    names: tuple[str, ...] = ()  # columns of the current table
    previous = ""
    for at, line in lines(text):
        if "|" not in line:
            names = ()
        elif not OF_RULES.issuperset(line):
            if names and (row := line.strip()):
                start = at + line.index(row)
                cells = [cell.strip().replace(r"\|", "|") for cell in row_cells(row, len(names))]
                cells += [""] * (len(names) - len(cells))
                fields = dict(zip(names, cells, strict=True))
                pieces.append(Piece(start, start + len(row), fields))
        elif all(
            set(rule.strip().removeprefix(":").removesuffix(":")) == {"-"}
            for rule in row_cells(line)
        ):
            header = row_cells(previous) if "|" in previous else []
            if len(header) == len(row_cells(line)):
                names = columns([cell.replace(r"\|", "|") for cell in header])
                if pieces and pieces[-1].end > at - len(previous) - 1:
                    pieces.pop()  # the previous row was the header of this table
        previous = line
    return pieces


def row_cells(row: str, most: int = 0) -> list[str]:
    """The cells of a row; with `most`, at most that number, and the last one contains the rest of the row."""
    bare = row.strip().removeprefix("|")
    if bare.endswith("|") and not bare.endswith(r"\|"):
        bare = bare[:-1]
    return _BAR.split(bare, max(0, most - 1)) if most != 1 else [bare]


# Lines of pairs: `Date: Feb 02, 2023 || User: 76153 || Text: ...`.

_SEPARATORS = ("||", " | ", "\t")


def find_pairs(text: str) -> list[Piece]:
    """The lines of at least two pairs, with the separator that most of them have."""
    found = (_pairs_by(text, separator) for separator in _SEPARATORS if separator in text)
    return max(found, key=len, default=[])


def _pairs_by(text: str, separator: str) -> list[Piece]:
    pieces: list[Piece] = []
    going_on = 0  # end of the lines after the last record that may continue it
    for at, line in lines(text):
        if separator in line and (pairs := _pairs_in(line, separator)):
            # The lines between two records belong to the last field of the first.
            if pieces and going_on > (last := pieces[-1]).end:
                name, value = next(reversed(last.fields.items()))
                fields = {**last.fields, name: text[last.end - len(value) : going_on]}
                pieces[-1] = Piece(last.start, going_on, fields)
            names, values = pairs
            start = at + len(line) - len(line.lstrip())
            going_on = at + len(line.rstrip())
            pieces.append(Piece(start, going_on, fields_of(names, values)))
        elif not line or line.isspace():
            going_on = 0
        elif going_on:
            going_on = at + len(line.rstrip())
    return pieces


def _pairs_in(line: str, separator: str) -> tuple[list[str], list[str]] | None:
    """The keys and values of a line; None for fewer than two. A part without a key joins the value before it."""
    names: list[str] = []
    values: list[str] = []
    more: dict[int, list[str]] = {}
    for part in line.split(separator):
        before, colon, value = part.partition(":")
        if not names:
            before = without_list_mark(before)
        if colon and (not value or value[0].isspace()) and (name := _key(before)):
            names.append(name)
            values.append(value)
        elif names:
            more.setdefault(len(values) - 1, []).append(part)
        else:
            return None
    if len(names) < 2:
        return None
    for index, rest in more.items():
        values[index] = separator.join([values[index], *rest])
    return names, [value.strip() for value in values]


# Blocks of `Key: value` lines with blank lines between them.

_KEYED = lazy_pattern(r"^[ \t]*([^:\n|]{1,60}):(?=\s|\Z)", re.M)  # Date of birth: May 1


def find_blocks(text: str) -> list[Piece]:
    """Find paragraphs with two or more different keys; a line above the keys is allowed if several paragraphs have these keys."""
    found: list[tuple[Piece, int, bool]] = []
    for span in paragraphs(text):
        keyed = [
            (match.start(), name, match.end())
            for match in _KEYED.finditer(text, span.start, span.end)
            if (name := _key(match[1]))
        ]
        if len(keyed) < 2 or (n_above := text.count("\n", span.start, keyed[0][0])) > 1:
            continue
        ends = [start for start, _, _ in keyed[1:]] + [span.end]
        values = [text[a:b].strip() for (_, _, a), b in zip(keyed, ends, strict=True)]
        names = [name for _, name, _ in keyed]
        if len(set(names)) == len(names):
            piece = Piece(span.start, span.end, fields_of(names, values))
            found.append((piece, 1 + text.count("\n", span.start, span.end), n_above > 0))
    shared = Counter(name for piece, *_ in found for name in piece.fields)
    headed = Counter(name for piece, _, is_headed in found if is_headed for name in piece.fields)
    return [
        piece
        for piece, n_lines, is_headed in found
        if (
            all(headed[name] > 1 for name in piece.fields)
            if is_headed
            else 2 * len(piece.fields) >= n_lines
            or 2 * sum(shared[name] > 1 for name in piece.fields) >= len(piece.fields)
        )
    ]


# Rows of cells with a header: CSV and its kin.

_DELIMITERS = (",", "\t", ";", "|")
_UNQUOTED = frozenset("\t|")  # delimiters of files in which quote marks are often plain characters
_DIGITS = frozenset("0123456789.,")
_MAX_CELL = 2**31 - 1  # characters; Python's own limit is 131,072


_GROUPED = lazy_pattern(r"[-$€£¥(]*[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?[%)]*")  # ($2,345.50)
_SPACED = lazy_pattern(r"[,;] +[a-z]")  # a comma as in a sentence: `salt, iron`


class _Row(NamedTuple):
    start: int
    end: int
    cells: list[str]


def find_cells(text: str) -> list[Piece]:
    """The rows below the first line that is a header, with the delimiter that gives the most cells."""
    csv.field_size_limit(_MAX_CELL)  # process-wide
    tables = [_tables(text, delimiter) for delimiter in _DELIMITERS if delimiter in text]
    return max(tables, key=lambda pieces: sum(len(piece.fields) for piece in pieces), default=[])


def _tables(text: str, delimiter: str) -> list[Piece]:
    """Find the rows of all tables; each table but the first starts after a blank line and has equally wide rows."""
    source = StringIO(text, newline="\n")  # only "\n" ends a line
    pieces: list[Piece] = []
    n_vain = end = 0
    is_after_blank, is_first = False, True
    for at, line in lines(text):
        begin = at + len(line) + 1
        if (
            at >= end
            and (is_after_blank or not pieces)
            and (header := _header(line, delimiter, is_first=is_first))
        ):
            rows = _rows_from(source, begin, delimiter, len(header))
            is_even = all(len(row.cells) == len(header) for row in rows)
            if _is_table(line, header, rows) and (not pieces or (is_even and len(rows) > 1)):
                names = columns(header)
                pieces += (_piece(text, row, names, delimiter) for row in rows)
                end = rows[-1].end
            else:
                n_vain += source.tell() - at
                if n_vain > _MAX_VAIN * len(text):
                    break
        is_after_blank = not line.strip()
        is_first &= is_after_blank
    return pieces


def _header(line: str, delimiter: str, *, is_first: bool) -> list[str]:
    """The names in a line: at least two, short (except in the first line) and not numbers; [] if it is no header."""
    if delimiter not in line or line.startswith("|"):  # a row of a Markdown table
        return []
    try:
        cells = next(csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=True))
    except csv.Error:
        return []
    names = [name for cell in cells if (name := cell.strip())]
    if len(names) < 2 or (3 if delimiter == "\t" else 2) * len(names) < len(cells):
        return []
    others = [name for name in names if not is_year(name)]
    is_named = bool(others) or not cells[0].strip()
    are_names = all(map(_is_name, others))
    if is_first and not are_names and all(map(_starts_name, others)):
        as_written = next(csv.reader([line], delimiter=delimiter))
        are_names = not any(cell.startswith(" ") for cell in as_written)
    return cells if is_named and are_names else []


def _starts_name(cell: str) -> bool:
    """Whether a text begins with a letter, `_` or `#`: a digit begins no name."""
    return cell[:1] in ("_", "#") or (cell[:1].isalnum() and not cell[0].isdecimal())


def _is_name(cell: str) -> bool:
    return (
        _starts_name(cell)
        and len(cell) <= MAX_LENGTH
        and cell.count(" ") < MAX_WORDS
        and cell[-1] not in ".!?:;,"
        and "\n" not in cell
    )


def _is_table(line: str, header: list[str], rows: list[_Row]) -> bool:
    """Whether enough rows have the header's width: half of them; nearly all if names are long; all if the header may be a sentence."""
    if not rows or OF_RULES.issuperset("".join(rows[0].cells)):
        return False  # a header alone, or Markdown
    n_wide = sum(len(row.cells) == len(header) for row in rows)
    names = filter(None, map(str.strip, header))
    if not all(_is_name(name) or is_year(name) for name in names):
        return n_wide > max(1, _NEARLY_ALL * len(rows))
    if len(_SPACED.findall(line)) * 2 >= len(header) - 1:
        is_short = not any(" " in cell.strip() for cell in header)
        return is_short and n_wide == len(rows) and len(header) + n_wide > 3
    return 2 * n_wide >= max(2, len(rows))


def _rows_from(
    source: StringIO, begin: int, delimiter: str, width: int, is_quoted: bool = True
) -> list[_Row]:
    """The rows of the table that has its first row at `begin`."""
    rows: list[_Row] = []
    n_vain = 0
    is_after_blank = False
    source.seek(begin)
    reader = _reader(source, delimiter, is_quoted)
    while True:
        start = source.tell()
        try:
            cells = next(reader, None)
        except csv.Error:
            if is_quoted and delimiter in _UNQUOTED:
                return _rows_from(source, begin, delimiter, width, is_quoted=False)
            # An unclosed quote: skip its line, and read the lines that it swallowed again.
            n_vain += source.tell() - start
            if n_vain > _MAX_VAIN * (source.tell() - begin):
                break
            source.seek(start)
            cells = source.readline().rstrip("\n").split(delimiter)
            if len(cells) == width:  # as it stands, with the quote
                rows.append(_Row(start, source.tell(), cells))
            reader = _reader(source, delimiter, is_quoted)
            continue
        if cells is None:
            break
        if not any(map(str.strip, cells)):
            is_after_blank |= len(cells) <= 1
        elif is_after_blank and (len(cells) != width or _is_header_of_another(cells, rows)):
            break
        else:
            is_after_blank = False
            rows.append(_Row(start, source.tell(), cells))
    while rows and len(rows[-1].cells) == 1:
        rows.pop()
    return rows


def _is_header_of_another(cells: list[str], rows: list[_Row]) -> bool:
    """Whether a row after a blank line has names where the last row has numbers."""
    named = all(_is_name(cell.strip()) for cell in cells if cell.strip())
    figures = (cell.strip().strip("-+$€£¥()%") for row in rows[-1:] for cell in row.cells)
    return named and any(each[:1].isdigit() and set(each) <= _DIGITS for each in figures)


def _reader(source: StringIO, delimiter: str, is_quoted: bool) -> Iterator[list[str]]:
    return csv.reader(
        iter(source.readline, ""),
        delimiter=delimiter,
        strict=True,
        skipinitialspace=True,
        quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
    )


def _piece(text: str, row: _Row, names: tuple[str, ...], delimiter: str) -> Piece:
    start, end, cells = row
    if text.endswith("\n", start, end):
        end -= 1
    n = len(names)
    if len(cells) > n:
        source = text[start:end]
        last = (
            delimiter.join(cells[n - 1 :]) if '"' in source else source.split(delimiter, n - 1)[-1]
        )
        if _GROUPED.fullmatch(last.strip()):  # here, 2,345 is two cells rather than a number
            last = last.replace(",", ", ")
        cells = [*cells[: n - 1], last]
    elif len(cells) < n:
        cells = cells + [""] * (n - len(cells))
    return Piece(start, end, dict(zip(names, map(str.strip, cells), strict=True)))


_FORMS = (find_json, find_markdown, find_pairs, find_blocks, find_cells)
"""More specific forms first."""

_NEARLY_ALL = 0.9  # share of a text or of its rows

_MUCH_MORE = 1.25  # factor by which a later form must cover more text to replace an earlier one

_MOST_BESIDE_ONE = 0.5
"""A single record counts only if the rest of the text is at most this share: a line with two colons is not data."""


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    """Every record, with its fields."""
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
    """The rows below a header, of Markdown tables, CSV and similar forms; not the records of forms that have names beside their values."""
    form, found = _best(text)
    # A single row in much text is a table only in Markdown.
    return found if form is find_cells and len(found) > 1 else find_markdown(text)


def _best(text: str) -> tuple[Callable[[str], list[Piece]] | None, list[Piece]]:
    """The form of a text, and its records in that form."""
    form, found, covered = None, list[Piece](), 0
    for find in _FORMS:
        pieces = find(text)
        size = sum(piece.end - piece.start for piece in pieces)
        if size > _MUCH_MORE * covered:
            form, found, covered = find, pieces, size
        if covered > _NEARLY_ALL * len(text):
            break
    return form, found
