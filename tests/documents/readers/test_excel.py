"""Workbooks, made with openpyxl."""

from __future__ import annotations

import re
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from openpyxl import Workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart
from openpyxl.comments import Comment
from openpyxl.styles import Font

from pearl.documents.document import from_bytes, load, read_as
from pearl.documents.table import find_tables
from pearl.errors import DataError

MONEY = '"$"#,##0_);("$"#,##0)'


def save(book: Workbook) -> bytes:
    buffer = BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def book_of(*rows: list[Any], title: str = "Boats") -> Workbook:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = title
    for row in rows:
        sheet.append(row)
    return book


def text_of(book: Workbook) -> str:
    return read_as("excel", save(book), "a.xlsx")


def test_a_sheet_is_a_heading_with_a_table() -> None:
    book = book_of(["In millions"], ["item", 2008, "when"], ["sales", 9000, date(2008, 3, 1)],
                   ["loss", -1315.5, datetime(2008, 3, 1, 12, 30)], ["rate", 0.125, True], [None, None, "a|b\nc"])  # fmt: skip
    sheet = book.active
    sheet["B3"].number_format = sheet["B4"].number_format = MONEY
    sheet["B5"].number_format = "0.0%"
    assert text_of(book) == (
        "# Boats\n\nIn millions\n\n| item | 2008 | when |\n| --- | --- | --- |\n"
        "| sales | $9000 | 2008-03-01 |\n| loss | -$1315.5 | 2008-03-01 12:30 |\n"
        "| rate | 12.5% | true |\n|  |  | a\\|b c |"
    )


def test_two_tables_of_a_page_are_two() -> None:
    below = book_of(["a", "b"], [1, 2], [], ["Second"], ["c", "d"], [3, 4])
    assert text_of(below).count("| --- | --- |") == 2
    beside = book_of(["a", "b", None, "c", "d"], [1, 2, None, 3, 4])
    assert "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n| c | d |" in text_of(beside)
    spaced = book_of(["a", None, "b"], [1, None, 2])
    assert "| a |  | b |" in text_of(spaced)


def test_merged_cells_are_filled_in() -> None:
    book = book_of(["item", "2008", None], [None, "Q1", "Q2"], ["north", 1, 2], [None, 3, 4])
    sheet = book.active
    sheet.merge_cells("B1:C1")
    sheet.merge_cells("A3:A4")
    assert "| item | 2008 Q1 | 2008 Q2 |\n| --- | --- | --- |\n| north | 1 | 2 |\n| north | 3 | 4 |" in text_of(book)  # fmt: skip


def test_a_table_without_a_header_has_no_row_for_one() -> None:
    assert "|  |  |\n| --- | --- |\n| 1 | x |\n| 2 | y |" in text_of(book_of([1, "x"], [2, "y"]))


def test_a_formula_without_a_value_is_not_blank() -> None:
    book = book_of(["a", "b"], [1, "=A2+1"])
    assert "| 1 | (formula without a value) |" in text_of(book)
    prefixed = BytesIO()
    with ZipFile(BytesIO(save(book))) as plain, ZipFile(prefixed, "w") as archive:
        for name in plain.namelist():
            data = plain.read(name)
            if name.startswith("xl/worksheets/"):
                data = re.sub(rb"<(/?)(?=[a-zA-Z])", rb"<\1x:", data).replace(
                    b"xmlns=", b"xmlns:x="
                )
            archive.writestr(name, data)
    assert "| 1 | (formula without a value) |" in read_as("excel", prefixed.getvalue(), "a.xlsx")


