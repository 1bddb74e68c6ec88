"""Boxes of passages on pages of PDF files, and pictures of pages; a child process makes both."""

from __future__ import annotations

import base64
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from pearl.documents.document import Document, read_as, read_bytes
from pearl.documents.readers import pdf
from pearl.errors import Span
from pearl.plugins.extras import require_extra


class Box(Struct, frozen=True):
    """A rectangle around a line of text, in points from the top left corner of the page as it is shown."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


class PageImage(Struct, frozen=True):
    """A page as a picture: its file, its size in pixels, and the size of the page in points, the unit of boxes."""

    data: bytes
    width: int
    height: int
    page_width: float
    page_height: float
    mime: str = "image/webp"


def boxes_of(
    source: str | Path | bytes, document: Document, spans: Sequence[Span]
) -> list[tuple[Box, ...]]:
    """Return the boxes of spans of a document, one for each line of text. A span has no box if the file is not a PDF or has another text."""
    pages = [(int(number), start) for number, start in document.pages]
    starts = [start for _, start in pages]
    ends = [*starts[1:], len(document.text)]
    # index of a page → the spans on it: which one, and its place in the page
    asked: dict[int, list[tuple[int, int, int]]] = {}
    for n, span in enumerate(spans):
        first = max(bisect_right(starts, span.start) - 1, 0)
        for at in range(first, bisect_left(starts, span.end)):
            place = max(span.start - starts[at], 0), min(span.end, ends[at]) - starts[at]
            asked.setdefault(at, []).append((n, *place))
    texts = {at: document.text[starts[at] : ends[at]] for at in asked}
    request = [
        (pages[at][0], texts[at], [(start, end) for _, start, end in places])
        for at, places in asked.items()
    ]
    boxes: list[list[Box]] = [[] for _ in spans]
    unknown: set[int] = set()
    for (at, places), lines in zip(asked.items(), _made("boxes", source, request), strict=False):
        for (n, start, end), of_span in zip(places, lines, strict=True):
            boxes[n] += [Box(pages[at][0], *line) for line in of_span]
            if not of_span and not texts[at][start:end].isspace():
                unknown.add(n)
    return [
        () if n in unknown else tuple(sorted(lines, key=lambda line: line.page))
        for n, lines in enumerate(boxes)
    ]


def page_images(source: str | Path | bytes, pages: Iterable[int]) -> dict[int, PageImage]:
    """Render pages of a PDF as pictures of at most 150 kB, by number from 1; pages that cannot be drawn are left out."""
    require_extra("pictures", "a picture of a page", "PIL")
    made = _made("images", source, sorted(set(pages)))
    return {number: PageImage(base64.b64decode(image), *sizes) for number, image, *sizes in made}


def _made(function: str, source: str | Path | bytes, pages: Sequence[Any]) -> list[Any]:
    """Call a function of the PDF reader for pages; return [] if the file is not a PDF."""
    name = "the PDF" if isinstance(source, bytes) else str(source)
    data = source if isinstance(source, bytes) else read_bytes(name, name)
    if not pages or not data.lstrip().startswith(pdf.BEGINS):
        return []
    made: list[Any] = json.loads(read_as("pdf", data, name, function, pages=pages))
    return made
