"""PDF files."""

from __future__ import annotations

from collections.abc import Sequence

SUFFIXES = (".pdf",)
BEGINS = (b"%PDF-",)

HAS_PAGES = True


def read(data: bytes, path: str) -> str:
    """The text of a PDF: its text layer, with ruled tables in Markdown; pictures of text by OCR."""
    from pearl.documents import pdf

    return pdf.read(data, path)


def boxes(data: bytes, path: str, pages: Sequence[tuple[int, str, list[tuple[int, int]]]]) -> str:
    """Lines of passages on pages, for `pearl.documents.pages`."""
    from pearl.documents import pdf

    return pdf.boxes(data, path, pages)


def images(data: bytes, path: str, pages: Sequence[int]) -> str:
    """Pictures of pages, for `pearl.documents.pages`."""
    from pearl.documents import pdf

    return pdf.images(data, path, pages)
