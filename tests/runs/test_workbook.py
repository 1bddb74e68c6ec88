"""Workbooks of extractions and of answers: what a person sees, what is never evaluated, and long tables."""

from __future__ import annotations

import tracemalloc
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from pearl.runs import workbook
from pearl.runs.export import write_excel, write_table
from pearl.runs.extraction import write_tables
from pearl.runs.readme import readme
from pearl.runs.store.runs import info_of
from pearl.runs.workbook import DAY_0, Marked, Table, day
from tests.runs.test_extraction import AGES, FIELDS, PLAN, ROWS, result


def book_of(path: Path, rows: list[dict[str, Any]], page: str = "") -> Any:
    """The workbook of an extraction, read back."""
    with path.open("w", encoding="utf-8") as file:

        class Opened:
            def __enter__(self) -> Any:
                return file

            def __exit__(self, *_: object) -> None: ...

        facts = [("question", "=Who?"), ("plan", PLAN)]
        write_tables(
            FIELDS, lambda: rows, str(path), "xlsx", lambda _: Opened(), facts=facts, page=page
        )
    return openpyxl.load_workbook(path)


def test_a_workbook_is_laid_out_for_a_person(tmp_path: Path) -> None:
    book = book_of(tmp_path / "n.xlsx", ROWS, page="n ä.html")
    assert book.sheetnames == ["documents", "drugs", "tags", "Sources", "README"]
    sheet = book["documents"]
    cells = {head.value: cell for head, cell in zip(sheet[1], sheet[2], strict=True)}
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("B2", f"A1:{sheet.dimensions[3:]}")
    assert sheet["A1"].font.bold
    assert 9 <= sheet.column_dimensions["B"].width < sheet.column_dimensions["C"].width <= 52
    assert all(cell.alignment.wrap_text for cell in (cells["patient"], cells["why"]))
    assert (cells["seen"].value, cells["seen"].number_format) == (
        datetime(2024, 5, 31), "yyyy-mm-dd",
    )  # fmt: skip
    # undecided: in amber, the proposals and the reason in a comment
    age = cells["age"]
    assert (age.value, age.fill.fgColor.rgb[-6:]) == ("undecided", workbook.AMBER)
    assert age.comment.text == 'proposed: 54: "54 years" (a.pdf:2:30-38); 45: \ntwo ages'
    assert {c.fill.fgColor.rgb[-6:] for c in sheet[2] if c.comment is None} == {"000000"}
    # a source leads to its field on the page
    links = {name: cell.hyperlink for name, cell in cells.items() if cell.hyperlink}
    assert links.keys() == {f"{n}_source" for n in ("patient", "age", "fever", "seen", "status")}
    assert (links["age_source"].target, links["age_source"].location) == ("n%20%C3%A4.html", "r1f2")
    assert book["drugs"]["D2"].hyperlink.location == "r1f8"
    sources = list(book["Sources"].values)
    assert sources[0][:5] == ("document", "field", "value", "basis", "quote")
    assert sources[3] == ("a.pdf", "age", "54", "candidate", "54 years", "a.pdf", 2, 30, 38)
    readme = dict(book["README"].values)
    assert readme["question"] == "=Who?"
    assert readme["sheet drugs"] == "2 rows"
    plan = next(row[0].row for row in book["README"] if row[0].value == "plan")
    assert book["README"].row_dimensions[plan].height > 28


def test_without_a_page_sources_lead_to_files_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "a b.pdf").write_text("x", "utf-8")
    names = [str(tmp_path / "a b.pdf"), "http://evil/x", "n" * 300, "\\\\host\\share\\x"]
    rows = []
    for name in names:
        seen = result("2024-05-31", page=3)
        seen["evidence"][0]["source"] = name
        rows.append({**ROWS[0], "document": name, "record": {"seen": seen}})
    sheet = book_of(tmp_path / "n.xlsx", rows)["documents"]
    at = [cell.value for cell in sheet[1]].index("seen_source")
    links = [row[at].hyperlink for row in sheet.iter_rows(min_row=2)]
    assert (links[0].target, links[0].location) == ("a%20b.pdf", "page=3")
    assert links[1:] == [None] * 3


ODD = ["=1+1", "+1", "-1", "@SUM(A1)", "=HYPERLINK(\"http://x\")", "#N/A", "\t=1", "a\x00b\ud800\uffff", "تقرير.pdf", "n" * 40_000]  # fmt: skip