def hiding(what: str) -> Workbook:
    """A workbook with two tables, of which something is hidden."""
    book = book_of(["town", "n", "m"], ["Bern", 10, 1], ["Basel", 20, 2], ["Chur", 30, 3])
    other = book.create_sheet("Archive")
    for row in (["town", "k"], ["Bonn", 1000]):
        other.append(row)
    book.create_sheet("Empty").sheet_state = "hidden"
    sheet = book.active
    match what:
        case "sheet" | "very":
            other.sheet_state = "hidden" if what == "sheet" else "veryHidden"
        case "row":
            sheet.row_dimensions[3].hidden = True
        case "column":
            sheet.column_dimensions.group("B", "C", hidden=True)
        case "rows":
            sheet.sheet_format.zeroHeight = True
            sheet.row_dimensions[1].height = sheet.row_dimensions[2].height = 15
        case "merged":
            sheet["A2"], sheet["A3"] = "Bern", None
            sheet.merge_cells("A2:A3")
            sheet.row_dimensions[2].hidden = True
    return book


@pytest.mark.parametrize(
    ("what", "hidden", "absent"),
    [
        ("nothing", "", ()),
        ("sheet", "1 hidden sheet", ("Archive", "Bonn")),
        ("very", "1 hidden sheet", ("Archive", "Bonn")),
        ("row", "1 hidden row", ("Basel",)),
        ("rows", "2 hidden rows", ("Basel", "Chur")),
        ("column", "2 hidden columns", ("| n", "| 20", "| 30")),
        ("merged", "1 hidden row", ("| 10 |",)),
    ],
)
def test_what_is_hidden_is_named_and_read_on_request(
    tmp_path: Path, what: str, hidden: str, absent: tuple[str, ...]
) -> None:
    path = tmp_path / "a.xlsx"
    hiding(what).save(path)
    document, whole = load(path), load(path, hidden=True)
    hint = " (--hidden reads what is hidden)"
    assert document.notes == ((f"not read: {hidden}{hint}",) if hidden else ())
    assert not whole.notes
    for text in absent:
        assert text in whole.text
        assert text not in document.text
    assert ("| Bern | 20 | 2 |" in document.text) == (what == "merged")


def test_a_workbook_of_hidden_sheets_is_refused() -> None:
    book = book_of(["a", "b"], [1, 2])
    book.create_sheet("Empty")
    book.active.row_dimensions[1].hidden = book.active.row_dimensions[2].hidden = True
    with pytest.raises(DataError, match=r"only hidden cells\n.*hidden=True"):
        text_of(book)


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (42, "0000000", "0000042"),
        (-42, "0000000", "-0000042"),
        (123456789, r"000\-00\-0000", "123-45-6789"),
        (12345678, "(000) 000-0000", "(001) 234-5678"),
        (1234.5, '#,##0.00 "EUR"', "1234.5 EUR"),
        (1234.5, "[$CHF-807] #,##0.00", "CHF 1234.5"),
        (-1234.5, "[$€-407]#,##0.00;[Red]-[$€-407]#,##0.00", "-€1234.5"),
        (1234.5, '_-* #,##0.00\\ "€"_-', "1234.5 €"),
        (3, 'General" pcs"', "3 pcs"),
        (5_250_000, '0.0,,"M"', "5.25M"),
        (5_250_000, "0.0,,", "5250000"),
        (0, '_-* "-"??_-', "0"),
        (12, '[>=10]0"x";0', "12"),
        (2.5, "00.00", "2.5"),
        (1234, "# ##0", "1234"),
        (0.125, "0.0%", "12.5%"),
    ],
)
def test_formats_keep_zeros_and_units(value: float, form: str, shown: str) -> None:
    book = book_of(["a", "b"], ["x", value])
    book.active["B2"].number_format = form
    assert f"| x | {shown} |" in text_of(book)


def test_marks_and_struck_text_of_cells() -> None:
    block = [
        TextBlock(InlineFont(vertAlign="superscript"), "2"),
        TextBlock(InlineFont(strike=True), " old"),
    ]
    book = book_of(["a", "b", "c", "d", "e"], ["x", CellRichText("310", *block), "1", "=1+1", 5])
    sheet = book.active
    sheet["C2"].font, sheet["D2"].font = Font(vertAlign="subscript"), Font(strike=True)
    sheet["E2"].font = Font(strike=True)
    document = from_bytes(save(book), "a.xlsx")
    assert "| x | 310² | ₁ |  |  |" in document.text
    assert document.notes == ("not read: 1 struck text, 1 struck cell",)


