"""Excel workbooks: a heading for each sheet, its tables in Markdown, its other cells as lines.

Numbers are shown in full, with the percent or currency sign of their format. A blank row ends a table,
and so does a blank column between two headers. The text of merged cells is repeated: a heading above
each of its columns, a value in each of its rows. Comments stand below the tables of their sheet. Hidden
sheets, rows and columns, unless `hidden` is set, struck text, text boxes and charts are not read, and a
note counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from pearl.documents.lexicon import is_year
from pearl.documents.marks import END, LOWER, RAISE, written
from pearl.documents.office import has_part, office_parts, parse_xml
from pearl.documents.readers import OPTIONS, ReaderText, not_read
from pearl.documents.table import markdown
from pearl.errors import DataError
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

SUFFIXES = (".xlsx", ".xlsm")
BEGINS = (b"PK",)

IS_TABLE = True

EXTRA = "excel"

_UNCOMPUTED = "(formula without a value)"

_FORMULA = lazy_pattern(rb"<(?:[\w.-]++:)?f[\s/>]")  # the element of a formula, with any prefix

MAX_CELLS = 20_000_000  # maximum cells of a sheet, blank ones included

Grid = list[list[str]]


def recognises(data: bytes) -> bool:
    """Whether the bytes are an archive with the main part of a workbook in it."""
    return has_part(data, "xl/workbook.xml")


def read(data: bytes, path: str) -> ReaderText:
    """The text of a workbook."""
    from zipfile import ZipFile

    import openpyxl

    data = office_parts(data, path, ".xlsx")
    with ZipFile(BytesIO(data)) as archive:
        parts = (name for name in archive.namelist() if name.startswith("xl/worksheets/"))
        has_formulas = any(_FORMULA.search(archive.read(part)) for part in parts)
        drawings = (name for name in archive.namelist() if name.startswith("xl/drawings/drawing"))
        shapes = [s for name in drawings for s in parse_xml(archive.read(name)).iter("{*}sp")]
    # openpyxl does not read the texts of shapes.
    n_texts = sum(any(t.text and t.text.strip() for t in each.iter("{*}t")) for each in shapes)
    left_out = Counter({"text box": n_texts})
    values = openpyxl.load_workbook(BytesIO(data), data_only=True, rich_text=True)
    formulas = openpyxl.load_workbook(BytesIO(data)) if has_formulas else None
    text = "\n\n".join(_sheets(values, formulas, left_out)).strip()
    if not text and any(n and what.startswith("hidden") for what, n in left_out.items()):
        raise DataError("the workbook has only hidden cells", path=path, help="--hidden reads them")
    return ReaderText(text, notes=not_read(left_out))


def _sheets(values: Workbook, formulas: Workbook | None, left_out: Counter[str]) -> Iterator[str]:
    left_out["chart sheet"] = len(values.chartsheets)
    for sheet in values.worksheets:
        is_hidden = sheet.sheet_state != "visible"
        if is_hidden and not OPTIONS.get().hidden:
            left_out["hidden sheet"] += any(
                cell.value is not None for cell in sheet._cells.values()
            )
            continue
        grid = _grid(sheet, formulas[sheet.title] if formulas else None, left_out)
        filled = [list(rows) for is_filled, rows in groupby(grid, key=any) if is_filled]
        blocks = [block for rows in filled for block in _block(rows)]
        left_out["chart"] += len(sheet._charts)
        if blocks:
            if len(values.worksheets) > 1 or sheet.title.rstrip("0123456789") != "Sheet":
                yield f"# {sheet.title}{' (hidden)' * is_hidden}"
            yield from blocks
            rows, columns = _hidden(sheet, sheet.max_row, sheet.max_column)
            for (row, column), cell in sheet._cells.items():
                if row in rows or column in columns:
                    continue
                if cell.comment is not None and (text := " ".join(cell.comment.text.split())):
                    yield f"Comment on {cell.coordinate}: {text}"


def _grid(sheet: Worksheet, formulas: Worksheet | None, left_out: Counter[str]) -> Grid:
    """The cells of a sheet as texts; merged cells have their text in each row."""
    marks = _Marks(sheet, left_out)
    filled = {place: marks.shown(cell) for place, cell in sheet._cells.items()}
    for place, cell in formulas._cells.items() if formulas else ():
        if cell.data_type == "f" and not (filled.get(place) or marks.is_struck(cell)):
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
        top, left = merged.min_row - 1, merged.min_col - 1
        bottom, right = merged.max_row, merged.max_col
        if bottom > n_rows or right > n_columns:
            continue
        # A value is repeated in each row, a heading in each column that has a subheading.
        text = grid[top][left]
        below = grid[bottom][left:right] if bottom < n_rows else []
        is_heading = bool(below) and all(below) and not _is_number(text)
        n = right - left if is_heading or is_year(text) else 1
        for row in grid[top:bottom]:
            row[left : left + n] = [text] * n
    rows, columns = _hidden(sheet, n_rows, n_columns)
    left_out["hidden row"] += sum(any(grid[i - 1]) for i in rows)
    left_out["hidden column"] += sum(any(row[i - 1] for row in grid) for i in columns)
    shown = [i for i in range(n_columns) if i + 1 not in columns]
    return [[row[i] for i in shown] for n, row in enumerate(grid, 1) if n not in rows]


class _Marks:
    """Raised, lowered and struck text of the cells of a sheet."""

    def __init__(self, sheet: Worksheet, left_out: Counter[str]) -> None:
        fonts = list(enumerate(sheet.parent._fonts))
        self._struck = {i for i, font in fonts if font.strike}
        self._moved = {i: _MOVED[font.vertAlign] for i, font in fonts if font.vertAlign in _MOVED}
        self._left_out = left_out

    def is_struck(self, cell: Any) -> bool:
        """Whether the whole cell is struck."""
        return cell._style.fontId in self._struck

    def shown(self, cell: Any) -> str:
        """A cell as text."""
        from openpyxl.cell.rich_text import CellRichText, TextBlock

        font = cell._style.fontId
        if font in self._struck:
            self._left_out["struck cell"] += cell.value is not None
            return ""
        if not isinstance(cell.value, CellRichText):
            shown = _format_cell(cell)
            return written(f"{self._moved[font]}{shown}{END}") if font in self._moved else shown
        said = ""
        for piece in cell.value:
            is_block = isinstance(piece, TextBlock)
            begin = _MOVED.get(piece.font.vertAlign or "") if is_block else None
            if is_block and piece.font.strike:
                self._left_out["struck text"] += bool(piece.text.strip())
            else:
                said += f"{begin}{piece.text}{END}" if begin else str(piece)
        return written(said).strip()


_MOVED = {"superscript": RAISE, "subscript": LOWER}


def _hidden(sheet: Worksheet, n_rows: int, n_columns: int) -> tuple[set[int], set[int]]:
    """Return the numbers of hidden or filtered rows and of hidden columns; none if hidden cells are read."""
    if OPTIONS.get().hidden:
        return set(), set()
    is_default = bool(sheet.sheet_format.zeroHeight)
    sizes = sheet.row_dimensions
    rows = {
        i for i in range(1, n_rows + 1)
        if (sizes[i].hidden if i in sizes else is_default)
    }  # fmt: skip
    columns = {
        i
        for each in sheet.column_dimensions.values()
        if each.hidden
        for i in range(each.min or 0, min(each.max or 0, n_columns) + 1)
    }
    return rows, columns


def _is_number(cell: str) -> bool:
    """Whether a cell is a number with a sign of a currency or percent: -$1,200.50, 12%."""
    digits = cell.lstrip("-$€£¥").removesuffix("%").replace(",", "").replace(".", "")
    return digits.isascii() and digits.isdigit()


def _block(rows: Grid) -> Iterator[str]:
    """Rows of one cell are lines of text; the first row with more cells is the header of a table."""
    n_lines = next((i for i, row in enumerate(rows) if sum(map(bool, row)) > 1), len(rows))
    for row in rows[:n_lines]:
        yield " ".join(next(filter(None, row)).split())
    table = rows[n_lines:]
    for begin, end in _stretches(table):
        yield _table([row[begin:end] for row in table])


def _stretches(table: Grid) -> list[tuple[int, int]]:
    """Return the column ranges of tables side by side; ranges are one table unless each has two headings or more."""
    if not table:
        return []
    used = [any(row[i] for row in table) for i in range(len(table[0]))]
    found = []
    for is_used, columns in groupby(range(len(used)), key=used.__getitem__):
        if is_used:
            each = list(columns)
            found.append((each[0], each[-1] + 1))
    if all(sum(map(bool, table[0][begin:end])) > 1 for begin, end in found):
        return found
    return [(found[0][0], found[-1][1])]


def _table(table: Grid) -> str:
    table = [row for row in table if any(row)]
    header, rows = table[0], table[1:]
    if any(_is_number(cell) and not is_year(cell) for cell in header):
        header, rows = [""] * len(header), table  # a table without a header
    elif rows:
        above = [cell for cell in header if cell]
        is_merged = len(set(above)) < len(above)  # over columns with own headings below it
        if is_merged and all(is_year(cell) or not _is_number(cell) for cell in rows[0]):
            header = [" ".join(dict.fromkeys(filter(None, pair))) for pair in zip(header, rows[0], strict=True)]  # fmt: skip
            rows = rows[1:]
    return markdown(header, rows)


def _format_cell(cell: Any) -> str:
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
    """A number with all its digits, and the leading zeros, signs and units that its format adds."""
    number = Decimal(repr(value))
    if not number.is_finite():
        return ""
    shape = _Shape.of(form, is_negative=number < 0)
    if "%" in form:
        number = number.scaleb(2)
    elif shape.before or shape.after:
        # A format with "M" shows 5,000,000 as 5: its words belong to the scaled number.
        number = number.scaleb(-3 * shape.n_thousands)
    digits = format(abs(number), "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    if shape.places and digits.isdecimal():
        # From the last place: 123456789 in 000-00-0000 is 123-45-6789.
        left = list(digits.rjust(sum(map("0#?".count, shape.places)), "0"))
        shown = [left.pop() if place in "0#?" else place for place in reversed(shape.places)]
        digits = "".join([*left, *reversed(shown)])
    sign = "-" if number < 0 and "-" not in shape.before else ""
    return f"{sign}{shape.before}{digits}{shape.after}{'%' * ('%' in form)}"


class _Shape(NamedTuple):
    """What a number format puts around the digits and between them."""

    before: str = ""
    after: str = ""
    places: str = ""
    """For a format that adds zeros or signs to whole numbers: its digits (as 0) with the signs between, `000-00-0000`; else ""."""
    n_thousands: int = 0

    @classmethod
    def of(cls, form: str, *, is_negative: bool) -> _Shape:
        """The shape of a format for numbers of one sign; conditions in formats are ignored."""
        sections: list[list[str]] = [[]]
        for token in _TOKEN.findall(form):
            if token == ";":
                sections.append([])
            elif token.startswith(("[<", "[>", "[=")):
                return cls()
            else:
                sections[-1].append(token)
        tokens = sections[1] if is_negative and len(sections) > 1 and sections[1] else sections[0]
        at = [i for i, token in enumerate(tokens) if token in _PLACES]
        if not at:
            return cls()
        inner = tokens[at[0] : at[-1] + 1]
        n_thousands = len(list(takewhile(",".__eq__, reversed(inner))))
        whole = "".join(map(_literal, inner))
        has_zeros = inner[0] == "0" and inner.count("0") > 1
        is_plain = not {".", ",", "/", "E+", "E-", "General"} & set(inner)
        before, after = (
            "".join(map(_literal, part)) for part in (tokens[: at[0]], tokens[at[-1] + 1 :])
        )
        if is_plain and has_zeros:
            return cls(before.strip(), after.strip(), whole)
        return cls(
            before.lstrip().translate(_NO_SIGNS),
            after.rstrip().translate(_NO_SIGNS),
            "",
            n_thousands,
        )


_TOKEN = lazy_pattern(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]|General|E[+-]|.')  # [$€-407], "km", \-, 0
_PLACES = frozenset(("0", "#", "?", ",", ".", "/", "E+", "E-", "General"))
_NO_SIGNS = str.maketrans("", "", "-+()%")  # signs of the number are shown by the number itself


def _literal(token: str) -> str:
    """The text that a token of a format shows."""
    match token[0]:
        case '"':
            return token[1:-1]
        case "\\":
            return token[1:]
        case "[":
            return token[2:].rstrip("]").partition("-")[0] if token.startswith("[$") else ""
        case "_":
            return " "
        case "*":
            return ""
    return token
