"""Questions over scanned documents."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from tests.cli.terminal import Terminal
from tests.documents.readers.test_image import LINES, make_scan
from tests.root import ROOT
from tests.skips import needs_tesseract

WHY = "Why was the dose halved?"
ANSWER = "On 12 March the dose was halved,\nbecause of bleeding."


@needs_tesseract
def test_evidence_of_a_scan_says_how_it_was_read(pearl: Terminal) -> None:
    Path("scan.pdf").write_bytes(make_scan(["A title page."], LINES))
    assert "scan.pdf, page 2, by OCR (confidence 0." in pearl("ask", WHY, "scan.pdf")
    row = json.loads(pearl("ask", WHY, "scan.pdf", "--json"))
    (passage,) = row["evidence"]
    assert (passage["text"], passage["page"]) == (ANSWER, 2)
    assert 0.8 < passage["ocr"] <= 1
    schema = json.loads((ROOT / "docs" / "results.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate({"id": "a", **row})


def test_answers_name_the_pages_that_are_not_read(pearl: Terminal) -> None:
    Path("mixed.pdf").write_bytes(make_scan("He sold it because it leaked.", LINES))
    pearl("ask", "Why did he sell it?", "mixed.pdf", "--ocr", "off")
    row = json.loads(pearl("ask", "Why did he sell it?", "mixed.pdf", "--ocr", "off", "--json"))
    assert "page 2: no text layer; --ocr auto reads it" in row["notes"]
