"""Read pictures of text with the program Tesseract, with a box for each word; results are kept in the cache."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from pearl.documents.digest import digest, sealed, unsealed
from pearl.documents.readers import OPTIONS
from pearl.errors import DataError
from pearl.plugins.extras import install_hint
from pearl.plugins.files import content_cache
from pearl.plugins.persistence import write_private

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdfium2 import PdfDocument

_POINTS = 72  # per inch
_PER_INCH = 300  # pixels, the least that Tesseract's manual advises
_MAX_PIXELS = 30_000_000  # of a page that is rendered: A3 has 17
_PAGE_S = 120  # seconds
_AT_ONCE = 4  # pages


class OcrPage(NamedTuple):
    """The text of a picture: its lines, with a blank line between paragraphs, and the mean confidence of its words."""

    text: str
    confidence: float  # 0 to 1
    words: Sequence[Sequence[float]]
    """For each word, start and end in the text, and left, top, right, bottom in points, in pixels for a picture."""


def check_ocr(path: str) -> None:
    """Check that OCR is installed, in the language of the options."""
    try:
        import pytesseract  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise DataError(
            "text in pictures is read by pytesseract, which is not installed", path=path,
            help=f"{install_hint('ocr')}, and apt-get install tesseract-ocr",
        ) from None  # fmt: skip
    wanted = OPTIONS.get().ocr_language
    try:
        languages = pytesseract.get_languages()
    except (pytesseract.TesseractNotFoundError, OSError):
        raise DataError(
            "text in pictures is read by the program Tesseract, which is not installed", path=path,
            help="apt-get install tesseract-ocr, or brew install tesseract",
        ) from None  # fmt: skip
    for language in wanted.split("+"):
        if language not in languages:
            package = f"apt-get install tesseract-ocr-{language}; " * language.isalpha()
            raise DataError(
                f"Tesseract has no language '{language}'", path=path,
                help=f"{package}--ocr-language takes {', '.join(languages)}, or several with + between them",
            )  # fmt: skip


def read_pages(document: PdfDocument, numbers: Iterable[int], path: str) -> Iterator[OcrPage]:
    """The text of pages of a PDF, numbered from 0."""

    def rendered() -> Iterator[tuple[Image, float]]:
        for number in numbers:
            with closing(document[number]) as page:
                width, height = page.get_size()
                most = (_MAX_PIXELS / max(1.0, width * height)) ** 0.5
                scale = min(_PER_INCH / _POINTS, most)
                yield page.render(scale=scale, grayscale=True).to_pil(), scale

    return read_pictures(rendered(), path)


def read_pictures(pictures: Iterable[tuple[Image, float]], path: str) -> Iterator[OcrPage]:
    """The text of pictures, each with its pixels per point."""
    check_ocr(path)
    os.environ["OMP_THREAD_LIMIT"] = "1"  # of Tesseract, which is slower with more
    # A few at a time, so that few are in memory; one thread renders them with PDFium.
    waiting, n = iter(pictures), min(_AT_ONCE, os.cpu_count() or 1)
    language = OPTIONS.get().ocr_language  # threads have other contexts
    with ThreadPoolExecutor(n) as pool:
        while batch := list(islice(waiting, n)):
            read = pool.map(lambda given: _page(given[0], language, path), batch)
            for (text, confidence, words), (_, scale) in zip(read, batch, strict=True):
                placed = [(*word[:2], *(side / scale for side in word[2:])) for word in words]
                yield OcrPage(text, confidence, placed)


def _page(picture: Image, language: str, path: str) -> OcrPage:
    """Read the text of a picture, from the cache if it has it."""
    key = digest([picture.tobytes(), repr((picture.mode, picture.size)), language, "page"]).hex()
    folder = content_cache("ocr")
    with suppress(OSError, ValueError, TypeError):
        if folder is not None:
            kept = unsealed(key.encode(), (folder / f"{key}.json").read_bytes())
            return OcrPage(*json.loads(kept or b""))
    import pytesseract

    try:
        data = pytesseract.image_to_data(
            picture, language, f"--dpi {_PER_INCH}",
            output_type=pytesseract.Output.DICT, timeout=_PAGE_S,
        )  # fmt: skip
    except pytesseract.TesseractError as error:
        raise DataError(
            f"Tesseract failed: {str(error.message).strip().splitlines()[-1][:200]}", path=path,
            help="check it with 'tesseract --list-langs', or leave the page out",
        ) from None  # fmt: skip
    except RuntimeError:
        raise DataError(
            f"OCR of a page exceeds the limit of {_PAGE_S} s", path=path,
            help="scan it again with fewer dots per inch, or leave the page out",
        ) from None  # fmt: skip
    # The last three are `line`: words of one line are joined by a blank, lines of one paragraph by a line break.
    names = ("text", "conf", "left", "top", "width", "height", "block_num", "par_num", "line_num")
    text, words, total, before = "", list[tuple[float, ...]](), 0.0, [0]
    for word, confidence, left, top, width, height, *line in zip(
        *(data[name] for name in names), strict=True
    ):
        if word := word.strip():
            text += (
                " " if line == before else "\n" if line[:2] == before[:2] else "\n\n" * bool(text)
            )
            words.append((len(text), len(text) + len(word), left, top, left + width, top + height))
            text += word
            total, before = total + float(confidence) / 100, line
    page = OcrPage(text, round(total / max(len(words), 1), 2), words)
    with suppress(OSError):
        if folder is not None:
            write_private(folder / f"{key}.json", sealed(key.encode(), json.dumps(page).encode()))
    return page
