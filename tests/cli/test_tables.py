"""Questions over tables at the command line: workbooks, and numbers that show where they come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openpyxl import Workbook

from tests.cli.terminal import Terminal

CHANGE = """1. rows = SPLIT(CTX, "record") : One row each
2. sales = WHERE(rows, "item", "is", "net sales") : Those of sales
3. new = FIELD(sales, "2008") : In 2008
4. old = FIELD(sales, "2007") : In 2007
5. ans = CALCULATE("percentage change", new, old) : By how much
"""
AVERAGE = '1. ans = EVALUATE(CTX, "table_average(net sales, none)") : The average\n'


@pytest.fixture
def book(pearl: Terminal) -> str:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (
        ["in millions"],
        ["item", "2008", "2007"],
        ["net sales", 5735, 5180],
        ["costs", -5, 3],
    ):
        sheet.append(row)
    sheet["B3"].number_format = sheet["C3"].number_format = '"$"#,##0'
    book.save("book.xlsx")
    Path("change.plan").write_text(CHANGE, encoding="utf-8")
    Path("average.plan").write_text(AVERAGE, encoding="utf-8")
    return "book.xlsx"


def test_a_calculation_over_a_workbook_cites_its_row(pearl: Terminal, book: str) -> None:
    args = (
        "execute",
        "change.plan",
        book,
        "--library",
        "finance",
        "--model",
        "extractive",
        "--json",
    )
    answer = json.loads(pearl(*args))
    assert answer["answer"] == "10.714%"
    (row,) = answer["evidence"]
    assert row["text"] == "| net sales | $5735 | $5180 |"
    assert row["fields"] == {"item": "net sales", "2008": "$5735", "2007": "$5180"}
    assert "percentage change: (5735 - 5180) / 5180 = 0.107142857143" in answer["notes"]


def test_a_program_over_a_workbook_knows_what_its_table_is_in(pearl: Terminal, book: str) -> None:
    args = (
        "execute",
        "average.plan",
        book,
        "--library",
        "finance",
        "--model",
        "extractive",
        "--json",
    )
    answer = json.loads(pearl(*args))
    assert answer["answer"] == "$5457.5 million"
    assert [row["text"] for row in answer["evidence"]] == ["| net sales | $5735 | $5180 |"]


def test_a_division_by_zero_is_an_error_that_says_so(pearl: Terminal, book: str) -> None:
    Path("zero.plan").write_text(
        '1. ans = EVALUATE(CTX, "divide(5735, 0)") : x\n', encoding="utf-8"
    )
    args = ("execute", "zero.plan", book, "--library", "finance", "--model", "extractive")
    pearl(*args, code=6)
    assert "step 'ans' (EVALUATE): step #0 divides by 0: divide(5735, 0)" in pearl.talk
