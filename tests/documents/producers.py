"""PDF files made by several programs, with what makes text hard to find on a page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PROSE = (
    "The ferry stopped running in the autumn of that year, because the new bridge had been opened; "
    "the official office found it difficult to justify an inefficient ferry. Nobody was sorry for it "
    "(not even in the Upper Town, where they had always paid the full fare of 12.50 crowns). "
)
WORDS = PROSE.split()
DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


def _canvas(draw: Callable[..., None], pagesize: tuple[float, float] = (595, 842)) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    file = io.BytesIO()
    canvas = Canvas(file, pagesize=pagesize)
    draw(canvas)
    canvas.showPage()
    canvas.save()
    return file.getvalue()


def _lines(canvas: Any, x: float = 60, y: float = 780, size: float = 11, n: int = 12) -> None:
    canvas.setFont("Times-Roman", size)
    for i in range(n):
        line = " ".join(WORDS[(7 * i + k) % len(WORDS)] for k in range(9))
        canvas.drawString(x, y - 1.3 * size * i, line)


def _hyphenated(canvas: Any) -> None:
    canvas.setFont("Times-Roman", 12)
    for i, line in enumerate(
        ["the bridge was inaugu-", "rated in the pres-", "ence of the well-known mayor"]
    ):
        canvas.drawString(60, 700 - 15 * i, line)


def _mirrored(canvas: Any) -> None:
    canvas.translate(300, 400)
    for angle in (0, 35, 90, 200):
        canvas.saveState()
        canvas.rotate(angle)
        canvas.drawString(40, 10, f"turned by {angle} degrees on the page")
        canvas.restoreState()


def _superscripts(canvas: Any) -> None:
    for i in range(5):
        text = canvas.beginText(60, 700 - 20 * i)
        text.setFont("Times-Roman", 12)
        text.textOut(f"The ferry stopped in {1900 + i}")
        text.setRise(5)
        text.setFont("Times-Roman", 7)
        text.textOut(f"{i}")
        text.setRise(0)
        text.setFont("Times-Roman", 12)
        text.textOut(" and the bridge was opened H")
        text.setRise(-3)
        text.textOut("2")
        text.setRise(0)
        text.textOut("O")
        canvas.drawText(text)


def _chinese(canvas: Any) -> None:
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont

    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    canvas.setFont("STSong-Light", 14)
    line = "渡轮在那一年的秋天停止运行，因为新桥已经开通。"
    for i in range(6):
        canvas.drawString(60, 700 - 20 * i, line[i:] + line[:i])


def _table() -> bytes:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

    file = io.BytesIO()
    rows = [["Year", "Crossings", "Fare in crowns"]]
    rows += [[str(1900 + i), f"{1000 + 37 * i:,}", f"{i}.50"] for i in range(20)]
    style = getSampleStyleSheet()["Justify" if "Justify" in getSampleStyleSheet() else "BodyText"]
    style.alignment = 4
    SimpleDocTemplate(file).build(
        [Paragraph(PROSE * 4, style), Table(rows), Paragraph(PROSE * 9, style)]
    )
    return file.getvalue()


def _turned(degrees: int, crop: tuple[int, ...] | None = None) -> bytes:
    """Lines on a page that is turned, of which only a part is shown."""
    from pypdfium2 import PdfDocument

    document = PdfDocument(_canvas(_lines))
    page = document[0]
    page.set_rotation(degrees)
    if crop:
        page.set_cropbox(*crop)
    page.gen_content()
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _fpdf(write: Callable[..., None]) -> bytes:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Times", size=11)
    write(pdf)
    return bytes(pdf.output())


def _columns(pdf: Any) -> None:
    with pdf.text_columns(ncols=2, text_align="J", gutter=8) as columns:
        columns.write(PROSE * 8)


def _hebrew(pdf: Any) -> None:
    pdf.add_font("DejaVu", fname=str(DEJAVU))
    pdf.set_font("DejaVu", size=12)
    for _ in range(3):
        pdf.multi_cell(
            0,
            8,
            "המעבורת הפסיקה לפעול בסתיו של אותה שנה כי הגשר נפתח",
            new_x="LMARGIN",
            new_y="NEXT",
        )


def without_maps(n_readable: int) -> bytes:
    """Readable pages, and one page whose font does not tell which characters it shows."""
    import reportlab

    def write(pdf: Any) -> None:
        for _ in range(n_readable):
            pdf.multi_cell(0, 6, PROSE)
            pdf.add_page()
        pdf.add_font("Vera", fname=str(Path(reportlab.__file__).with_name("fonts") / "Vera.ttf"))
        pdf.set_font("Vera", size=11)
        pdf.multi_cell(0, 6, PROSE)

    return re.sub(rb"/ToUnicode \d+ 0 R", lambda match: b" " * len(match[0]), _fpdf(write))


def quick() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """PDFs of the small libraries, by name."""
    yield "hyphens", lambda: _canvas(_hyphenated)
    yield "turned text", lambda: _canvas(_mirrored)
    yield "superscripts", lambda: _canvas(_superscripts)
    yield "Chinese", lambda: _canvas(_chinese)
    yield "justified text and a table", _table
    yield "tiny", lambda: _canvas(lambda canvas: _lines(canvas, size=0.8))
    yield "huge", lambda: _canvas(lambda canvas: _lines(canvas, 600, 20_000, 900), (28_000, 28_000))
    for degrees in (90, 180):
        yield f"turned by {degrees}", lambda degrees=degrees: _turned(degrees)
    yield "crop box", lambda: _turned(0, (100, 690, 400, 800))
    yield "crop box, turned", lambda: _turned(90, (100, 690, 400, 800))
    yield "fpdf2, two columns", lambda: _fpdf(_columns)
    if DEJAVU.exists():
        yield "fpdf2, Hebrew", lambda: _fpdf(_hebrew)


SLOW = {
    "typst": f'#set page(columns: 2)\n#set par(justify: true)\n#set text(hyphenate: true, lang: "en")\n'
    f"{PROSE * 3} Nobody#footnote[Apart from the ferryman, whose office was inefficient.] was sorry. {PROSE * 6}",
    "typst, formula and turned": "The area $f(x) = x^2 + 3 alpha$ is as it should be. "
    f"#rotate(90deg, reflow: true)[#box(width: 12cm)[{PROSE}]]\n\n{PROSE}",
    "two columns": f'<div lang=en style="columns:2;hyphens:auto;text-align:justify">{PROSE * 9}</div>',
    "right to left": '<p dir=rtl style="font-family:DejaVu Sans">' + "המעבורת הפסיקה לפעול בסתיו של אותה שנה כי הגשר נפתח. " * 4,
}  # fmt: skip


def slow() -> Iterator[Callable[[], bytes]]:
    """PDFs of typesetting programs, from their own language or from HTML."""
    import typst
    import weasyprint

    for name, source in SLOW.items():
        if name.startswith("typst"):
            yield lambda source=source: typst.compile(source.encode())
        else:
            yield lambda source=source: weasyprint.HTML(string=source).write_pdf()
