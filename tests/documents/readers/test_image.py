"""Pictures of text, alone and on pages of PDFs, read by OCR."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from pearl.documents.document import load
from pearl.documents.pages import boxes_of
from pearl.errors import DataError, Span
from tests.skips import needs_tesseract

LINES = ["The patient was given warfarin.", "On 12 March the dose was halved,", "because of bleeding."]  # fmt: skip
TEXT = "\n".join(LINES)


A4 = 1754  # dots of its height, at 150 per inch


def picture(lines: Sequence[str] = LINES, size: int = 40, height: int = 400) -> Image.Image:
    """Lines of text on a strip as wide as A4."""
    page = Image.new("L", (1240, height), 255)
    draw = ImageDraw.Draw(page)
    for i, line in enumerate(lines):
        draw.text((100, 100 + 1.5 * size * i), line, 0, ImageFont.load_default(size))
    return page


def make_scan(*pages: Sequence[str] | str | None) -> bytes:
    """A PDF with a picture for each list of lines, a text layer for each text, a blank page for None."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(595, 842))
    for page in pages:
        if isinstance(page, str):
            canvas.drawString(72, 700, page)
        elif page is not None:
            canvas.drawImage(ImageReader(picture(page, height=A4)), 0, 0, 595, 842)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def save(path: Path, *pages: Sequence[str] | str | None) -> Path:
    path.write_bytes(make_scan(*pages))
    return path


@needs_tesseract
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp"])
def test_a_picture_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    picture().save(path)
    document = load(path)
    assert document.text == TEXT
    ((start, end, confidence),) = document.ocr
    assert (start, end) == (0, len(TEXT))
    assert 0.8 < confidence <= 1


@needs_tesseract
def test_pictures_of_a_tiff_are_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.tiff"
    more = [picture([]), picture(["It is over."])]
    picture().save(path, save_all=True, append_images=more, compression="tiff_deflate")
    document = load(path)
    assert document.text == f"{TEXT}\n\n\n\nIt is over."
    assert document.page_at(document.text.index("over")) == 3
    assert len(document.ocr) == 2


@needs_tesseract
def test_a_transparent_picture_is_read_on_white(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    ink = picture().point(lambda value: 255 - value)
    Image.merge("LA", (Image.new("L", ink.size, 0), ink)).save(path)
    assert load(path).text == TEXT


@needs_tesseract
def test_pages_without_text_are_read(tmp_path: Path) -> None:
    path = save(tmp_path / "a.pdf", "A text layer.", None, LINES, [])
    document = load(path)
    assert document.text == f"A text layer.\n\n{TEXT}"
    start = document.text.index("The patient")
    assert [place[0] for place in document.ocr] == [start]
    assert document.page_at(start) == 3
    assert document.notes == ("page 4: OCR recognises no text",)
    (boxes,) = boxes_of(path, document, [Span(document.text.index("the dose"), len(document.text))])
    assert [box.page for box in boxes] == [3, 3]
    (left, below), (right, top) = (boxes[0].x0, boxes[1].y0), (boxes[0].x1, boxes[0].y0)
    assert 48 + 72 < left < right < 595 / 1.4  # right of the margin and of `On 12 March`
    assert boxes[1].x0 == pytest.approx(48, abs=3)
    assert 48 + 29 < top < below < 48 + 90


@needs_tesseract
def test_pages_that_are_hardly_legible_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    picture(LINES * 6, 26, A4).filter(ImageFilter.GaussianBlur(3.2)).save(path)
    document = load(path)
    assert document.ocr[0][2] < 0.5
    assert document.notes == ("page 1: hardly legible to OCR (confidence below 0.5)",)


def test_pages_that_are_not_read_are_named(tmp_path: Path) -> None:
    document = load(save(tmp_path / "a.pdf", "A text layer.", LINES, LINES), ocr="off")
    assert document.text == "A text layer."
    assert document.notes == ("pages 2-3: no text layer; --ocr auto reads it",)


@pytest.mark.parametrize(
    ("name", "data", "options", "words"),
    [
        ("a.pdf", make_scan(LINES), {"ocr": "off"}, "pictures: no text layer\n.*ocr=.auto"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100), {"ocr": "off"}, "OCR is off\n.*ocr=.auto"),
        *(
            pytest.param(*case, marks=needs_tesseract)
            for case in [
                ("a.pdf", make_scan([], []), {}, "pictures: OCR recognises no text"),
                ("a.pdf", make_scan(LINES), {"ocr_language": "xyz"}, "no language 'xyz'\n.* install tesseract-ocr-xyz; .*eng"),
                ("a.pdf", make_scan(LINES), {"ocr_language": "../a"}, r"no language '\.\./a'"),
                ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100), {}, "the picture cannot be read"),
            ]
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read(
    tmp_path: Path, name: str, data: bytes, options: dict[str, str], words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError, match=words) as caught:
        load(path, **options)
    assert len(str(caught.value).splitlines()) <= 3


def test_without_the_program_the_error_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PEARL_MAX_READER_MB", "999")  # another child process
    with pytest.raises(DataError, match=r"Tesseract.* not installed\n.*apt-get install tesseract-ocr"):  # fmt: skip
        load(save(tmp_path / "a.pdf", LINES))
    (note,) = load(save(tmp_path / "b.pdf", "A text layer.", LINES)).notes
    assert note.startswith("page 2: no text layer, ")
    assert "apt-get install tesseract-ocr" in note