def test_no_text_is_a_formula_in_any_cell(tmp_path: Path) -> None:
    path = tmp_path / "n.xlsx"
    table: Table = ("=x/[y]" * 60, {text[:40]: str for text in ODD}, [{t[:40]: t for t in ODD}])
    noted: Table = ("=X/[Y]" * 60, {"=a": str}, [{"=a": Marked("=1", "=note\x00", "x.html#=1")}])
    with path.open("w", encoding="utf-8") as file:
        write_excel([table, noted, noted], file, [("=question", "=1")])
    book = openpyxl.load_workbook(path)
    assert len({name.casefold() for name in book.sheetnames}) == 4
    assert all(len(name) <= 31 for name in book.sheetnames)
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if cell.value]
    assert {cell.data_type for cell in cells} == {"s"}
    values = [cell.value for cell in book.worksheets[0][2]]
    assert values[:7] == ODD[:7]
    assert (values[7], values[8], len(values[9])) == (
        "a\ufffdb\ufffd\ufffd",
        ODD[8],
        workbook.MAX_CELL,
    )


@pytest.mark.parametrize("n", [0, 1, 9, 10, 25])
def test_a_long_table_goes_on_in_further_sheets_and_is_told(
    tmp_path: Path, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbook, "MAX_ROWS", 10)
    path = tmp_path / "n.xlsx"
    with path.open("w", encoding="utf-8") as file:
        assert write_excel([("t", {"n": int}, ({"n": i} for i in range(n)))], file) == n
    book = openpyxl.load_workbook(path)
    *sheets, readme = book.worksheets
    assert [sheet.title for sheet in sheets] == ["t", "t 2", "t 3"][: max(1, -(-n // 9))]
    found = [row[0] for sheet in sheets for row in sheet.iter_rows(min_row=2, values_only=True)]
    assert found == [*range(n)]
    assert all(sheet["A1"].value == "n" for sheet in sheets)
    assert any(row[0] == "split" for row in readme.values) == (n >= 9)


@pytest.mark.slow
def test_a_large_table_is_written_in_little_memory(tmp_path: Path) -> None:
    def peak(n: int) -> int:
        cells = {"a": "text of some length", "b": Marked("undecided", "why"), "c": Marked("x", link="n.html#r1")}  # fmt: skip
        table: Table = ("t", dict.fromkeys(cells, str), (cells for _ in range(n)))
        with (tmp_path / "n.xlsx").open("w", encoding="utf-8") as file:
            tracemalloc.start()
            write_excel([table], file)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return most

    workbook_limits = workbook.MAX_NOTES, workbook.MAX_LINKS
    try:
        workbook.MAX_NOTES = workbook.MAX_LINKS = 100
        small = peak(200)
        assert peak(4_000) < 1.5 * small
    finally:
        workbook.MAX_NOTES, workbook.MAX_LINKS = workbook_limits


@pytest.mark.parametrize(
    ("text", "shown"),
    [("2024-05-31", date(2024, 5, 31)), ("1900-03-01", DAY_0), ("1899-12-31", "1899-12-31"), ("soon", "soon"), (None, None)],
)  # fmt: skip
def test_a_date_is_a_date_where_spreadsheets_have_it(text: Any, shown: Any) -> None:
    assert day(text) == shown


def test_answers_have_their_quotes_on_a_sheet(tmp_path: Path) -> None:
    passage = {**AGES["candidates"][0]["evidence"][0], "steps": ["a", "b"]}
    of_input = {
        "evidence": [{"text": {}, "steps": 3}],
        "usage": {"input_tokens": "x"},
        "record": {"a": 1},
    }
    rows = [
        {"id": "x/a.txt", "answer": "54", "evidence": [passage], "usage": {"input_tokens": 5}},
        {"id": "y/a.txt", "answer": "-"},
        {"id": "z", "status": "failed", "question": "not asked", **of_input},
    ]  # fmt: skip
    with (tmp_path / "n.xlsx").open("w", encoding="utf-8") as file:
        facts = readme(
            info_of(tmp_path, (b"r", *(None,) * 6, 0, 0, *(None,) * 4, 0, 0)), lambda: rows
        )
        assert write_table(lambda: rows, file, "xlsx", facts=facts) == 3
    book = openpyxl.load_workbook(tmp_path / "n.xlsx")
    assert [row[0] for row in book["results"].values] == ["id", "x/a.txt", "y/a.txt", "z"]
    assert dict(book["README"].values)["cost"].startswith("price unknown; 5 + 0 tokens")
    assert len([*book["Sources"].values]) == 2
    assert [*book["Sources"].values][1][:5] == ("x/a.txt", "a, b", None, None, "54 years")
