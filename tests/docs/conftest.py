"""The folder in which the code blocks of a page run: documents, plans and data as the pages name them."""

from __future__ import annotations

import shutil
from pathlib import Path

import docx
import openpyxl
import pytest

from tests.documents.readers.test_pdf import make_pdf

FOLDER = Path(__file__).with_name("folder")


@pytest.fixture(scope="session")
def _documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder, with the files that are no text."""
    folder = tmp_path_factory.mktemp("documents") / "folder"
    shutil.copytree(FOLDER, folder)
    for name, lines in {
        "report.pdf": ["Discharge letter.", "Ibuprofen was stopped because it upset the stomach."],
        "annex.pdf": ["Annex to the hire of a boat.", "The deposit is returned in October."],
        "minutes.pdf": ["Minutes of May.", "The budget for the new bridge was agreed."],
    }.items():
        (folder / name).write_bytes(make_pdf([lines]))
    letter = docx.Document()
    letter.add_paragraph("Dear colleague, aspirin was stopped after a bleeding ulcer was seen.")
    letter.save(str(folder / "letter.docx"))
    book = openpyxl.Workbook()
    for row in (("Clinic", "Fee"), ("Harbour Clinic", 250), ("Mill Clinic", 120)):
        book.worksheets[0].append(row)
    book.worksheets[0]["B2"].number_format = book.worksheets[0]["B3"].number_format = '"$"#,##0'
    book.save(folder / "book.xlsx")
    return folder


@pytest.fixture
def folder(_documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the working folder."""
    copy = tmp_path / "folder"
    shutil.copytree(_documents, copy)
    monkeypatch.chdir(copy)
    return copy
