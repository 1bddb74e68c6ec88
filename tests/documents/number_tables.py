"""Generated PDFs of tables of numbers: fonts, sizes, turns, borders, alignments, gaps, and how they are drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

Rows = Sequence[Sequence[str]]

_WORDS = ["Pump", "Valve", "Seal", "n/a", "CHF", "Total", "B2"]
_LEAST_GAP = 0.25  # ems between two cells; less looks like one word


class NumberTable(NamedTuple):
    """A PDF, what stands in its cells, and whether each character is drawn by itself."""

    data: bytes
    tokens: list[str]
    in_glyphs: bool


def number_table(seed: int) -> NumberTable:
    """A table of numbers and words without blanks."""
    draw = Random(seed)
    n_columns = draw.randint(2, 5)
    rows = [[_token(draw) for _ in range(n_columns)] for _ in range(draw.randint(2, 12))]
    way = draw.choice(["cells", "columns", "backwards", "lines", "kerned", "glyphs"])
    return NumberTable(
        _by_hand(draw, rows, way), [token for row in rows for token in row], way == "glyphs"
    )


def _token(draw: Random) -> str:
    makers: list[Callable[[], str]] = [
        lambda: str(draw.randrange(10)),
        lambda: f"{draw.uniform(0, 9999):,.2f}",
        lambda: f"{draw.random():.2f}",
        lambda: str(draw.randrange(1000, 9999)),
        lambda: f"-{draw.uniform(0, 99):.1f}",
        lambda: f"{draw.randrange(100)}%",
        lambda: f"({draw.randrange(1, 999)})",
        lambda: draw.choice(_WORDS),
    ]
    return draw.choice(makers)()


def _by_hand(draw: Random, rows: Rows, way: str) -> bytes:
    """Operators of a page's content; the page, the text or both are turned, and the font or the page is scaled."""
    from reportlab.pdfbase.pdfmetrics import stringWidth
    from reportlab.pdfgen.canvas import Canvas

    font = draw.choice(["Helvetica", "Times-Roman", "Courier", "Helvetica-Bold"])
    size = draw.choice([4, 6, 7.5, 9, 10, 10.5, 11, 12, 16])
    gap, leading = draw.choice([_LEAST_GAP, 0.3, 0.5, 1, 3]), draw.choice([1.0, 1.2, 1.5, 2.5])
    share = draw.choice([0, 0.5, 1])  # of the room of a cell that is left of its text
    scaled = draw.choice(["neither", "neither", "font", "page"])
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(842, 842))
    canvas.setPageRotation(draw.choice([0, 0, 90, 180, 270]))
    canvas.translate(421, 421)
    canvas.rotate(draw.choice([0, 0, 90, 180, 270]))
    canvas.translate(-380, 300)
    if scaled == "page":
        canvas.scale(size, size)
    em = 1 if scaled == "page" else size
    widths = [max(stringWidth(cell, font, em) for cell in column) for column in zip(*rows, strict=True)]  # fmt: skip
    lefts = [sum(widths[:j]) + j * gap * em for j in range(len(widths))]
    if draw.random() < 0.4:
        canvas.setLineWidth(0.03 * em)
        edges = [left - gap * em / 2 for left in [*lefts, lefts[-1] + widths[-1] + gap * em]]
        canvas.grid(edges, [(0.9 - i * leading) * em for i in range(len(rows) + 1)])
    cells = [
        (lefts[j] + share * (widths[j] - stringWidth(cell, font, em)), -i * leading * em, cell)
        for i, row in enumerate(rows)
        for j, cell in enumerate(row)
    ]
    canvas.setFont(font, em)
    name = canvas._doc.getInternalFontName(font)
    matrix = f"{em} 0 0 {em}" if scaled == "font" else "1 0 0 1"

    def show(x: float, y: float, shown: str) -> None:
        canvas._code.append(
            f"BT {name} {1 if scaled == 'font' else em} Tf {matrix} {x:.3f} {y:.3f} Tm {shown} TJ ET"
        )

    def quoted(text: str) -> str:
        return "(" + text.replace("(", r"\(").replace(")", r"\)") + ")"

    if way == "columns":
        cells = [cell for j in range(len(widths)) for cell in cells[j :: len(widths)]]
    elif way == "backwards":
        cells.reverse()
    if way == "lines":
        for i, row in enumerate(rows):
            show(0, -i * leading * em, f"[{quoted('  '.join(row))}]")
    elif way == "kerned":
        for i in range(len(rows)):
            own = cells[i * len(widths) : (i + 1) * len(widths)]
            at, shown = own[0][0], ""
            for x, _, cell in own:
                shown += f"{(at - x) / em * 1000:.1f}{quoted(cell)}"
                at = x + stringWidth(cell, font, em)
            show(own[0][0], own[0][1], f"[{shown}]")
    else:
        for x, y, cell in cells:
            pieces = list(cell) if way == "glyphs" else [cell]
            for k, piece in enumerate(pieces):
                show(x + stringWidth(cell[:k], font, em), y, f"[{quoted(piece)}]")
    canvas.showPage()
    canvas.save()
    return file.getvalue()
