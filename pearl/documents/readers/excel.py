"""Excel workbooks → text: a heading for each sheet, its tables in Markdown, its other cells as lines.

Numbers are shown in full, with the percent or currency sign of their format. A blank row ends a table,
and so does a blank column between two headers. The text of merged cells is repeated: a heading above
each of its columns, a value in each of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from itertools import groupby
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from pearl.documents.document import check_archive
from pearl.documents.table import markdown
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

SUFFIXES = (".xlsx", ".xlsm")

IS_TABLE = True

EXTRA = "excel"

_UNCOMPUTED = "(formula without a value)"

_FORMULA = lazy_pattern(rb"<(?:[\w.-]++:)?f[\s/>]")  # the element of a formula, with any prefix
_CURRENCY = lazy_pattern(r"\[\$([$€£¥])[^\]]*\]|(?<!\[)([$€£¥])")
_UNNAMED = lazy_pattern(r"Sheet[0-9]*")
_YEARS = range(1900, 2101)

MAX_CELLS = 20_000_000  # maximum cells of a sheet, blank ones included

Grid = list[list[str]]


def recognises(data: bytes) -> bool:
    """Whether the bytes are an archive with the main part of a workbook in it."""
    return data.startswith(b"PK") and b"xl/workbook.xml" in data


def read(data: bytes, path: str) -> str:
    """The text of a workbook."""
    import openpyxl

    with ZipFile(BytesIO(data)) as archive:
        check_archive(archive, path)
        parts = (name for name in archive.namelist() if name.startswith("xl/worksheets/"))
        has_formulas = any(_FORMULA.search(archive.read(part)) for part in parts)
    values = openpyxl.load_workbook(BytesIO(data), data_only=True)
    formulas = openpyxl.load_workbook(BytesIO(data)) if has_formulas else None
    return "\n\n".join(_sheets(values, formulas)).strip()


def _sheets(values: Workbook, formulas: Workbook | None) -> Iterator[str]:
    for sheet in values.worksheets:
        grid = _grid(sheet, formulas[sheet.title] if formulas else None)
        filled = [list(rows) for is_filled, rows in groupby(grid, key=any) if is_filled]
        blocks = [block for rows in filled for block in _block(rows)]
        if blocks:
            hidden = "" if sheet.sheet_state == "visible" else " (hidden)"
            if len(values.worksheets) > 1 or not _UNNAMED.fullmatch(sheet.title):
                yield f"# {sheet.title}{hidden}"
            yield from blocks


def _grid(sheet: Worksheet, formulas: Worksheet | None) -> Grid:
    """The cells of a sheet as texts; merged cells have their text in each row."""
    filled = {place: _shown(cell) for place, cell in sheet._cells.items()}
    for place, cell in formulas._cells.items() if formulas else ():
        if cell.data_type == "f" and not filled.get(place):
            filled[place] = _UNCOMPUTED
    filled = {place: text for place, text in filled.items() if text}
    n_rows = max((row for row, _ in filled), default=0)
    n_columns = max((column for _, column in filled), default=0)
    if n_rows * n_columns > MAX_CELLS:
        raise ValueError(f"a sheet of {n_rows:,} rows and {n_columns:,} columns")
    grid = [[""] * n_columns for _ in range(n_rows)]
    for (row, column), text in filled.items():
        grid[row - 1][column - 1] = text
    for merged in sheet.merged_cells.ranges:
        if merged.max_row <= n_rows and merged.max_col <= n_columns:
            _fill(grid, merged.min_row - 1, merged.max_row, merged.min_col - 1, merged.max_col)
    return grid


def _fill(grid: Grid, top: int, bottom: int, left: int, right: int) -> None:
    """Copy the text of merged cells to each row, and a heading to each column that has a subheading."""
    text = grid[top][left]
    below = grid[bottom][left:right] if bottom < len(grid) else []
    is_heading = right - left > 1 and bool(below) and all(below) and not _NUMERIC.fullmatch(text)
    n = right - left if is_heading or _is_year(text) else 1
    for row in grid[top:bottom]:
        row[left : left + n] = [text] * n


_NUMERIC = lazy_pattern(r"[-$€£¥]*[0-9][0-9.,]*%?")


def _block(rows: Grid) -> Iterator[str]:
    """Rows of one cell are lines of text; the first row with more cells is the header of a table."""
    n_lines = next((i for i, row in enumerate(rows) if _count(row) > 1), len(rows))
    for row in rows[:n_lines]:
        yield " ".join(next(filter(None, row)).split())
    table = rows[n_lines:]
    for begin, end in _stretches(table):
        yield _table([row[begin:end] for row in table])


def _count(row: Sequence[str]) -> int:
    return sum(map(bool, row))


def _stretches(table: Grid) -> list[tuple[int, int]]:
    """The columns of each table side by side; they are one unless each has two headings or more."""
    if not table:
        return []
    used = [any(row[i] for row in table) for i in range(len(table[0]))]
    found = []
    for is_used, columns in groupby(range(len(used)), key=used.__getitem__):
        if is_used:
            each = list(columns)
            found.append((each[0], each[-1] + 1))
    if all(_count(table[0][begin:end]) > 1 for begin, end in found):
        return found
    return [(found[0][0], found[-1][1])]


def _table(table: Grid) -> str:
    table = [row for row in table if any(row)]
    header, rows = table[0], table[1:]
    if any(_NUMERIC.fullmatch(cell) and not _is_year(cell) for cell in header):
        header, rows = [""] * len(header), table  # a table without a header
    elif rows and _is_heading_above(header, rows[0]):
        header = [" ".join(dict.fromkeys(filter(None, pair))) for pair in zip(header, rows[0], strict=True)]  # fmt: skip
        rows = rows[1:]
    return markdown(header, rows)


def _is_heading_above(header: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a heading spans several columns that have their own headings below it."""
    above = [cell for cell in header if cell]
    below = [cell for cell in second if cell]
    is_merged = len(set(above)) < len(above)
    return is_merged and all(not _NUMERIC.fullmatch(cell) or _is_year(cell) for cell in below)


def _is_year(cell: str) -> bool:
    return cell.isdecimal() and int(cell) in _YEARS


def _shown(cell: Any) -> str:
    """A cell as text."""
    match cell.value:
        case None:
            return ""
        case bool() as value:
            return "true" if value else "false"
        case datetime() as value:
            return value.isoformat(" ", "minutes") if value.time() != time() else value.date().isoformat()  # fmt: skip
        case date() | time() | timedelta() as value:
            return str(value)
        case int() | float() as value:
            return _number(value, cell.number_format or "")
        case value:
            return str(value).strip()


def _number(value: float, form: str) -> str:
    """A number with all its digits, and the percent or currency sign of its format."""
    number = Decimal(repr(value))
    if not number.is_finite():
        return ""
    if "%" in form:
        return f"{_plain(number.scaleb(2))}%"
    currency = _CURRENCY.search(form.partition(";")[0])
    sign = "-" if number < 0 else ""
    name = (currency[1] or currency[2]) if currency else ""
    return f"{sign}{name}{_plain(abs(number))}"


def _plain(number: Decimal) -> str:
    digits = format(number, "f")
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits) or "0"
