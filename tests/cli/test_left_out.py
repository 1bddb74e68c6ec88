"""Answers name what of a file was not read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from openpyxl import Workbook

from tests.cli.terminal import Terminal

PLAN = """\
Question: How many visitors in all?

1. rows = SPLIT(CTX, "record") : One row a town
2. visitors = FIELD(rows, "Visitors") : Their visitors
3. n = SUM(visitors) : The sum
"""
HIDDEN = "not read: 1 hidden row (--hidden reads what is hidden)"


@pytest.fixture
def book() -> Path:
    made = Workbook()
    for row in (["Town", "Visitors"], ["Bern", 10], ["Basel", 20], ["Chur", 30]):
        made.active.append(row)
    made.active.row_dimensions[3].hidden = True
    made.save("towns.xlsx")
    Path("n.plan").write_text(PLAN, "utf-8")
    return Path("towns.xlsx")


@pytest.mark.parametrize(
    ("options", "value", "notes"), [([], "40", [HIDDEN]), (["--hidden"], "60", [])]
)
def test_hidden_rows_count_only_on_request(
    pearl: Terminal, book: Path, options: list[str], value: str, notes: list[str]
) -> None:
    row = json.loads(pearl("execute", "n.plan", str(book), "--json", *options))
    assert (row["answer"], row.get("notes", [])) == (value, notes)


def test_the_answer_over_a_folder_names_it(pearl: Terminal) -> None:
    folder = Path("pages")
    folder.mkdir()
    for i in range(30):
        Path(folder, f"{i:02}.html").write_text(f"<html><p>The fee is <s>{i}</s> 150 EUR.", "utf-8")
    for _ in range(2):  # the second time from the index
        row = json.loads(pearl("ask", "What is the fee?", "pages", "--together", "--json"))
        assert row["notes"][0] == "00.html: not read: 1 struck text"
        assert "10 more notes about files: ask about one file to see its own" in row["notes"]


def sheets(second: str = "2024", columns: tuple[str, str] = ("Town", "Visitors")) -> str:
    made = Workbook()
    made.active.title = "2023"
    other = made.create_sheet(second)
    for sheet, header, rows in (
        (made.active, ("Town", "Visitors"), [("Bern", 10), ("Basel", 20)]),
        (other, columns, [("Bonn", 1000)]),
    ):
        for row in (header, *rows):
            sheet.append(row)
    made.save("two.xlsx")
    Path("n.plan").write_text(PLAN, "utf-8")
    return "two.xlsx"


SAME = "rows of 2 tables with the same columns: 2023; 2024"


def test_sheets_with_equal_columns_are_named(pearl: Terminal) -> None:
    command = ("execute", "n.plan")
    row = json.loads(pearl(*command, sheets(), "--json"))
    assert row["answer"] == "1030"
    assert SAME in row["notes"]
    row = json.loads(pearl(*command, sheets(columns=("Place", "Guests")), "--json", code=None))
    assert not any("same columns" in note for note in row["notes"])


def test_a_query_may_select_a_sheet(pearl: Terminal) -> None:
    query = {"where": {"column": "Table", "op": "is", "value": ["2024"]}, "aggregate": {"function": "sum", "column": "Visitors"}}  # fmt: skip
    Path("r.json").write_text(json.dumps([{"match": "2024", "reply": json.dumps(query)}]), "utf-8")
    Path("l.plan").write_text('Question: How many in 2024?\n\n1. n = LOOKUP(CTX, "How many in 2024?") : n\n', "utf-8")  # fmt: skip
    row = json.loads(pearl("execute", "l.plan", sheets(), "--json", "--model", "scripted:r.json"))
    assert "1000" in row["answer"]
    assert "1030" not in row["answer"]


def test_a_workbook_without_a_table_is_a_text(pearl: Terminal) -> None:
    made = Workbook()
    for line in ("Report of the year", "The revenue was 5 million EUR.", None, "Signed: A. Keller"):
        made.active.append([line])
    made.save("text.xlsx")
    assert "The revenue was 5 million EUR." in pearl(
        "ask", "How much was the revenue?", "text.xlsx"
    )
