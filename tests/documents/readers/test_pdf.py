"""PDF files: their text, ruled tables, forms, and what is not read."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

from pearl.documents.document import Document, from_bytes, from_text, load
from pearl.documents.pages import boxes_of
from pearl.documents.readers import pdf as reader
from pearl.documents.readers import reading
from pearl.documents.readers.pdf import read
from pearl.documents.table import mended, table_rows
from pearl.errors import DataError, Span
from tests.documents.producers import without_maps
from tests.skips import needs_tesseract


def make_pdf(pages: Sequence[Sequence[str]], trailer: bytes = b"") -> bytes:
    """A PDF of pages of lines."""
    first = 4  # after the catalogue, the pages and the font
    kids = b" ".join(b"%d 0 R" % (first + 2 * i) for i in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for i, lines in enumerate(pages):
        shown = " ".join(f"({line}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET".encode("cp1252")
        objects += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (first + 2 * i + 1),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        ]
    return _file(objects, trailer)


def _file(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    data, offsets = b"%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, start=1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return data + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R %s >>\n"
        b"startxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, table, len(objects) + 1, trailer, len(data))
    )


ENCRYPTED = b"/ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (
    b"00" * 32,
    b"11" * 32,
)


def test_lines_and_pages_stay_apart() -> None:
    data = make_pdf([["The first line", "and the café."], [], ["An exam-", "ple."]])
    assert load_text(data) == "The first line\nand the café.\n\nAn exam-\nple."


def load_text(data: bytes) -> str:
    return from_text(read(data, "a.pdf")).text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (make_pdf([[], []]), "has no text"),
        (b"%PDF-", "damaged or not a PDF"),
        (b"just text", "damaged or not a PDF"),
        (make_pdf([]), "has no pages"),
        (without_maps(0), "cannot be read: its fonts"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    with pytest.raises(DataError, match=words) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value).splitlines()) == 2


def test_a_page_that_cannot_be_read_is_named_and_the_others_are_read() -> None:
    document = from_bytes(without_maps(2), "a.pdf")
    assert [note.partition(":")[0] for note in document.notes] == ["page 3"]
    assert document.text.startswith("The ferry stopped")


def test_more_than_a_thousand_pages_are_read() -> None:
    document = from_bytes(make_pdf([[f"Page {i}"] for i in range(1, 1_501)]), "a.pdf")
    assert document.notes == ()
    assert document.page_at(document.text.index("Page 1471")) == 1471


Piece = tuple[str, float, float]
"""A text, its size, and its rise in points, behind the piece before."""


def made(draw: Callable[[Any], None]) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(600, 600))
    draw(canvas)
    canvas.save()
    return file.getvalue()


def draw_grid(canvas: Any, xs: Sequence[float], ys: Sequence[float]) -> None:
    for x in xs:
        canvas.line(x, ys[0], x, ys[-1])
    for y in ys:
        canvas.line(xs[0], y, xs[-1], y)


def turn(canvas: Any, turned: int, page: int) -> None:
    """Turn a page, and the text on it around its middle."""
    canvas.setPageRotation(page)
    canvas.translate(300, 300)
    canvas.rotate(turned)


def lines_of(*lines: Sequence[Piece], turned: int = 0, page: int = 0) -> bytes:
    """A page of lines of pieces, each a text object of its own."""

    def draw(canvas: Any) -> None:
        turn(canvas, turned, page)
        for n, pieces in enumerate(lines):
            x = -200.0
            for text, size, rise in pieces:
                canvas.setFont("Helvetica", size)
                canvas.drawString(x, 200 - 30 * n + rise, text)
                x += stringWidth(text, "Helvetica", size)

    return made(draw)


SUPERSCRIPTS: dict[str, Sequence[Piece]] = {
    "310²": [("310", 12, 0), ("2", 7, 5)],
    "1,250¹ people": [("1,250", 12, 0), ("1", 7, 5.7), (" people", 12, 0)],
    "10⁻³ m": [("10", 12, 0), ("-3", 8, 4), (" m", 12, 0)],
    "90⁽²⁾": [("90", 12, 0), ("(2)", 8, 4)],
    "90^(1,2)": [("90", 12, 0), ("1", 7, 5), (",", 7, 5), ("2", 7, 5)],
    "x² + 5": [("x", 12, 0), ("2", 7, 5), (" + 5", 12, 0)],
    "¹Without tax": [("1", 7, 5), ("Without tax", 12, 0)],
    "10² of one size": [("10", 12, 0), ("2", 12, 5), (" of one size", 12, 0)],
    "1010₂": [("1010", 12, 0), ("2", 7, -3)],
    "76³ behind a gap": [("76", 12, 0), (" ", 9, 0), ("3", 7, 5), (" behind a gap", 12, 0)],
    # neighbours that are none
    "3102": [("310", 12, 0), ("2", 12, 0)],
    "1,2507": [("1,250", 12, 0), ("7", 9, 0)],
    "5th of May": [("5", 12, 0), ("th", 7, 3), (" of May", 12, 0)],
    "CO2 420": [("CO", 12, 0), ("2", 7, -3), (" 420", 12, 0)],
    "SO4 of the north": [("SO", 12, 0), ("4", 7, -6), (" of the north", 12, 0)],
    "uneven 12": [("uneven 1", 12, 0), ("2", 12, 1)],
}


def test_spaced_letters_are_words() -> None:
    line = "THE LAW OF THE SEA 2024"
    spaced = [piece for c in line for piece in ((c, 12.0, 0.0), (" ", 4.5, 0.0))]  # 0.1 ems
    assert load_text(lines_of(spaced)).replace("  ", " ") == line


@pytest.mark.parametrize(("turned", "page"), [(0, 0), (90, 0), (90, 90), (0, 270), (180, 180)])
def test_superscripts_are_no_digits(turned: int, page: int) -> None:
    data = lines_of(*SUPERSCRIPTS.values(), turned=turned, page=page)
    assert load_text(data).splitlines() == list(SUPERSCRIPTS)


@pytest.mark.parametrize("mark", [r"\n", r"\r", r"\r\n"])
def test_a_text_object_of_two_lines_hides_no_superscript(mark: str) -> None:
    data = make_pdf([[f"two{mark}lines", "310) Tj 5 Ts (2"]])
    assert load_text(data).splitlines()[-1] == "310²"


NUMBERS = [
    ["1,250", "7", "99.50"],
    ["(27)", "-3.1", "100%"],
    ["8", "2,024", "CHF"],
    ["0.27", "n/a", "12"],
]


@pytest.mark.parametrize("gap", [0.25, 0.5, 3])  # ems between two cells; less looks like one word
@pytest.mark.parametrize("order", ["rows", "columns", "backwards"])
@pytest.mark.parametrize(("turned", "page"), [(0, 0), (90, 0), (0, 270)])
def test_no_word_of_the_text_is_two_of_the_page(
    gap: float, order: str, turned: int, page: int
) -> None:
    widths = [
        max(stringWidth(cell, "Helvetica", 10) for cell in column)
        for column in zip(*NUMBERS, strict=True)
    ]
    cells = [
        (sum(widths[:j]) + 10 * gap * j, -14 * i, cell)
        for i, row in enumerate(NUMBERS)
        for j, cell in enumerate(row)
    ]  # fmt: skip

    def draw(canvas: Any) -> None:
        turn(canvas, turned, page)
        canvas.setFont("Helvetica", 10)
        for cell in {"rows": cells, "columns": sorted(cells), "backwards": cells[::-1]}[order]:
            canvas.drawString(*cell)

    words = [word for word in load_text(made(draw)).split() if word not in ("|", "---")]
    assert sorted(words) == sorted(cell for row in NUMBERS for cell in row)


def test_a_font_may_have_own_characters_for_superscripts() -> None:
    content = rb"BT /F1 12 Tf 72 700 Td (310) Tj (\262) Tj ( and 31) Tj (2) Tj ET"
    names = b"\n".join(b"<%02X> <00%02X>" % (c, c) for c in b" 0123and") + b"\n<B2> <0032>"
    to_unicode = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange"
        b" <00> <FF> endcodespacerange %d beginbfchar\n%s\nendbfchar endcmap end end" % (9, names)
    )
    data = _file([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /ToUnicode 6 0 R >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R"
        b" /Resources << /Font << /F1 3 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(to_unicode), to_unicode),
    ])  # fmt: skip
    assert load_text(data) == "310² and 312"


@pytest.mark.parametrize(
    ("state", "lines", "notes"),
    [
        (b"/OFF [6 0 R]", ["The fee is 150 EUR.", "It lasts 7 days."], ("not read: 1 hidden layer",)),
        (b"/BaseState /OFF /ON [7 0 R]", ["The fee is 150 EUR.", "It lasts 7 days."], ("not read: 1 hidden layer",)),
        (b"/OFF [6 0 R 7 0 R]", ["The fee is 150 EUR."], ("not read: 2 hidden layers",)),
        (b"", ["The fee is 150 EUR.", "It was 120 EUR.", "It lasts 7 days."], ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_apart", [False, True])
def test_hidden_layers_are_not_read(
    state: bytes, lines: list[str], notes: tuple[str, ...], is_apart: bool
) -> None:
    content = (
        b"BT /F1 12 Tf 14 TL 72 700 Td (The fee is 150 EUR.) Tj /OC /A BDC T* (It was 120 EUR.) Tj EMC"
        b" /OC /B BDC T* (It lasts 7 days.) Tj EMC ET"
    )
    config = b"<< %s >>" % state
    properties = b"<< /OCGs [6 0 R 7 0 R] /Configs [<< /OFF [7 0 R] >>] /D %s >>"
    data = _file([
        b"<< /Type /Catalog /Pages 2 0 R /OCProperties %s >>"
        % (b"9 0 R" if is_apart else properties % config),
        b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources"
        b" << /Font << /F1 3 0 R >> /Properties << /A 6 0 R /B 7 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        rb"<< /Type /OCG /Name (A \(draft\)) >>",
        b"<< /Type /OCG /Name <FEFF00DC> >>",
        config,
        properties % b"8 0 R",
    ])  # fmt: skip
    document = from_bytes(data, "a.pdf")
    assert document.text.splitlines() == lines
    assert [note.partition(" (")[0] for note in document.notes] == [*notes]
    with reading({"hidden": True}):
        document = from_bytes(data, "a.pdf")
    assert document.text.splitlines() == [
        "The fee is 150 EUR.",
        "It was 120 EUR.",
        "It lasts 7 days.",
    ]
    assert document.notes == ()


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
    found = (mended(table.rows) for table in table_rows(document))
    return [[list(rows[0].fields), *(list(row.fields.values()) for row in rows)] for rows in found]


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
    assert cells(from_bytes(ruled(*rules), "a.pdf")) == [ROWS]


def ruled(*rules: tuple[Any, ...]) -> bytes:
    """A table with some of its rules, between two paragraphs."""
    file = io.BytesIO()
    style = TableStyle([(*rule, 0.5, colors.black) for rule in rules])
    paragraph = Paragraph("Limits of the plants.", getSampleStyleSheet()["Normal"])
    SimpleDocTemplate(file).build([paragraph, Table(ROWS, style=style), paragraph])
    return file.getvalue()


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
    def draw(canvas: Any) -> None:
        draw_grid(canvas, (50, 108, 175, 250), (464, 482, 500))
        for i, row in enumerate(
            (above, *(zip((0, 60, 130), row, strict=True) for row in ROWS[1:]))
        ):
            for x, text in row:
                canvas.drawString(52 + x, 505 - 18 * i, text)

    ((header, *rows),) = cells(from_bytes(made(draw), "a.pdf"))
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


PROSE = ["It was cold.\n" * 50, "She left.\n" * 50]  # in frames
ONLY_LINES = ruled(("LINEBELOW", *WHOLE))


@pytest.mark.parametrize(
    "data",
    [
        placed((0, 0, 595, 842), (0, 0, 595, 842), 90),
        make_report([PROSE, PROSE[::-1]], repeated=0),
        make_report(DOSES[:1]),
        ONLY_LINES,
    ],
)
def test_what_is_no_sure_table_stays_text(data: bytes) -> None:
    with reading({"pdf_tables": "off"}):
        plain = reader.read(data, "a.pdf")
    assert reader.read(data, "a.pdf") == plain


def lease(canvas: Any) -> None:
    """A form: fields right of their labels, boxes to tick left of them, and a field without a label."""
    form = canvas.acroForm
    canvas.drawString(50, 500, "Tenant:")
    form.textfield(name="a1", x=120, y=495, width=200, height=18, value="Ada Ferrier")
    canvas.drawString(50, 470, "Rent per month:")
    form.textfield(name="a2", x=150, y=465, width=80, height=18, value="1,250")
    canvas.drawString(240, 470, "EUR")
    for y, is_checked, label in (
        (440, True, "Pets are allowed"),
        (420, False, "Smoking is allowed"),
    ):
        form.checkbox(name=label, x=50, y=y, checked=is_checked, size=12)
        canvas.drawString(70, y + 2, label)
    canvas.drawString(50, 390, "The keys:")
    form.textfield(name="a3", x=120, y=385, width=80, height=18, value="")
    form.choice(
        name="a4", tooltip="Floor", x=300, y=300, width=80, height=18, value="2",
        options=[("first floor", "1"), ("second floor", "2")],
    )  # fmt: skip
    form.textfield(
        name="a5", x=300, y=250, width=80, height=18, value="s3cret", fieldFlags="password"
    )
    form.textfield(
        name="a6", x=300, y=200, width=80, height=18, value="Ben", annotationFlags="hidden"
    )


LEASE = [
    "Tenant: Ada Ferrier",
    "Rent per month: 1,250 EUR",
    "[x] Pets are allowed",
    "[ ] Smoking is allowed",
    "The keys:",
    "Floor: second floor",
]


@pytest.mark.parametrize("turn", [0, 270])
def test_filled_fields_stand_at_their_labels(turn: int) -> None:
    def draw(canvas: Any) -> None:
        canvas.setPageRotation(turn)
        lease(canvas)

    document = from_bytes(made(draw), "a.pdf")
    assert document.text.splitlines() == LEASE
    assert document.notes == (
        "not read: 1 password, 1 hidden form field (--hidden reads what is hidden)",
    )
    with reading({"hidden": True}):
        assert from_bytes(made(draw), "a.pdf").text.splitlines() == [*LEASE, "a6: Ben"]


@pytest.mark.parametrize(
    ("value", "sides"), [("Ada Ferrier", (120, 495, 320, 513)), ("1,250", (150, 465, 230, 483))]
)
def test_a_value_has_the_box_of_its_field(value: str, sides: tuple[int, int, int, int]) -> None:
    data = made(lease)
    document = from_bytes(data, "a.pdf")
    start = document.text.index(value)
    ((box,),) = boxes_of(data, document, [Span(start, start + len(value))])
    left, bottom, right, top = sides
    assert (box.x0, box.y0, box.x1, box.y1) == (left, 600 - top, right, 600 - bottom)


def test_a_line_has_one_box_and_each_column_its_own() -> None:
    def draw(canvas: Any) -> None:
        for x, y, size, text in (
            (50, 500, 12, "The fee is"), (108, 500, 14, "150 EUR"), (50, 480, 12, "a year."), (300, 500, 12, "It is due."),
        ):  # fmt: skip
            canvas.setFontSize(size)
            canvas.drawString(x, y, text)

    data = made(draw)
    document = from_bytes(data, "a.pdf")
    spans = [document.text.index(text) for text in ("The fee", "150", "a year", "It is")]
    assert "The fee is 150 EUR" in document.text
    fee, whole, due = boxes_of(data, document, [
        Span(spans[0], spans[1] + 7), Span(spans[0], spans[2] + 7), Span(spans[3], spans[3] + 10),
    ])  # fmt: skip
    assert [len(fee), len(due)] == [1, 1]
    assert fee[0].x0 < 60
    assert 150 < fee[0].x1 < 200
    assert due[0].x0 > 295
    assert {box.y0 for box in whole} > {fee[0].y0}


def test_values_stand_in_the_cells_of_a_table() -> None:
    def draw(canvas: Any) -> None:
        draw_grid(canvas, (50, 150, 250, 350), (440, 460, 480, 500))
        for i, word in enumerate(["Item", "Units", "Price", "Pump"]):
            canvas.drawString(55 + 100 * (i % 3), 485 - 20 * (i // 3), word)
        for name, x, y in (
            ("7", 160, 462),
            ("3.50", 260, 462),
            ("Seal", 60, 442),
            ("12", 160, 442),
        ):
            canvas.acroForm.textfield(name=name, x=x, y=y, width=80, height=16, value=name)

    rows = from_bytes(made(draw), "a.pdf").text.splitlines()
    assert rows[2:] == ["| Pump | 7 | 3.50 |", "| Seal | 12 |  |"]


@needs_tesseract
def test_forced_ocr_reads_pages_with_text_and_values_that_are_drawn() -> None:
    data = made(lease)
    with reading({"ocr": "force"}):
        document = from_bytes(data, "a.pdf")
        start = document.text.index("Ada Ferrier")
        (boxes,) = boxes_of(data, document, [Span(start, start + len("Ada Ferrier"))])
    assert len(boxes) == 1  # where OCR has read the words
    assert len(document.ocr) == 1


def annotated(canvas: Any) -> None:
    canvas.drawString(50, 500, "The fee is 150 EUR.")
    for i in range(2):
        canvas.textAnnotation(f"note {i}", Rect=[50, 480, 70, 500])
    canvas.highlightAnnotation(
        "", [50, 500, 90, 512], QuadPoints=[50, 512, 90, 512, 50, 500, 90, 500]
    )
    canvas.freeTextAnnotation("not agreed", "/F1 9 Tf", Rect=[50, 300, 150, 320])
    canvas.linkURL("https://example.org", (50, 200, 90, 220))


def test_what_is_not_read_is_named() -> None:
    pdf = pypdfium2.PdfDocument(made(annotated))
    pdf.new_attachment("a.txt").set_data(b"a text")
    file = io.BytesIO()
    pdf.save(file)
    document = from_bytes(file.getvalue(), "a.pdf")
    assert document.text == "The fee is 150 EUR."
    assert document.notes == ("not read: 2 comments, 1 highlight, 1 text box, 1 attached file",)
