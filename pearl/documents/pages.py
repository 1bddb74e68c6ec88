"""Pages of PDF files: the boxes of passages on them, and their images.

Both are made in the child process that reads untrusted files. A box is given only where the text of the page
is the text of the document.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pearl.documents.document import Document, from_bytes, read_as, read_bytes
from pearl.documents.readers import pdf
from pearl.errors import DataError, Span

__all__ = ["Box", "PageImage", "boxes_of", "page_images", "with_boxes"]


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle around a line of text, in points from the top left corner of the page as it is shown."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float

    def to_dict(self) -> dict[str, Any]:
        """The box as JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page as a picture.

    Attributes:
        data: The bytes of the file.
        width: Its width in pixels.
        height: Its height in pixels.
        page_width: The width of the page in points, the unit of boxes.
        page_height: The height of the page in points.
        mime: The type of the file.
    """

    data: bytes
    width: int
    height: int
    page_width: float
    page_height: float
    mime: str = "image/webp"


def boxes_of(
    source: str | Path | bytes, document: Document, spans: Sequence[Span]
) -> list[tuple[Box, ...]]:
    """The boxes of spans of a document, one for each line of text.

    Args:
        source: The PDF file, or its bytes.
        document: What was read from this file.
        spans: Spans of its text.

    Returns:
        The boxes of each span; none if the file is not a PDF, or a page of the span has another text.

    Raises:
        DataError: The file is missing or cannot be read.
    """
    boxes: list[list[Box]] = [[] for _ in spans]
    asked: dict[int, list[tuple[int, int, int]]] = {}
    starts = [start for _, start in document.pages]
    ends = [*starts[1:], len(document.text)]
    for n, span in enumerate(spans):
        for at in range(max(bisect_right(starts, span.start) - 1, 0), len(starts)):
            if starts[at] >= span.end:
                break
            begin, end = max(span.start, starts[at]), min(span.end, ends[at])
            asked.setdefault(at, []).append((n, begin - starts[at], end - starts[at]))
    data = _pdf(source)
    if data is None or not asked:
        return [()] * len(spans)
    pages = [
        [
            int(document.pages[at][0]),
            document.text[starts[at] : ends[at]],
            [s[1:] for s in asked[at]],
        ]
        for at in sorted(asked)
    ]
    made = json.loads(read_as("pdf", data, _name(source), "boxes", pages=pages))
    unknown: set[int] = set()
    for at, of_page in zip(sorted(asked), made, strict=True):
        for (n, begin, end), lines in zip(asked[at], of_page, strict=True):
            boxes[n] += [Box(int(document.pages[at][0]), *line) for line in lines]
            if not lines and not document.text[starts[at] + begin : starts[at] + end].isspace():
                unknown.add(n)
    return [() if n in unknown else tuple(of_span) for n, of_span in enumerate(boxes)]


def page_images(source: str | Path | bytes, pages: Iterable[int]) -> dict[int, PageImage]:
    """Pages of a PDF file as pictures of at most 150 kB, by their numbers.

    Args:
        source: The file, or its bytes.
        pages: Numbers of pages, from 1.

    Returns:
        The pictures; pages that do not exist or cannot be drawn are left out, all if it is no PDF.

    Raises:
        DataError: The file is missing or cannot be read.
    """
    data = _pdf(source)
    if data is None:
        return {}
    made = json.loads(read_as("pdf", data, _name(source), "images", pages=sorted(set(pages))))
    return {number: PageImage(base64.b64decode(image), *sizes) for number, image, *sizes in made}


def with_boxes(row: Mapping[str, Any], named: Iterable[str] = ()) -> dict[str, Any]:
    """A row of results, its evidence with `boxes` where it is in a PDF, and notes on what has none.

    Args:
        row: The row as JSON data.
        named: The names of the documents; a folder among them may hold what the row names by its path within it.
    """
    boxed: dict[str, Any] = deepcopy(dict(row))
    notes: list[str] = []
    by_source: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for place, passage in _places(boxed):
        by_source.setdefault(passage["source"], []).append((place, passage))
    for source, places in by_source.items():
        paths = [Path(source), *(Path(folder, source) for folder in named)]
        path = next((path for path in paths if path.is_file()), paths[0])
        try:
            data = read_bytes(str(path), source)
            if not pdf.recognises(data):
                continue
            document = from_bytes(data, path)
            spans = [Span(place["start"], place["end"]) for place, _ in places]
            lines = boxes_of(data, document, spans)
        except DataError as error:
            notes.append(f"no boxes: {error.message}")
            continue
        for (place, passage), of_place in zip(places, lines, strict=True):
            if document.text[passage["start"] : passage["end"]] != passage["text"]:
                notes.append(f"no boxes: {source} has changed")
            elif of_place:
                place["boxes"] = [box.to_dict() for box in of_place]
            else:
                notes.append(
                    f"no boxes on page {place['page']} of {source}: places on it are unsure"
                )
    if notes:
        boxed["notes"] = [*boxed.get("notes", ()), *dict.fromkeys(notes)]
    return boxed


def _places(
    value: Any, passage: dict[str, Any] | None = None
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What has a page in JSON data, each with the passage or the row that it is part of."""
    if isinstance(value, dict):
        passage = value if "source" in value and "start" in value else passage
        if passage is not None and "page" in value:
            yield value, passage
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _places(inner, passage)


def _pdf(source: str | Path | bytes) -> bytes | None:
    """The bytes of a PDF; None for another file."""
    data = source if isinstance(source, bytes) else read_bytes(str(source), str(source))
    return data if pdf.recognises(data) else None


def _name(source: str | Path | bytes) -> str:
    return "the PDF" if isinstance(source, bytes) else str(source)
