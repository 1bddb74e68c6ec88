"""Tables → an Excel workbook ready to be passed on: streamed, with column widths, filters, links, and comments on undecided cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from pearl.errors.escaping import counted
from pearl.plugins.extras import require_extra

Table = tuple[str, Mapping[str, type], Iterable[Mapping[str, Any]]]
"""The name of a table, its columns with their types, and its rows."""

MAX_ROWS = 1_048_576
"""Maximum rows of a sheet, header included; a longer table continues on further sheets."""
MAX_CELL, MAX_NAME = 32_767, 31  # Maximum characters of a cell and of a sheet name
MAX_NOTES, MAX_LINKS = 5_000, 20_000
"""Maximum comments and links per sheet, which are kept in memory until it is complete; Excel supports 65,530 links."""
MAX_NOTE = 1_000  # Maximum characters of a comment
SAMPLE = 200  # Rows from which column widths are determined
NARROW, WIDE = 9, 52  # Minimum and maximum column width in characters; longer texts are wrapped
LINE, MAX_HEIGHT, MAX_LINED = 14, 400, 2_000
"""Height of a line and maximum height of a row in points, and maximum characters of a text that determine the height of its row."""
AMBER, HEAD = "FFE08A", "E8EDF3"
MAX_DIGITS = 15  # Number of digits that all spreadsheets preserve
DAY_0 = date(1900, 3, 1)  # The first day that all spreadsheets number alike; earlier ones are text


_MENDED = dict.fromkeys(
    [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF], "\ufffd"
)
"""Replaces characters that XML does not allow."""


class Marked(NamedTuple):
    """The value of a cell, with the comment of an amber cell or the target of a link."""

    value: Any
    note: str = ""
    link: str = ""


class Workbook:
    """Writes tables as sheets, each row once; `sheets` maps sheet names to numbers of rows."""

    def __init__(self) -> None:
        require_extra("excel", "writing Excel", "openpyxl")
        import openpyxl
        from openpyxl.styles import Alignment, Font, NamedStyle, PatternFill

        self._book = openpyxl.Workbook(write_only=True)
        self.sheets: dict[str, int] = {}
        top = Alignment(vertical="top")
        wrapped = Alignment(vertical="top", wrap_text=True)
        for name, parts in {
            "text": {"alignment": wrapped},
            "number": {"alignment": top},
            "whole": {"alignment": top, "number_format": "0"},
            "date": {"alignment": top, "number_format": "yyyy-mm-dd"},
            "head": {"alignment": wrapped, "font": Font("Calibri", 11, bold=True), "fill": PatternFill("solid", HEAD)},
            "open": {"alignment": wrapped, "fill": PatternFill("solid", AMBER)},
            "link": {"alignment": Alignment(vertical="top", wrap_text=True, indent=1), "font": Font("Calibri", 11, color="0563C1", underline="single")},
        }.items():  # fmt: skip
            self._book.add_named_style(
                NamedStyle(f"PEARL {name}", **{"font": Font("Calibri", 11), **parts})
            )

    def add(self, table: Table) -> int:
        """Write a table, on several sheets if it is long; return its number of rows."""
        name, columns, rows = table
        coming, n_rows = iter(rows), 0
        for sample in iter(lambda: list(islice(coming, min(SAMPLE, MAX_ROWS - 1))), []):
            more = islice(coming, MAX_ROWS - 1 - len(sample))
            n_rows += self._add_sheet(name, columns, sample, more)
        if not n_rows:
            self._add_sheet(name, columns, [], iter(()))
        return n_rows

    def add_readme(
        self, facts: Iterable[tuple[str, Any]], columns: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Write a sheet that describes the workbook, one line per fact, its sheets and its columns."""
        names = ("about", "this workbook")
        sheets = [(f"sheet {name}", counted(n, "row")) for name, n in self.sheets.items()]
        if any(n == MAX_ROWS - 1 for n in self.sheets.values()):
            told = f"A sheet has at most {MAX_ROWS - 1:,} rows: longer tables continue in sheets with a number"
            sheets.append(("split", told))
        rows = [dict(zip(names, fact, strict=True)) for fact in (*facts, *sheets, *columns)]
        self._add_sheet("README", names, rows, iter(()), widths=(24, 100))

    def save(self, file: IO[str]) -> None:
        """Complete the workbook and write it to a file."""
        self._book.save(file.buffer)  # type: ignore[attr-defined]

    def _add_sheet(
        self,
        name: str,
        columns: Collection[str],
        sample: Sequence[Mapping[str, Any]],
        more: Iterator[Mapping[str, Any]],
        widths: Sequence[int] = (),
    ) -> int:
        from openpyxl.utils import get_column_letter

        # A sheet name has no such characters, and differs from all others, ignoring case.
        plain = name.translate(_MENDED | dict.fromkeys(map(ord, "[]:*?/\\'"), "_"))
        plain = plain[:MAX_NAME].strip() or "table"
        taken, name, n = {*map(str.casefold, self.sheets), "history"}, plain, 1
        while name.casefold() in taken:
            n += 1
            name = f"{plain[: MAX_NAME - len(str(n)) - 1]} {n}"
        sheet = self._book.create_sheet(name)
        widths = widths or [_width(column, sample) for column in columns]
        letters = [get_column_letter(i) for i in range(1, len(columns) + 1)]
        for letter, width in zip(letters, widths, strict=True):
            sheet.column_dimensions[letter].width = width
        cells = _Cells(sheet)
        sheet.freeze_panes = "B2"
        sheet.append([cells.make(column, "head") for column in columns])
        n_rows = 0
        for row in chain(sample, more):
            n_rows += 1
            values = [row[column] for column in columns]
            if (n_lines := max(map(_n_lines, values, widths))) > 1:
                # Not every program fits row heights to wrapped texts.
                sheet.row_dimensions[n_rows + 1].height = min(LINE * n_lines, MAX_HEIGHT)
            sheet.append([*map(cells.make, values)])
            sheet.row_dimensions.pop(n_rows + 1, None)
        sheet.auto_filter.ref = f"A1:{letters[-1]}{n_rows + 1}"
        self.sheets[name] = n_rows
        return n_rows


