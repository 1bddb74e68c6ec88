"""Filled fields of PDFs, and what of a PDF is not part of its text."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pypdfium2
import pytest
from reportlab.pdfgen.canvas import Canvas

from pearl.documents.document import from_bytes
from pearl.documents.pages import boxes_of
from pearl.documents.readers import reading
from pearl.errors import Span
from tests.skips import needs_tesseract


def made(draw: Callable[[Any], None]) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(600, 600))
    draw(canvas)
    canvas.save()
    return file.getvalue()


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


def test_a_value_has_the_box_of_its_field() -> None:
    data = made(lease)
    document = from_bytes(data, "a.pdf")
    start = document.text.index("1,250")
    ((box,),) = boxes_of(data, document, [Span(start, start + 5)])
    assert (box.x0, box.y0, box.x1, box.y1) == (150, 600 - 483, 230, 600 - 465)


def test_values_stand_in_the_cells_of_a_table() -> None:
    def draw(canvas: Any) -> None:
        for i in range(4):
            canvas.line(50, 500 - 20 * i, 350, 500 - 20 * i)
            canvas.line(50 + 100 * i, 440, 50 + 100 * i, 500)
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
def test_ocr_reads_values_that_are_drawn() -> None:
    with reading({"ocr": "force"}):
        assert "Ada Ferrier" in from_bytes(made(lease), "a.pdf").text


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
