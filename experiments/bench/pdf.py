"""What do the places of a PDF's text cost? Prints one JSON line.

    python experiments/bench/pdf.py [FILE.pdf] [--rounds N]

Over a file, or a generated one of 222 pages: its text by bare pypdfium2, the text with the place of every
character, both in this process; the boxes of 100 passages and the images of 10 pages, each with the child
process that makes them. The median of the rounds counts, each of which measures all in turn.
"""

from __future__ import annotations

import argparse
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from pypdfium2 import PdfDocument

from pearl.documents.document import from_bytes
from pearl.documents.pages import boxes_of, page_images
from pearl.documents.pdf_text import page_text
from pearl.errors import Span

N_PAGES, N_LINES, N_SPANS = 222, 48, 100


def made_up_pdf() -> bytes:
    """Pages of lines of made-up words."""
    from callers import made_up_words
    from reportlab.pdfgen.canvas import Canvas

    draw = random.Random(0)
    words = made_up_words(draw, 20_000)
    file = io.BytesIO()
    canvas = Canvas(file)
    for _ in range(N_PAGES):
        canvas.setFont("Times-Roman", 11)
        for line in range(N_LINES):
            canvas.drawString(50, 790 - 15 * line, " ".join(draw.choices(words, k=10)))
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    data = made_up_pdf() if given.file is None else given.file.read_bytes()
    document = from_bytes(data, "a.pdf")
    draw = random.Random(1)
    starts = [draw.randrange(len(document.text)) for _ in range(N_SPANS)]
    spans = [Span(start, min(start + 200, len(document.text))) for start in starts]
    pdf = PdfDocument(data)

    def over_pages(read: Callable[..., object]) -> None:
        for page in pdf:
            layer = page.get_textpage()
            read(layer)
            layer.close()
            page.close()

    measured: dict[str, Callable[[], object]] = {
        "bare": lambda: over_pages(lambda layer: layer.get_text_bounded()),
        "text_and_places": lambda: over_pages(page_text),
        "boxes": lambda: boxes_of(data, document, spans),
        "images": lambda: page_images(data, range(1, 11)),
    }
    times: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(given.rounds):
        for name, work in measured.items():
            begun = perf_counter()
            work()
            times[name].append(perf_counter() - begun)
    result = {name: round(median(each), 3) for name, each in times.items()}
    ratios = [
        places / bare for places, bare in zip(times["text_and_places"], times["bare"], strict=True)
    ]
    result |= {"pages": len(pdf), "ratio": round(median(ratios), 2)}
    result["without_boxes"] = sum(not boxes for boxes in boxes_of(data, document, spans))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
