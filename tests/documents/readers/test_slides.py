"""PowerPoint files."""

from __future__ import annotations

import io
import zipfile

import pptx
import pytest
from pptx.util import Inches

from pearl.documents.document import from_bytes
from pearl.documents.table import find_tables
from pearl.errors import DataError


def make_slides() -> bytes:
    slides = pptx.Presentation()
    first = slides.slides.add_slide(slides.slide_layouts[1])
    first.shapes.title.text = "Results"
    body = first.placeholders[1].text_frame
    body.text = "Revenue rose"
    more = body.add_paragraph()
    more.text, more.level = "by 5 %", 1
    first.notes_slide.notes_text_frame.text = "Say it slowly."
    second = slides.slides.add_slide(slides.slide_layouts[6])
    table = second.shapes.add_table(3, 3, Inches(1), Inches(1), Inches(5), Inches(2)).table
    for i, row in enumerate([["Drug", "Day", "Dose"], ["A", "1", "5 mg"], ["", "2", "6 mg"]]):
        for j, text in enumerate(row):
            table.cell(i, j).text = text
    table.cell(1, 0).merge(table.cell(2, 0))
    box = second.shapes.add_group_shape().shapes.add_textbox(0, 0, Inches(1), Inches(1))
    box.text_frame.text = "in a group"
    file = io.BytesIO()
    slides.save(file)
    return file.getvalue()


def test_a_slide_is_a_page() -> None:
    document = from_bytes(make_slides(), "a.pptx")
    first, second = (document.text.index(text) for text in ("# Results", "| Drug |"))
    assert document.pages == (("1", first), ("2", second))
    assert document.text[:second] == (
        "# Results\n\n- Revenue rose\n  - by 5 %\n\nNotes: Say it slowly.\n\n"
    )
    (table,) = find_tables(document)
    assert [list(row.fields.values()) for row in table.rows] == [["A", "1", "5 mg"], ["A", "2", "6 mg"]]  # fmt: skip
    assert document.text.endswith("in a group")


def altered(name: str, data: bytes) -> bytes:
    """The slides with a part replaced or added."""
    file = io.BytesIO()
    old = zipfile.ZipFile(io.BytesIO(make_slides()))
    with old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for part in {*old.namelist(), name}:
            new.writestr(part, data if part == name else old.read(part))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (make_slides()[:5_000], "damaged"),
        (altered("ppt/slides/slide1.xml", b"<a"), "damaged"),
        (altered("ppt/slides/slide1.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><a/>'), "XML entities"),
        (altered("ppt/media/image.bin", bytes(65_000_000)), "unpacks to more than the limit of 64 MB"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        from_bytes(data, "a.pptx")
