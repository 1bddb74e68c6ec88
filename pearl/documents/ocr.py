"""Pictures of text → their words, by the program Tesseract, with a box and a confidence for each page.

The words of a picture are kept in the cache, because a page takes seconds. The picture itself is not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pearl.documents.digest import digest
from pearl.documents.readers import OPTIONS
from pearl.errors import DataError
from pearl.plugins.extras import install_hint
from pearl.plugins.files import cache_file

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdfium2 import PdfPage

_POINTS = 72  # per inch
_PER_INCH = 300  # pixels
_MAX_PIXELS = 30_000_000  # of a page that is rendered: A3 has 17
_PAGE_S = 120  # seconds
_AT_ONCE = 4  # pages


class OcrWord(NamedTuple):
    """A word: its place in the text of its page, and its box from the top left corner."""

    start: int
    end: int
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class OcrPage:
    """The text of a picture.

    Attributes:
        text: Its lines, with a blank line between paragraphs.
        confidence: The mean confidence of its words, 0 to 1.
        words: Its words, in points for a page of a PDF, in pixels for a picture.
    """

    text: str
    confidence: float
    words: tuple[OcrWord, ...]


def check_ocr(path: str) -> None:
    """Check that OCR is installed, in the language of the options.

    Raises:
        DataError: A package, the program or the language is missing.
    """
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


def read_pages(pages: Iterable[PdfPage], path: str) -> Iterator[OcrPage]:
    """The text of pages of a PDF."""
    for page, scale in _read_several(map(_rendered, pages), path):
        words = (OcrWord(w[0], w[1], *(side / scale for side in w[2:])) for w in page.words)
        yield OcrPage(page.text, page.confidence, tuple(words))


def read_pictures(pictures: Iterable[Image], path: str) -> Iterator[OcrPage]:
    """The text of pictures."""
    return (page for page, _ in _read_several(((each, 1.0) for each in pictures), path))


def _rendered(page: PdfPage) -> tuple[Image, float]:
    """The picture of a page, and its pixels per point."""
    width, height = page.get_size()
    scale = min(_PER_INCH / _POINTS, (_MAX_PIXELS / max(1.0, width * height)) ** 0.5)
    return page.render(scale=scale, grayscale=True).to_pil(), scale


def _read_several(
    pictures: Iterable[tuple[Image, float]], path: str
) -> Iterator[tuple[OcrPage, float]]:
    """Read some pictures at once: few are in memory, and PDFium makes them in one thread."""
    check_ocr(path)
    os.environ["OMP_THREAD_LIMIT"] = "1"  # of Tesseract, which is slower with more
    waiting, n = iter(pictures), min(_AT_ONCE, os.cpu_count() or 1)
    read = partial(
        _words, language=OPTIONS.get().ocr_language, path=path
    )  # threads have other contexts
    with ThreadPoolExecutor(n) as pool:
        while batch := list(islice(waiting, n)):
            words = pool.map(read, (picture for picture, _ in batch))
            for each, (_, scale) in zip(words, batch, strict=True):
                yield _page(each), scale


_Found = Sequence[Sequence[Any]]
"""Words: paragraph, line, text, confidence, left, top, right, bottom."""


def _words(picture: Image, language: str, path: str) -> _Found:
    key = digest([picture.tobytes(), repr((picture.mode, picture.size)), language]).hex()
    folder = cache_file("ocr")
    kept = None if folder is None else folder / f"{key}.json"
    if kept is not None:
        with suppress(OSError, ValueError):
            return json.loads(kept.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    words = list(_recognised(picture, language, path))
    if kept is not None:
        with suppress(OSError):
            _keep(kept, json.dumps(words, ensure_ascii=False))
    return words


def _keep(file: Path, text: str) -> None:
    """Write a file that other processes see whole or not at all."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def _recognised(picture: Image, language: str, path: str) -> Iterator[Sequence[Any]]:
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
    names = ("text", "conf", "left", "top", "width", "height", "block_num", "par_num", "line_num")
    for text, confidence, left, top, width, height, *place in zip(
        *(data[name] for name in names), strict=True
    ):
        if text.strip():
            box = (left, top, left + width, top + height)
            yield (place[:2], place[2], text.strip(), float(confidence) / 100, *box)


def _page(words: _Found) -> OcrPage:
    """The words as lines and paragraphs."""
    text, placed = "", list[OcrWord]()
    before: Sequence[Any] = ()
    for paragraph, line, word, _, *box in words:
        if before:
            is_same = paragraph == before[0]
            text += " " if is_same and line == before[1] else "\n" if is_same else "\n\n"
        placed.append(OcrWord(len(text), len(text) + len(word), *box))
        text += word
        before = (paragraph, line)
    mean = sum(word[3] for word in words) / len(words) if words else 0.0
    return OcrPage(text, round(mean, 2), tuple(placed))
