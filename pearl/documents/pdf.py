"""PDF files: text, with a blank line and a form feed after each page; boxes of passages and images for `pages`."""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from pearl.documents import pdf_tables
from pearl.documents.document import check_size, page_ranges
from pearl.documents.ocr import OcrPage, read_pages
from pearl.documents.pdf_tables import has_rules, places
from pearl.documents.pdf_text import (
    BLANKS,
    HIDDEN,
    PageText,
    hidden_characters,
    hidden_layers,
    page_text,
    read_annotations,
)
from pearl.documents.readers import OPTIONS, ReaderText, not_read
from pearl.errors import DataError
from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage, PdfTextPage

MAX_IMAGE_BYTES = 150_000  # of a page, because a result page contains all of its pictures
MAX_PIXELS, MAX_SCALE = 1_800, 1.6
"""Maximum pixels of the longer side of an image, and per point of the page."""

# The first format is sharp, and small for text; the others are for photographs.
_ENCODINGS: tuple[dict[str, int], ...] = (
    {"lossless": True, "quality": 50, "method": 2},
    {"quality": 75, "method": 2},
    {"quality": 50, "method": 2},
)

# Characters that are rare in texts: controls, private use, the replacement character.
_STRANGE = lazy_pattern("[\0\1\3-\10\13\14\16-\37\ue000-\uf8ff\ufffd\U000f0000-\U0010fffd]")
_FEW, _MOST, _SAMPLE = 0.03, 0.5, 200

_MAXBLANKS = 3  # between two words of a line


def read(data: bytes, path: str) -> str:
    """The text of a PDF: its text layer, with ruled tables in Markdown; pictures of text by OCR."""
    from pypdfium2 import raw

    with _opened(data, path) as document:
        found = list(_texts(document, path))
        texts = [page.text for page in found]
        unreadable = [n for n, page in enumerate(found, start=1) if page.is_unreadable]
        if unreadable and len(unreadable) == sum(map(bool, texts)):
            raise DataError(
                "the text cannot be read: its fonts do not tell which characters they show",
                path=path,
                help="try --ocr force, which reads the pages as pictures",
            )
        ruled = [n for n, page in enumerate(found) if page.has_rules]
        continued = _put_tables(texts, ruled, data, document)
        pictures = [n for n, page in enumerate(found) if page.is_picture]
        ocr, notes = _put_ocr(texts, pictures, document, path) if pictures else ({}, [])
        text = _joined(texts, continued)
        unread = sum((page.left_out for page in found), Counter[str]())
        unread["hidden layer"] += len({name for page in found for name in page.layers})
        unread["XFA form"] += document.get_formtype() == raw.FORMTYPE_XFA_FULL
        unread["attached file"] += max(raw.FPDFDoc_GetAttachmentCount(document), 0)
    if unreadable:
        notes.append(
            f"{page_ranges(unreadable)}: fonts without characters, the text cannot be read; try --ocr force"
        )
    notes += not_read(unread)
    return ReaderText(text, ocr, notes)


@contextmanager
def _opened(data: bytes, path: str) -> Iterator[PdfDocument]:
    from pypdfium2 import PdfDocument, PdfiumError, raw

    try:
        with PdfDocument(data) as document:
            if document.get_formtype() != raw.FORMTYPE_NONE:
                document.init_forms()  # what is filled in is read, and drawn
            is_all = OPTIONS.get().hidden
            token = HIDDEN.set(frozenset() if is_all else hidden_layers(document, data))
            try:
                yield document
            finally:
                HIDDEN.reset(token)
    except PdfiumError as error:
        if error.err_code in {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}:
            raise DataError(
                "the PDF is encrypted", path=path, help="save it without its password"
            ) from error
        raise DataError(
            "the file has no pages, is damaged or not a PDF",
            path=path,
            help="download or export it again",
        ) from error


class _Page(NamedTuple):
    text: str
    has_rules: bool
    is_picture: bool  # to be read by OCR
    is_unreadable: bool
    left_out: Counter[str]
    layers: frozenset[bytes]  # hidden ones


def _texts(document: PdfDocument, path: str) -> Iterator[_Page]:
    """The text layer of each page."""
    from pypdfium2 import raw

    n_characters = 0
    is_forced = OPTIONS.get().ocr == "force"
    with_tables = OPTIONS.get().pdf_tables == "auto" and find_spec("pdfplumber") is not None
    for page in document:
        # Closed explicitly: the garbage collector would let a thousand open pages accumulate.
        with closing(page), closing(page.get_textpage()) as layer:
            text = page_text(layer).text
            has_tables = with_tables and not is_forced and bool(text) and has_rules(page)
            is_picture = (not text or is_forced) and raw.FPDFPage_CountObjects(page) > 0
            is_unreadable = not is_forced and _is_unreadable(layer, text)
            unread = read_annotations(page)[1]
            layers = frozenset(hidden_characters(layer).values())
        yield _Page(text, has_tables, is_picture, is_unreadable, unread, layers)
        # Pages may share content: the text of a small file can have any length.
        n_characters += len(text)
        check_size(n_characters, "text is longer", path, "split it")