def test_text_boxes_are_named() -> None:
    book = book_of(["a", "b"], [1, 2])
    book.active.add_chart(BarChart())
    box = b"<xdr:sp><xdr:txBody><a:p><a:r><a:t>Draft</a:t></a:r></a:p></xdr:txBody></xdr:sp>"
    made = BytesIO()
    with ZipFile(BytesIO(save(book))) as plain, ZipFile(made, "w") as archive:
        for name in plain.namelist():
            data = plain.read(name)
            if name == "xl/drawings/drawing1.xml":
                at = data.rindex(b"</")
                names = b" xmlns:xdr='x' xmlns:a='a'"
                data = data[:at] + box.replace(b"sp>", b"sp" + names + b">", 1) + data[at:]
            archive.writestr(name, data)
    document = from_bytes(made.getvalue(), "a.xlsx")
    assert document.notes == ("not read: 1 text box, 1 chart",)


def test_comments_are_read_and_charts_named() -> None:
    book = book_of(["a", "b"], [1, 2])
    book.active["B2"].comment = Comment("an\nestimate", "Ada")
    book.active.add_chart(BarChart())
    book.active["A9"].comment = Comment("secret", "Ada")
    book.active.row_dimensions[9].hidden = True
    document = from_bytes(save(book), "a.xlsx")
    assert document.text.endswith("Comment on B2: an estimate")
    assert document.notes == ("not read: 1 chart",)


def test_a_sheet_with_a_default_name_has_no_heading() -> None:
    assert text_of(book_of(["a", "b"], [1, 2], title="Sheet1")).startswith("| a |")


def test_cells_are_found_in_the_text(tmp_path: Path) -> None:
    book = book_of(["$ in millions", "2008"], ["sales", 9000], ["rate", 0.27])
    book.active["B3"].number_format = "0%"
    path = tmp_path / "book.xlsx"
    book.save(path)
    document = load(path)
    (table,) = find_tables(document)
    cell = table.cell(1, "2008")
    assert cell.span is not None
    assert document.text[cell.span.start : cell.span.end] == "9000"
    assert cell.quantity is not None
    assert cell.quantity.amount == 9_000_000_000
    rate = table.cell(2, "2008").quantity
    assert rate is not None
    assert (rate.unit, rate.scale) == ("%", 0)


def test_far_apart_cells_are_refused() -> None:
    book = book_of(["a"])
    book.active["XFD1048576"] = "b"
    with pytest.raises(DataError, match="damaged or not"):
        text_of(book)


def test_damaged_files_are_refused() -> None:
    data = save(book_of(["a", "b"], [1, 2]))
    for broken in (data[: len(data) // 2], data[:200], data.replace(b"PK\x01\x02", b"PK\x01\x03")):
        with pytest.raises(DataError, match="save it again"):
            read_as("excel", broken, "a.xlsx")


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = BytesIO(save(book_of(["a", "b"], [1, 2])))
    with ZipFile(data, "a") as archive:
        archive.writestr("xl/media/x", b"\0" * 2_000_000, compress_type=8)
    monkeypatch.setenv("PEARL_MAX_DOCUMENT_MB", "1")
    with pytest.raises(DataError, match="unpacks to more than the limit of 1 MB"):
        read_as("excel", data.getvalue(), "a.xlsx")


def test_without_openpyxl_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "openpyxl.py").write_text("raise ModuleNotFoundError(name='openpyxl')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match="openpyxl, which is not installed") as caught:
        read_as("excel", b"PK", "a.xlsx")
    assert "[excel]" in str(caught.value.help)