def _width(column: str, sample: Iterable[Mapping[str, Any]]) -> int:
    """A column width for the longest line in a sample."""
    texts = [column, *(str(plain(row[column])) for row in sample if row[column] is not None)]
    longest = max(len(line) for text in texts for line in (text[:200].splitlines() or [""]))
    return max(NARROW, min(longest + 3, WIDE))  # The filter arrow takes three


def _n_lines(value: Any, width: int) -> int:
    """The number of lines of a cell, as far as they affect the height of its row."""
    text = plain(value)
    if not isinstance(text, str) or (len(text) < width and "\n" not in text):
        return 1
    return sum(1 + len(line) // width for line in text[:MAX_LINED].splitlines())


def plain(value: Any) -> Any:
    """The value of a cell, without its comment or link."""
    return value.value if isinstance(value, Marked) else value


_STYLES = {int: "whole", float: "number", Decimal: "number", bool: "number", date: "date"}


class _Cells:
    """Makes the cells of a sheet; no text can become a formula."""

    def __init__(self, sheet: Any) -> None:
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.comments import Comment
        from openpyxl.worksheet.hyperlink import Hyperlink

        self._cell, self._comment, self._link = partial(WriteOnlyCell, sheet), Comment, Hyperlink
        self._styles: dict[tuple[str, int], Any] = {}
        self._n_notes = self._n_links = 0

    def make(self, value: Any, style: str = "") -> Any:
        """Make a cell with its style, comment and link."""
        note = link = ""
        if isinstance(value, Marked):
            value, note, link = value
        if value is None:
            return None
        kind = type(value)
        made = self._cell(self._text(value, MAX_CELL) if kind is str else value)
        if kind is str:
            made.data_type = "s"
        if note and self._n_notes < MAX_NOTES:
            self._n_notes += 1
            made.comment = self._comment(self._text(note, MAX_NOTE), "PEARL", height=150, width=380)
        if is_link := bool(link) and self._n_links < MAX_LINKS:
            self._n_links += 1
            address, _, place = link.partition("#")
            made.hyperlink = self._link(ref="", target=address, location=place or None)
        named = style or (note and "open") or (is_link and "link") or _STYLES.get(kind, "text")
        places = -int(value.as_tuple().exponent) if kind is Decimal else 0
        if (named, places) not in self._styles:
            made.style = f"PEARL {named}"
            if places:
                made.number_format = f"0.{'0' * places}"
            # Cached, because looking a style up by name takes half of the time.
            self._styles[named, places] = made._style
        made._style = self._styles[named, places]
        return made

    def _text(self, text: str, most: int) -> str:
        text = text.translate(_MENDED)
        return text if len(text) <= most else f"{text[: most - 1]}…"


def day(value: Any) -> Any:
    """The date in an ISO text, if spreadsheets can represent it."""
    with suppress(ValueError, TypeError):
        found = date.fromisoformat(value)
        return found if found >= DAY_0 else value
    return value


def amount(value: Any) -> Any:
    """The number in a text, if spreadsheets preserve its digits."""
    with suppress(InvalidOperation, TypeError):
        found = Decimal(value)
        if found.is_finite() and -MAX_DIGITS <= found.as_tuple().exponent <= 0:  # type: ignore[operator]
            return found if len(found.as_tuple().digits) <= MAX_DIGITS else value
    return value
