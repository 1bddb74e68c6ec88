"""Pages of evidence, the boxes of passages on them, and their images."""

from __future__ import annotations

import ctypes
import io
import random
import re

import pypdfium2
import pytest
from PIL import Image
from pypdfium2 import raw

from pearl.documents.document import from_bytes, from_text, join
from pearl.documents.pages import Box, boxes_of, page_images
from pearl.errors import Span
from tests.documents import producers
from tests.documents.readers.test_pdf import make_pdf

N_SPANS = 12
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def within(page: pypdfium2.PdfPage, boxes: tuple[Box, ...]) -> str:
    """The characters whose middle is in a box, as pdfium maps the page that is shown to its contents."""
    width, height = page.get_size()
    layer = page.get_textpage()
    fine = 1000  # the function takes whole numbers

    def on_page(x: float, y: float) -> tuple[float, float]:
        a, b = ctypes.c_double(), ctypes.c_double()
        size = round(width * fine), round(height * fine)
        raw.FPDF_DeviceToPage(page, 0, 0, *size, 0, round(x * fine), round(y * fine), a, b)
        return a.value, b.value

    corners = [(*on_page(box.x0, box.y0), *on_page(box.x1, box.y1)) for box in boxes]
    shown = ""
    for i in range(layer.count_chars()):
        sides = zip(layer.get_charbox(i), page.get_bbox(), (max, max, min, min), strict=True)
        left, bottom, right, top = (nearer(side, edge) for side, edge, nearer in sides)
        if left > right or bottom > top:
            continue  # not shown
        x, y = (left + right) / 2, (bottom + top) / 2
        if any(
            min(a, c) <= x <= max(a, c) and min(b, d) <= y <= max(b, d) for a, b, c, d in corners
        ):
            shown += chr(raw.FPDFText_GetUnicode(layer, i)).replace("\x02", "-")
    shown = shown.encode("utf-16", "surrogatepass").decode("utf-16")  # pdfium counts pairs as two
    return "".join(shown.split())


def check_boxes(data: bytes, seed: int = 0) -> None:
    """The text in the boxes of spans of words is the text of the spans."""
    document = from_bytes(data, "a.pdf")
    pdf = pypdfium2.PdfDocument(data)
    rng = random.Random(seed)
    found = re.finditer(r"\S+", document.text)
    words = [match.span() for match in found if match[0] not in ("|", "---")]
    spans = []
    for _ in range(N_SPANS):
        first = rng.randrange(len(words))
        last = min(first + rng.choice([0, 1, 3, 8, 25]), len(words) - 1)
        spans.append(Span(words[first][0], words[last][1]))
    for span, boxes in zip(spans, boxes_of(data, document, spans), strict=True):
        numbers = sorted({box.page for box in boxes})
        text = "".join(
            within(pdf[number - 1], tuple(box for box in boxes if box.page == number))
            for number in numbers
        )
        written = document.text[span.start : span.end]
        wanted = "".join(re.sub(r"\| |-{3}|\|$", "", written, flags=re.M).split())  # of tables
        wanted = wanted.translate(SUPERSCRIPTS)
        assert text == wanted
        assert numbers[0] == document.page_at(span.start)


QUICK = dict(producers.quick())


@pytest.mark.parametrize("name", QUICK)
def test_the_text_in_the_boxes_of_a_span_is_the_span(name: str) -> None:
    check_boxes(QUICK[name]())


@pytest.mark.slow
def test_boxes_of_typesetting_programs() -> None:
    pytest.importorskip("weasyprint")
    pytest.importorskip("typst")
    for make in producers.slow():
        check_boxes(make())


def test_a_passage_over_a_page_break_has_boxes_on_both_pages() -> None:
    data = make_pdf([["First words", "and more"], [], ["the last words"]])
    document = from_bytes(data, "a.pdf")
    boxes = boxes_of(data, document, [Span(0, len(document.text))])[0]
    assert [box.page for box in boxes] == [1, 1, 3]


def test_another_text_has_no_boxes() -> None:
    data, other = (make_pdf([["He sold it"], [end]]) for end in ("for money", "for monet"))
    document = from_bytes(other, "a.pdf")
    spans = [Span(0, 5), Span(document.text.index("for"), len(document.text)), Span(0, 20)]
    assert [len(boxes) for boxes in boxes_of(data, document, spans)] == [1, 0, 0]
    assert boxes_of(b"a text", from_text("a text"), [Span(0, 1)]) == [()]


def test_pages_are_those_of_the_file() -> None:
    one, two = (from_bytes(make_pdf(pages), "a.pdf") for pages in ([["One"]], [["A"], ["B"]]))
    document = join([one, two, from_text("no pages", "c"), from_text("x\fy", "d")])
    words = ("One", "A\n", "B", "no pages", "y")
    pages = [document.page_at(document.text.index(word)) for word in words]
    assert pages == [1, 1, 2, None, 2]


def test_pages_begin_where_their_text_does() -> None:
    document = from_text("one\r\r\n\ftwo\r\r\n\fthree\r\n")
    begun = [document.text[start:].split()[0] for _, start in document.pages]
    assert begun == ["one", "two", "three"]
    assert document.page_at(document.text.index("two")) == 2


def as_pdf(image: Image.Image, resolution: float) -> bytes:
    """A PDF of one page that the image fills, at a number of pixels per inch."""
    file = io.BytesIO()
    image.save(file, "PDF", resolution=resolution)
    return file.getvalue()


@pytest.mark.slow
def test_images_of_pages_are_small() -> None:
    photograph = as_pdf(Image.effect_noise((1200, 1600), 90).convert("RGB"), 72)
    for data in (photograph, QUICK["huge"](), QUICK["crop box, turned"]()):
        pages = page_images(data, [0, 1, 2])
        assert list(pages) == [1]
        image = Image.open(io.BytesIO(pages[1].data))
        assert len(pages[1].data) <= 150_000
        assert image.size == (pages[1].width, pages[1].height)
        assert 0 < max(image.size) <= 1_801
        assert image.size[0] / image.size[1] == pytest.approx(
            pages[1].page_width / pages[1].page_height, rel=0.02
        )
    assert page_images(b"a text", [1]) == {}


def test_an_image_of_a_page_is_as_sharp_as_fits() -> None:
    lines = make_pdf([["A page", "of text"], ["Another page"]])
    text, _ = page_images(lines, [0, 1, 2, 3]).values()
    (photograph,) = page_images(as_pdf(Image.effect_noise((500, 700), 200), 72), [1]).values()
    (wide,) = page_images(as_pdf(Image.new("RGB", (60, 40), "red"), 1.5), [1]).values()
    assert (text.width, text.height) == (980, 1268)  # 612 by 792 points, each 1.6 pixels
    drawn = pypdfium2.PdfDocument(lines)[0].render(scale=1.6).to_pil()
    assert Image.open(io.BytesIO(text.data)).convert("RGB").tobytes() == drawn.tobytes()
    assert (wide.page_width, wide.width) == (2880, 1800)
    # Of 800 by 1120 pixels, this is too large a file even at the lowest quality.
    assert photograph.width < 800
    assert 75_000 < len(photograph.data) <= 150_000
