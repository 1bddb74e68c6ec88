"""Cited pages of PDF files → pictures with the boxes of the passages on them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pearl.documents.document import Document, part_spans
from pearl.documents.pages import Box, PageImage, boxes_of, page_images
from pearl.errors import DataError, Span
from pearl.view.panel import Mark

MAX_SHEETS = 20  # Maximum pages that are shown as pictures


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page as a picture, with the boxes of its evidence by number, and the numbers that begin on it."""

    page: int
    image: PageImage
    boxes: Mapping[int, Sequence[Box]]
    begins: frozenset[int]

    @property
    def address(self) -> str:
        """The picture as a `data:` address."""
        return f"data:{self.image.mime};base64,{base64.b64encode(self.image.data).decode()}"


def sheets_of(
    document: Document | None,
    files: Mapping[str, Path],
    marks: Sequence[Mark],
    problems: list[str],
    most: int = MAX_SHEETS,
) -> dict[str, list[Sheet]]:
    """The pages with evidence of each PDF file, by its name in the document."""
    sheets: dict[str, list[Sheet]] = {}
    if document is None or not files:
        return sheets
    n_left = most
    n_omitted = 0
    one = [(document.name, Span(0, len(document.text)))]
    for name, whole in part_spans(document.text, document.parts) or one:
        own = [mark for mark in marks if whole.start <= mark.span.start < whole.end]
        if name not in files or not own or not document.pages:
            continue
        places = [(mark.number, span) for mark in own for span in mark.cells or (mark.span,)]
        try:
            found = boxes_of(files[name], document, [span for _, span in places])
            by_page: dict[int, dict[int, list[Box]]] = {}
            for (number, _), boxes in zip(places, found, strict=True):
                for box in boxes:
                    by_page.setdefault(box.page, {}).setdefault(number, []).append(box)
            chosen = sorted(by_page)[:n_left]
            images = page_images(files[name], chosen) if chosen else {}
        except DataError as error:
            problems.append(f"Its pages cannot be shown: {error.message.splitlines()[0]}.")
            continue
        n_left -= len(images)
        n_omitted += len(by_page) - len(chosen)
        first = {number: page for page in sorted(images, reverse=True) for number in by_page[page]}
        sheets[name] = [
            Sheet(page, image, by_page[page], frozenset(n for n in first if first[n] == page))
            for page, image in sorted(images.items())
        ]
    if n_omitted:
        problems.append(f"Cited pages beyond the first {most:,} are not shown as pictures.")
    return sheets
