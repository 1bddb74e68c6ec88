"""EPUB books: the text of their chapters, in the order of the book."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pearl.documents.document import check_archive, check_size
from pearl.documents.office import parse_xml
from pearl.documents.readers import ReaderText, html, not_read
from pearl.errors import DataError

if TYPE_CHECKING:
    from zipfile import ZipFile

SUFFIXES = (".epub",)
BEGINS = (b"PK",)

_CONTAINER, _ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html"})


def recognises(data: bytes) -> bool:
    """Whether the bytes are an archive that says it is a book."""
    return data.startswith(b"PK") and b"mimetypeapplication/epub+zip" in data[:200]


def read(data: bytes, path: str) -> ReaderText:
    """The text of a book."""
    from zipfile import ZipFile

    with ZipFile(BytesIO(data)) as archive:
        check_archive(archive, path)
        found = list(_chapters(archive, path))
    chapters, n_pictures = [each for each in found if each is not None], found.count(None)
    notes = dict.fromkeys(
        f"chapter {n}: {note}" for n, each in enumerate(chapters, 1) for note in each.notes
    )
    return ReaderText(
        "\n\n".join(filter(None, map(str.strip, chapters))),
        notes=[*notes, *not_read({"chapter": n_pictures})],
    )


def _chapters(archive: ZipFile, path: str) -> Iterator[ReaderText | None]:
    """The chapters in the order of the book, None for one that is a picture."""
    place = parse_xml(archive.read(_CONTAINER)).xpath(
        "string(//*[local-name()='rootfile']/@full-path)"
    )
    package = parse_xml(archive.read(str(place)))
    names, kinds = dict[str, str](), dict[str, str]()
    for item in package.xpath("//*[local-name()='manifest']/*[local-name()='item']"):
        href = unquote(item.get("href", ""))
        names[item.get("id")] = posixpath.normpath(
            posixpath.join(posixpath.dirname(str(place)), href)
        )
        kinds[item.get("id")] = item.get("media-type", "")
    locked = archive.read(_ENCRYPTION).decode() if _ENCRYPTION in archive.namelist() else ""
    n_characters = 0
    for item in package.xpath("//*[local-name()='spine']/*[local-name()='itemref']/@idref"):
        if kinds[item] not in _CHAPTERS:
            yield None
            continue
        if names[item] in unquote(locked):
            raise DataError("the book is encrypted", path=path, help="export it without copy protection")  # fmt: skip
        text = html.read(archive.read(names[item]), path)
        n_characters += len(text)  # the book may name a chapter many times
        check_size(n_characters, "text is longer", path, "split it")
        yield text
