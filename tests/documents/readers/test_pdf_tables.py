"""Ruled tables in PDFs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pypdfium2
import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

from pearl.documents.document import Document, from_bytes
from pearl.documents.pages import boxes_of
from pearl.documents.readers import pdf as reader
from pearl.documents.readers import reading
from pearl.documents.table import find_tables
from pearl.errors import Span

DOSES = [["Drug", "Dose", "Days"], ["Warfarin", "5 mg", "3"], ["Heparin | low", "7 mg", "2"]]
ITEMS = [["No", "Name", "Value"]] + [[str(i), f"item {i}", str(3 * i)] for i in range(1, 121)]


def make_report(rows: Sequence[Sequence[str]], *styles: Any, repeated: int = 1, header: str = "ACME") -> bytes:  # fmt: skip
    """A report with a ruled table, a running header and numbers of pages."""

    def running(canvas: Any, document: Any) -> None:
        canvas.drawString(72, 815, header)
        canvas.drawString(72, 30, f"Page {document.page}")

    file = io.BytesIO()
    table = Table([list(row) for row in rows], repeatRows=repeated)
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), *styles]))
    style = getSampleStyleSheet()["Normal"]
    body = [Paragraph("The report begins, and it says much. " * 20, style), table]
    body.append(Paragraph("After the table.", style))
    SimpleDocTemplate(file).build(body, onFirstPage=running, onLaterPages=running)
    return file.getvalue()


def cells(document: Document) -> list[list[list[str | None]]]:
    """The cells of the rows of each table, its header first."""
    found = find_tables(document)
    return [[list(t.columns), *(list(row.fields.values()) for row in t.rows)] for t in found]


def test_a_table_stands_in_place_of_its_lines() -> None:
    document = from_bytes(make_report(DOSES), "a.pdf")
    before, _, rest = document.text.partition("\n\n| Drug")
    assert before.endswith("it says much.")
    assert rest.endswith("| 2 |\n\nAfter the table.")
    assert cells(document) == [DOSES]
    assert "Warfarin" not in before + rest.replace("| Warfarin |", "")


def boxed(data: bytes, document: Document, text: str) -> list[float]:
    """The left edge of each box of a text."""
    start = document.text.index(text)
    (boxes,) = boxes_of(data, document, [Span(start, start + len(text))])
    return [box.x0 for box in boxes]


@pytest.mark.parametrize("repeated", [0, 1])
def test_a_table_over_pages_is_one(repeated: int) -> None:
    data = make_report(ITEMS, repeated=repeated)
    document = from_bytes(data, "a.pdf")
    assert cells(document) == [ITEMS]
    start = document.text.index("| 77 | item 77")
    assert document.page_at(start) == 3
    first, second = boxed(data, document, "77 | item 77")
    assert first < second


def test_text_between_pages_is_never_lost() -> None:
    data = make_report(ITEMS)
    pdf = pypdfium2.PdfDocument(data)
    pdf.import_pages(pypdfium2.PdfDocument(make_report(ITEMS, header="A new part")), [1], index=2)
    file = io.BytesIO()
    pdf.save(file)
    assert "A new part" in from_bytes(file.getvalue(), "a.pdf").text


def test_merged_headings_are_repeated() -> None:
    rows = [["Item", "2008", "", "2009", ""], ["", "Q1", "Q2", "Q1", "Q2"], ["Sales", "1", "2", "3", "4"]]  # fmt: skip
    spans = [("SPAN", (1, 0), (2, 0)), ("SPAN", (3, 0), (4, 0)), ("SPAN", (0, 0), (0, 1))]
    (table,) = cells(from_bytes(make_report(rows, *spans), "a.pdf"))
    assert table[0] == ["Item", "2008 Q1", "2008 Q2", "2009 Q1", "2009 Q2"]


def test_a_table_without_a_header_gets_none() -> None:
    (table,) = cells(from_bytes(make_report(DOSES[1:], repeated=0), "a.pdf"))
    assert table == [["column 1", "column 2", "column 3"], *DOSES[1:]]


ROWS = [["Plant", "Substance", "Limit"], ["North", "SO2", "420"], ["South", "COD", "106"]]
WHOLE = (0, 0), (-1, -1)


@pytest.mark.parametrize(
    "rules",
    [
        [("LINEBEFORE", *WHOLE), ("LINEAFTER", *WHOLE), ("LINEBELOW", *WHOLE)],  # without the top
        [("LINEBEFORE", *WHOLE), ("LINEAFTER", *WHOLE), ("LINEABOVE", *WHOLE)],  # the bottom
        [("LINEABOVE", *WHOLE), ("LINEBELOW", *WHOLE), ("LINEBEFORE", *WHOLE)],  # the right side
        [("LINEABOVE", *WHOLE), ("LINEBELOW", *WHOLE), ("INNERGRID", *WHOLE)],  # both sides
        [("INNERGRID", *WHOLE)],  # every side
    ],
)
def test_a_table_without_outer_rules_is_whole(rules: Sequence[tuple[Any, ...]]) -> None:
    file = io.BytesIO()
    style = TableStyle([(*rule, 0.5, colors.black) for rule in rules])
    paragraph = Paragraph("Limits of the plants.", getSampleStyleSheet()["Normal"])
    SimpleDocTemplate(file).build([paragraph, Table(ROWS, style=style), paragraph])
    assert cells(from_bytes(file.getvalue(), "a.pdf")) == [ROWS]


@pytest.mark.parametrize(
    ("above", "columns"),
    [
        (((0, "Plant"), (60, "Substance"), (130, "Limit")), ROWS[0]),
        # a sentence, and a line over two columns only
        (((0, "Limits of"), (44, "some"), (73, "substances"), (130, "Limit")), None),
        (((0, "Plant"), (60, "Substance")), None),
    ],
)
def test_the_line_above_a_table_may_name_its_columns(
    above: Sequence[tuple[int, str]], columns: list[str] | None
) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    for i in range(3):
        canvas.line(50, 700 - 18 * i, 250, 700 - 18 * i)
    for x in (50, 108, 175, 250):
        canvas.line(x, 664, x, 700)
    for y, row in (
        (705, above),
        *((705 - 18 * i, zip((0, 60, 130), ROWS[i], strict=True)) for i in (1, 2)),
    ):
        for x, text in row:
            canvas.drawString(52 + x, y, text)
    canvas.save()
    ((header, *rows),) = cells(from_bytes(file.getvalue(), "a.pdf"))
    assert rows == ROWS[1:]
    assert header == (columns or ["column 1", "column 2", "column 3"])


def placed(media: Sequence[float], crop: Sequence[float], degrees: int) -> bytes:
    """The report on a page with other boxes, turned."""
    pdf = pypdfium2.PdfDocument(make_report(DOSES))
    pdf[0].set_mediabox(*media)
    pdf[0].set_cropbox(*crop)
    pdf[0].set_rotation(degrees)
    file = io.BytesIO()
    pdf.save(file)
    return file.getvalue()


def test_the_origin_of_a_page_may_be_anywhere() -> None:
    data = placed((-50, -30, 650, 860), (20, 10, 580, 830), 0)
    document = from_bytes(data, "a.pdf")
    assert cells(document) == [DOSES]
    (whole,) = boxed(make_report(DOSES), from_bytes(make_report(DOSES), "a.pdf"), "5 mg")
    assert boxed(data, document, "5 mg") == [pytest.approx(whole - 20, abs=0.1)]


def prose() -> bytes:
    """Two columns of prose in frames."""
    words = ["It was cold.\n" * 50, "She left.\n" * 50]
    return make_report([words, words[::-1]], repeated=0)


def only_lines() -> bytes:
    """A table with rules between its rows only."""
    file = io.BytesIO()
    style = TableStyle([("LINEBELOW", *WHOLE, 0.5, colors.black)])
    SimpleDocTemplate(file).build([Table(ROWS, style=style)])
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [placed((0, 0, 595, 842), (0, 0, 595, 842), 90), prose(), make_report(DOSES[:1]), only_lines()],
)
def test_what_is_no_sure_table_stays_text(data: bytes) -> None:
    with reading({"pdf_tables": "off"}):
        plain = reader.read(data, "a.pdf")
    assert reader.read(data, "a.pdf") == plain
