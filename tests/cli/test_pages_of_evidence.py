"""Pages and boxes of evidence in what commands print and write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pearl.documents.pages import with_boxes
from tests.cli.terminal import Terminal
from tests.documents.readers.test_pdf import ENCRYPTED, make_pdf, make_report
from tests.root import ROOT

WHY = "Why did Nils sell the boat?"
PAGES = [
    ["Nils left the harbour at dawn."],
    ["It was cold there.", "He sold the boat because", "the hull was rotten."],
]


@pytest.fixture
def report(pearl: Terminal) -> Path:
    path = Path("report.pdf")
    path.write_bytes(make_pdf(PAGES))
    return path


def passages(row: dict[str, Any]) -> list[dict[str, Any]]:
    schema = json.loads((ROOT / "docs" / "results.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate({"id": "a", **row})
    return list(row["evidence"])


def test_boxes_are_added_on_request(pearl: Terminal, report: Path) -> None:
    pearl("ask", WHY, "report.pdf", "--boxes", code=2)
    [passage] = passages(json.loads(pearl("ask", WHY, "report.pdf", "--json", "--boxes")))
    first, second = passage["boxes"]
    assert (first["page"], second["page"]) == (2, 2)
    assert first["x0"] == pytest.approx(72, abs=2)
    assert first["y0"] < second["y0"]
    Path("reports").mkdir()
    report.rename("reports/report.pdf")
    row = json.loads(pearl("ask", WHY, "reports", "--together", "--json", "--boxes"))
    assert passages(row)[0]["boxes"] == passage["boxes"]
    pearl("execute", "why.plan", "reports/report.pdf", "--out", "rows.jsonl", "--boxes")
    row = json.loads(Path("rows.jsonl").read_text("utf-8"))
    assert [box["page"] for box in passages(row)[0]["boxes"]] == [2, 2]


def test_a_stored_run_is_viewed_as_it_read_its_documents(pearl: Terminal, report: Path) -> None:
    report.write_bytes(make_report([["He sold the boat because", "the hull was rotten."]] * 2))
    pearl("execute", "why.plan", "report.pdf", "--out", "rows.jsonl", "--pdf-tables", "off")
    (run,) = json.loads(pearl("runs", "list", "--json"))
    pearl("view", run["id"], "-o", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert "data:image/webp" in page
    assert "| He sold" not in page


def test_a_changed_file_has_no_boxes(pearl: Terminal, report: Path) -> None:
    row = json.loads(pearl("ask", WHY, "report.pdf", "--json"))
    for change in (lambda: report.write_bytes(make_pdf(PAGES[::-1])), report.unlink):
        change()
        boxed = with_boxes(row)
        assert "boxes" not in passages(boxed)[0]
        assert [note.partition(":")[0] for note in boxed["notes"]] == ["no boxes"]
    assert "notes" not in row


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
