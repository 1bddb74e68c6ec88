"""Pages of evidence, the boxes of passages on them, and their images."""

from __future__ import annotations

import ctypes
import random
import re
from pathlib import Path

import pypdfium2
import pytest
from pypdfium2 import raw

from pearl.documents.document import from_bytes
from pearl.documents.pages import Box, boxes_of
from pearl.errors import Span
from tests.documents import producers

N_SPANS = 40


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
    words = [match.span() for match in re.finditer(r"\S+", document.text)]
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
        wanted = "".join(document.text[span.start : span.end].split())
        assert text == wanted
        assert numbers[0] == document.page_at(span.start)


QUICK = dict(producers.quick())


@pytest.mark.parametrize("name", QUICK)
def test_the_text_in_the_boxes_of_a_span_is_the_span(name: str) -> None:
    check_boxes(QUICK[name]())


@pytest.mark.slow
def test_boxes_of_typesetting_programs_and_browsers(tmp_path: Path) -> None:
    pytest.importorskip("weasyprint")
    pytest.importorskip("typst")
    for _, make in producers.slow(tmp_path):
        check_boxes(make())
