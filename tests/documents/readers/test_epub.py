"""EPUB books."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence

import pytest

from pearl.documents.document import from_bytes
from pearl.errors import DataError

CONTAINER = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'


def make_book(chapters: dict[str, str | None], order: Sequence[int], **others: bytes) -> bytes:
    """A book; a chapter without a text is not in the file."""
    items = "".join(
        f'<item id="c{i}" href="{name}" media-type="{"image/svg" if name.endswith(".svg") else "application/xhtml"}+xml"/>'
        for i, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{i}"/>' for i in order)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr("META-INF/container.xml", CONTAINER)
        package = f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'
        book.writestr("OEBPS/book.opf", package)
        for name, text in chapters.items():
            if text is not None:
                book.writestr(f"OEBPS/{name.replace('%20', ' ')}", text)
        for name, data in others.items():
            book.writestr(name, data)
    return file.getvalue()


CHAPTERS: dict[str, str | None] = {
    "part%20b.xhtml": "<html><body><h1>Two</h1><p>Second.</p></body></html>",
    "one.xhtml": "<?xml version='1.0'?><html><body><h1>One</h1><p>F&#252;rst.</p></body></html>",
    "unused.xhtml": "<p>not in the book",
}


@pytest.mark.parametrize("name", ["a.epub", "a.zip"])
def test_chapters_are_read_in_the_order_of_the_book(name: str) -> None:
    text = from_bytes(make_book(CHAPTERS, [1, 0]), name).text
    assert text.split() == ["One", "Fürst.", "Two", "Second."]


def test_what_chapters_leave_out_is_named() -> None:
    data = make_book({"a": "<p>x<sup>2</sup> <s>no</s>", "b.svg": "<svg/>", "c": "<p>y"}, [0, 1, 2])
    document = from_bytes(data, "a.epub")
    assert document.text == "x²\n\ny"
    assert document.notes == ("chapter 1: not read: 1 struck text", "not read: 1 chapter")


LOCK = b"<enc><CipherReference URI='OEBPS/one.xhtml'/></enc>"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (make_book(CHAPTERS, [0])[:400], "damaged or not what"),
        (make_book({"../../../etc/passwd": None}, [0]), "no item named '../../etc/passwd' in the archive"),
        (make_book({"a": "<p>" + "x " * 500_000}, [0] * 100), "text is longer than the limit of 64 MB"),
        (make_book(CHAPTERS, [0], pad=bytes(65_000_000)), "unpacks to more than the limit of 64 MB"),
        (make_book(CHAPTERS, [1], **{"META-INF/encryption.xml": LOCK}), "the book is encrypted"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(data: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        from_bytes(data, "a.epub")