def _put_tables(
    texts: list[str], numbers: Sequence[int], data: bytes, document: PdfDocument
) -> set[int]:
    """Put ruled tables into the texts of pages; return the pages that continue a table of the page before."""
    pages: list[list[pdf_tables.Block]] = [[] for _ in texts]
    for number, grids in pdf_tables.find_grids(data, numbers):
        with closing(document[number]) as page, closing(page.get_textpage()) as layer:
            pages[number] = pdf_tables.page_blocks(page_text(layer), layer, grids)
    found = places(pages)
    for number, (blocks, place) in enumerate(zip(pages, found, strict=True)):
        if any(block.grid for block in blocks):
            texts[number] = pdf_tables.rendered(blocks, place)[0]
    return {number for number, place in enumerate(found) if place.is_continued}


def _put_ocr(
    texts: list[str], numbers: Sequence[int], document: PdfDocument, path: str
) -> tuple[dict[int, float], list[str]]:
    """Read pages by OCR unless it is off; return the confidence by page from 1, and notes."""
    how = OPTIONS.get().ocr
    confidences: dict[int, float] = {}
    reason = "no text layer; --ocr auto reads it" if how == "off" else "OCR recognises no text"
    pages = read_pages(document, numbers, path) if how != "off" else ()
    try:
        for number, page in zip(numbers, pages, strict=False):
            texts[number] = page.text
            if page.text:
                confidences[number + 1] = page.confidence
    except DataError as error:
        if how == "force" or not any(texts):
            raise
        reason = f"no text layer, and {error.message.removeprefix(f'{path}: ')}; {error.help}"
    if not any(texts):
        help = "check that they are upright and sharp, and their language (--ocr-language)"
        raise DataError(
            f"the pages of the PDF are pictures: {reason.partition(';')[0]}",
            path=path,
            help="--ocr auto reads them" if how == "off" else help,
        )
    unread = [number + 1 for number in numbers if not texts[number]]
    return confidences, [f"{page_ranges(unread)}: {reason}"] if unread else []


