"""PDF files: the text layer → text; a blank line and a form feed end each page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from pearl.documents.document import check_size
from pearl.errors import DataError

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

SUFFIXES = (".pdf",)

_HYPHEN = "\x02"  # pdfium's replacement for a line-end hyphen and its line break


def recognises(data: bytes) -> bool:
    """Whether the bytes begin as a PDF does."""
    return data.lstrip().startswith(b"%PDF-")


def read(data: bytes, path: str) -> str:
    """The text layer of a PDF."""
    from pypdfium2 import PdfDocument, PdfiumError, raw

    try:
        with PdfDocument(data) as document:
            text = _joined(_texts(document, path))
    except PdfiumError as error:
        if error.err_code in {raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY}:
            raise DataError(
                "the PDF is encrypted", path=path, help="save it without its password"
            ) from error
        raise DataError(
            "the file is damaged or not a PDF", path=path, help="download or export it again"
        ) from error
    if not text:
        raise DataError(
            "the PDF has no text layer, its pages are pictures",
            path=path,
            help="run text recognition over it (ocrmypdf IN.pdf OUT.pdf) and read the result",
        )
    return text


def _texts(document: PdfDocument, path: str) -> Iterator[str]:
    """The text of each page."""
    n_characters = 0
    for page in document:
        # Closed explicitly: the garbage collector would let a thousand open pages accumulate.
        with closing(page), closing(page.get_textpage()) as layer:
            text = layer.get_text_bounded().replace(_HYPHEN, "-\n").strip()
        yield text
        # Pages may share content: the text of a small file can have any length.
        n_characters += len(text)
        check_size(n_characters, "text is longer", path, "split it")


def _joined(pages: Iterable[str]) -> str:
    """The pages as one text, with a blank line between them and a form feed at the end of each."""
    pieces: list[str] = []
    n_ended = 0
    for text in pages:
        if text:
            feeds = "\f" * n_ended
            pieces += [feeds.rjust(2, "\n") if pieces else feeds, text]
            n_ended = 0
        n_ended += 1
    return "".join(pieces)
