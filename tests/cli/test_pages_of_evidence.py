"""Pages of evidence in what commands print and write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.documents.readers.test_pdf import ENCRYPTED, make_pdf, make_report

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


def test_a_stored_run_is_viewed_as_it_read_its_documents(pearl: Terminal, report: Path) -> None:
    report.write_bytes(make_report([["He sold the boat because", "the hull was rotten."]] * 2))
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
