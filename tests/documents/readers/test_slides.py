"""PowerPoint files."""

from __future__ import annotations

import io
import zipfile

import pptx
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from pptx.oxml.ns import nsdecls
from pptx.presentation import Presentation
from pptx.util import Inches

from pearl.documents.document import from_bytes
from pearl.documents.readers import reading
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


def beside() -> Presentation:
    """Three slides, the second hidden; the first with a chart, SmartArt, raised and struck text."""
    made = pptx.Presentation()
    first, second, third = (made.slides.add_slide(made.slide_layouts[5]) for _ in range(3))
    for n, slide in enumerate((first, second, third), 1):
        slide.shapes.title.text = f"Slide {n}"
    second._element.set("show", "0")
    figures = CategoryChartData()
    figures.categories = ["North", "South"]
    figures.add_series("2024", (4, 5.5))
    place = 0, 0, Inches(3), Inches(3)
    first.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, figures).chart.chart_title.text_frame.text = "Sales"  # fmt: skip
    paragraph = third.shapes.add_textbox(*place).text_frame.paragraphs[0]
    for text, name, value in (("310", "lang", "en"), ("2", "baseline", "30000"), (" 9", "strike", "sngStrike"), (" CO", "lang", "en"), ("2", "baseline", "-25000")):  # fmt: skip
        run = paragraph.add_run()
        run.text = text
        run._r.get_or_add_rPr().set(name, value)
    return made


def test_what_stands_beside_the_texts_of_slides() -> None:
    made = beside()
    slide, hidden = made.slides[2], made.slides[1]
    for kind, xml in {
        "diagramData": "<d:dataModel xmlns:d='d' xmlns:a='a'><d:pt><d:t><a:t>Plan</a:t></d:t></d:pt><d:pt><d:t><a:t>Do</a:t></d:t></d:pt></d:dataModel>",
        "comments": "<p:cmLst xmlns:p='p'><p:cm><p:text>Check this.</p:text></p:cm></p:cmLst>",
    }.items():
        part = Part(
            PackURI(f"/ppt/{kind}1.xml"), "application/xml", made.part.package, xml.encode()
        )
        key = slide.part.relate_to(part, f"http://x/{kind}")
        if kind == "diagramData":
            frame = parse_xml(f"<p:graphicFrame {nsdecls('p', 'a', 'r')} xmlns:d='d'><p:nvGraphicFramePr><p:cNvPr id='77' name='x'/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm/><a:graphic><a:graphicData uri='d'><d:relIds r:dm='{key}' r:lo='x'/></a:graphicData></a:graphic></p:graphicFrame>")  # fmt: skip
            slide.shapes._spTree.append(frame)
    file = io.BytesIO()
    made.save(file)
    chart = "Sales\n\n| category | 2024 |\n| --- | --- |\n| North | 4 |\n| South | 5.5 |"
    third = "# Slide 3\n\n310² CO₂\n\nPlan\nDo\n\nComment: Check this."
    found = from_bytes(file.getvalue(), "a.pptx")
    assert found.text == f"# Slide 1\n\n{chart}\n\n\n\n{third}"
    assert found.notes == (
        "not read: 1 hidden slide, 1 struck text (--hidden reads what is hidden)",
    )
    assert [found.page_at(found.text.index(each)) for each in ("Slide 1", "Slide 3")] == [1, 3]
    with reading({"hidden": True}):
        found = from_bytes(file.getvalue(), "a.pptx")
    assert "# Slide 2 (hidden)" in found.text
    assert found.notes == ("not read: 1 struck text",)
    made.slides[0]._element.set("show", "0")
    slide._element.set("show", "0")
    hidden._element.set("show", "0")
    file = io.BytesIO()
    made.save(file)
    with pytest.raises(DataError, match=r"only hidden slides\n.*hidden=True"):
        from_bytes(file.getvalue(), "a.pptx")