def _is_unreadable(layer: PdfTextPage, text: str) -> bool:
    """Whether fonts lack the mapping to characters, so that PDFium returns wrong ones."""
    from pypdfium2 import raw

    share = len(_STRANGE.findall(text)) / max(len(text), 1)
    if share < _FEW:
        return False
    n = layer.count_chars()
    sample = range(0, n, max(n // _SAMPLE, 1))
    n_unknown = sum(raw.FPDFText_HasUnicodeMapError(layer, i) == 1 for i in sample)
    return bool(max(share, n_unknown / len(sample)) > _MOST)


def _joined(pages: Iterable[str], continued: Collection[int]) -> str:
    """Join pages; a form feed ends each, after a blank line unless a table continues."""
    pieces: list[str] = []
    n_ended = 0
    for number, text in enumerate(pages):
        if text:
            feeds = "\f" * n_ended
            pieces += [feeds.rjust(2, "\n") if pieces and number not in continued else feeds, text]
            n_ended = 0
        n_ended += 1
    return "".join(pieces)


# ---------------------------------------------------------------------------------------------
# Places of the text on the page


class _Rectangle(NamedTuple):
    """Left, bottom, right, top on the page; or left, top, right, bottom on the page as it is shown."""

    x0: float
    y0: float
    x1: float
    y1: float


def boxes(data: bytes, path: str, pages: Sequence[tuple[int, str, list[tuple[int, int]]]]) -> str:
    """Return the boxes of spans of pages (number, text, spans) as JSON: for each page and span, four numbers per line."""
    made: list[list[list[_Rectangle]]] = []
    with _opened(data, path) as document:
        for number, text, spans in pages:
            lines: list[list[_Rectangle]] = [[] for _ in spans]
            if 0 < number <= len(document) and text.strip():
                with closing(document[number - 1]) as page, closing(page.get_textpage()) as layer:
                    own = _text_like(text, data, number - 1, layer)
                    # The document's text has other blanks and no control characters.
                    if not own.text:
                        (read,) = read_pages(document, [number - 1], path)
                        lines = [_lines_by_ocr(read, text, *span) for span in spans]
                    elif _visible(own.text) == _visible(text):
                        pairs = zip(own.indices, own.text, strict=True)
                        known = (i for i, c in pairs if c not in BLANKS)
                        places = [-1 if c in BLANKS else next(known) for c in text]
                        alike = PageText(text, places, own.boxes)
                        lines = [_lines(layer, alike, *span) for span in spans]
            made.append(lines)
    return json.dumps(made)


def _visible(text: str) -> str:
    return "".join([character for character in text if character not in BLANKS])


def _text_like(text: str, data: bytes, number: int, layer: PdfTextPage) -> PageText:
    """Return the text of a page with its indices, with tables if the document has them; "" if OCR reads the page."""
    if OPTIONS.get().ocr == "force":
        return PageText("", [], [])
    own = page_text(layer)
    if OPTIONS.get().pdf_tables == "off" or _visible(own.text) == _visible(text):
        return own
    for _, grids in pdf_tables.find_grids(data, [number]):
        blocks = pdf_tables.page_blocks(own, layer, grids)
        # How tables run over page breaks depends on the pages around it.
        for place in product((False, True), repeat=3) if any(b.grid for b in blocks) else ():
            with_tables = pdf_tables.rendered(blocks, pdf_tables.Place(*place))
            if _visible(with_tables[0]) == _visible(text):
                return PageText(*with_tables, own.boxes)
    return own


def _lines_by_ocr(read: OcrPage, text: str, start: int, end: int) -> list[_Rectangle]:
    """The rectangles of the lines of a span of a page that was read by OCR."""
    made: list[_Rectangle] = []
    last = 0
    for begin, stop, *sides in read.words if read.text == text.rstrip() else ():
        if begin < end and start < stop:
            box = _Rectangle(*(round(side, 2) for side in sides))
            is_same_line = made and "\n" not in text[last : int(begin)]
            made.append(_around(made.pop(), box) if is_same_line else box)
            last = int(stop)
    return made


def _lines(layer: PdfTextPage, page: PageText, start: int, end: int) -> list[_Rectangle]:
    """The rectangles of the lines of a span."""
    from pypdfium2 import raw

    made: list[_Rectangle] = []
    for line in re.finditer(r"[^\n]+", page.text[start:end]):
        merged: list[_Rectangle] = []
        own = page.indices[start + line.start() : start + line.end()]
        for first, last in _runs(own):
            angle = raw.FPDFText_GetCharAngle(layer, first)
            along = int(abs(math.sin(angle)) > abs(math.cos(angle)))  # 1: up or down the page
            for i in range(layer.count_rects(first, last - first + 1)):
                box = _Rectangle(*layer.get_rect(i))
                if merged and _are_neighbours(merged[-1], box, along):
                    box = _around(merged.pop(), box)
                merged.append(box)
        fields = dict.fromkeys(index for index in own if index < -1)
        made += [*merged, *(_Rectangle(*page.box(layer, index)) for index in fields)]
    return [_visible_box(layer.page, box) for box in made]


def _runs(indices: Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last index of each run of consecutive characters; blanks do not end a run."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if index < 0:
            continue
        if runs and runs[-1][1] < index <= runs[-1][1] + _MAXBLANKS + 1:
            runs[-1] = runs[-1][0], index
        else:
            runs.append((index, index))
    return runs


def _are_neighbours(one: _Rectangle, other: _Rectangle, along: int) -> bool:
    """Whether two rectangles follow one another on a line."""
    gaps = [max(one[i], other[i]) - min(one[i + 2], other[i + 2]) for i in (0, 1)]
    size = min(box[3 - along] - box[1 - along] for box in (one, other))
    return -gaps[1 - along] > 0.5 * size and gaps[along] < size


def _around(one: _Rectangle, other: _Rectangle) -> _Rectangle:
    return _Rectangle(*map(min, one[:2], other[:2]), *map(max, one[2:], other[2:]))


def _visible_box(page: PdfPage, box: _Rectangle) -> _Rectangle:
    """A rectangle on the page as it is shown: cut by its crop box, and turned."""
    own_left, own_bottom, own_right, own_top = page.get_bbox()
    left, right = max(box[0], own_left) - own_left, min(box[2], own_right) - own_left
    bottom, top = max(box[1], own_bottom) - own_bottom, min(box[3], own_top) - own_bottom
    width, height = own_right - own_left, own_top - own_bottom
    sides = {
        0: (left, height - top, right, height - bottom),
        90: (bottom, left, top, right),
        180: (width - right, bottom, width - left, top),
        270: (height - top, width - right, height - bottom, width - left),
    }
    return _Rectangle(*(round(side, 2) for side in sides[page.get_rotation()]))


# ---------------------------------------------------------------------------------------------
# Images of pages


def images(data: bytes, path: str, pages: Sequence[int]) -> str:
    """Pages as pictures, as JSON: number, base64, width and height in pixels, and in points."""
    from pypdfium2 import PdfiumError

    made: list[tuple[object, ...]] = []
    with _opened(data, path) as document:
        for number in pages:
            try:
                with closing(document[number - 1]) as page:
                    made.append((number, *_image(page), *page.get_size()))
            except PdfiumError:
                continue  # the other pages are drawn
    return json.dumps(made)


def _image(page: PdfPage) -> tuple[str, int, int]:
    """A picture of a page within the limit, and its size."""
    scale = min(MAX_SCALE, MAX_PIXELS / max(page.get_size()))
    while True:
        bitmap = page.render(scale=scale)
        image = bitmap.to_pil()
        for encoding in _ENCODINGS:
            file = io.BytesIO()
            image.save(file, "WEBP", **encoding)
            if len(file.getvalue()) <= MAX_IMAGE_BYTES:
                return base64.b64encode(file.getvalue()).decode(), *image.size
        bitmap.close()
        scale *= 0.7
