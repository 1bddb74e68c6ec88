"""PDF files, written by hand."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

from pearl.documents.document import from_bytes, from_text, load
from pearl.documents.readers import reading
from pearl.documents.readers.pdf import read
from pearl.errors import DataError
from tests.documents.producers import without_maps


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


def test_pages_are_separated_by_a_blank_line() -> None:
    data = make_pdf([["The first line", "and the café."], [], ["The last page."]])
    text = load_text(data)
    assert text == "The first line\nand the café.\n\nThe last page."


def load_text(data: bytes) -> str:
    return from_text(read(data, "a.pdf")).text


def test_hyphens_at_the_end_of_a_line_stay() -> None:
    assert (
        load_text(make_pdf([["This is an exam-", "ple of it."]])) == "This is an exam-\nple of it."
    )


@pytest.mark.parametrize("name", ["a.pdf", "a.PDF", "a.txt", "a.html", "a"])
def test_a_pdf_is_recognised_by_its_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(make_pdf([["One", "two"]]))
    assert load(path).text == "One\ntwo"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (make_pdf([[], []]), "has no text"),
        (make_pdf([["secret"]], ENCRYPTED), "encrypted"),
        (make_pdf([["cut"]])[:100], "damaged or not a PDF"),
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


def test_thousands_of_pages_are_read() -> None:
    document = from_bytes(make_pdf([[f"Page {i}"] for i in range(1, 5_001)]), "a.pdf")
    assert document.notes == ()
    assert document.page_at(document.text.index("Page 4711")) == 4711


Piece = tuple[str, float, float]
"""A text, its size, and its rise in points, behind the piece before."""


def lines_of(*lines: Sequence[Piece], turned: int = 0, page: int = 0) -> bytes:
    """A page of lines of pieces, each a text object of its own."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(600, 600))
    canvas.setPageRotation(page)
    canvas.translate(300, 300)
    canvas.rotate(turned)
    for n, pieces in enumerate(lines):
        x = -200.0
        for text, size, rise in pieces:
            canvas.setFont("Helvetica", size)
            canvas.drawString(x, 200 - 30 * n + rise, text)
            x += stringWidth(text, "Helvetica", size)
    canvas.save()
    return file.getvalue()


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
