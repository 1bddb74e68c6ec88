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

from pearl.documents.document import load, read_as
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


def test_hidden_sheets_are_marked() -> None:
    book = book_of(["a", "b"], [1, 2])
    book.create_sheet("Empty")
    hidden = book.create_sheet("Other")
    hidden.append(["c", "d"])
    hidden.append([3, 4])
    hidden.sheet_state = "hidden"
    assert text_of(book).splitlines()[6:8] == ["# Other (hidden)", ""]


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
