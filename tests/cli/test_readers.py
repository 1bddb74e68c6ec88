"""What of files is read, how, and what is not: in what commands print and write."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from openpyxl import Workbook

from tests.cli.terminal import Terminal
from tests.documents.readers.test_image import LINES, make_scan
from tests.documents.readers.test_pdf import ENCRYPTED, make_pdf, make_report
from tests.root import ROOT
from tests.skips import needs_tesseract

WHY = "Why did Nils sell the boat?"
PAGES = [
    ["Nils left the harbour at dawn."],
    ["It was cold there.", "He sold the boat because", "the hull was rotten."],
]


def test_a_stored_run_is_viewed_as_it_read_its_documents(pearl: Terminal) -> None:
    report = make_report([["He sold the boat because", "the hull was rotten."]] * 2)
    Path("report.pdf").write_bytes(report)
    pearl("execute", "why.plan", "report.pdf", "--out", "rows.jsonl", "--pdf-tables", "off")
    (run,) = json.loads(pearl("runs", "list", "--json"))
    pearl("view", run["id"], "-o", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert "data:image/webp" in page
    assert "| He sold" not in page


def test_bad_files_of_a_folder_are_named_and_the_others_are_read(pearl: Terminal) -> None:
    Path("all").mkdir()
    files = {
        "encrypted": make_pdf(PAGES, ENCRYPTED),
        "cut": make_pdf(PAGES)[:100],
        "none": make_pdf([]),
    }
    for name, data in {**files, "a": make_pdf(PAGES), "b": make_pdf(PAGES[::-1])}.items():
        Path(f"all/{name}.pdf").write_bytes(data)
    Path("all/logo.png").write_bytes(b"\x89PNG")
    told = pearl("ask", WHY, "all", code=1)
    assert (told.count("He sold the boat"), told.count("(failed) ")) == (2, 3)
    assert "the PDF is encrypted" in told
    assert "3 of 5 failed" in pearl.talk
    assert "pictures beside documents left out (1)" in pearl.talk


HIDDEN = "not read: 1 hidden row (--hidden reads what is hidden)"


@pytest.mark.parametrize(
    ("options", "value", "notes"), [([], "40", [HIDDEN]), (["--hidden"], "60", [])]
)
def test_hidden_rows_count_only_on_request(
    pearl: Terminal, options: list[str], value: str, notes: list[str]
) -> None:
    made = Workbook()
    for row in (["Town", "Visitors"], ["Bern", 10], ["Basel", 20], ["Chur", 30]):
        made.active.append(row)
    made.active.row_dimensions[3].hidden = True
    made.save("towns.xlsx")
    plan = '1. rows = SPLIT(CTX, "record") : One row a town\n2. visitors = FIELD(rows, "Visitors") : Theirs\n3. n = SUM(visitors) : The sum\n'
    Path("n.plan").write_text(plan, "utf-8")
    row = json.loads(pearl("execute", "n.plan", "towns.xlsx", "--json", *options))
    assert (row["answer"], row.get("notes", [])) == (value, notes)


@needs_tesseract
def test_evidence_of_a_scan_says_how_it_was_read(pearl: Terminal) -> None:
    Path("scan.pdf").write_bytes(make_scan(["A title page."], LINES))
    asked = ("ask", "Why was the dose halved?", "scan.pdf")
    assert "scan.pdf, page 2, by OCR (confidence 0." in pearl(*asked)
    row = json.loads(pearl(*asked, "--json"))
    (passage,) = row["evidence"]
    assert passage["text"] == "On 12 March the dose was halved,\nbecause of bleeding."
    assert passage["page"] == 2
    assert 0.8 < passage["ocr"] <= 1
    schema = json.loads((ROOT / "docs" / "results.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate({"id": "a", **row})


def test_answers_name_the_pages_that_are_not_read(pearl: Terminal) -> None:
    Path("mixed.pdf").write_bytes(make_scan("He sold it because it leaked.", LINES))
    row = json.loads(pearl("ask", "Why did he sell it?", "mixed.pdf", "--ocr", "off", "--json"))
    assert "page 2: no text layer; --ocr auto reads it" in row["notes"]
