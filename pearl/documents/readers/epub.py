"""EPUB books: the text of their chapters, in the order of the book."""

from __future__ import annotations

import posixpath
from io import BytesIO
from urllib.parse import unquote

from pearl.documents.document import check_archive, check_size
from pearl.documents.office import parse_xml
from pearl.documents.readers import ReaderText, html, not_read
from pearl.errors import DataError

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

    chapters = list[ReaderText]()
    n_pictures = n_characters = 0
    with ZipFile(BytesIO(data)) as archive:
        check_archive(archive, path)
        container = parse_xml(archive.read(_CONTAINER))
        place = str(container.xpath("string(//*[local-name()='rootfile']/@full-path)"))
        package, folder = parse_xml(archive.read(place)), posixpath.dirname(place)
        names, kinds = dict[str, str](), dict[str, str]()
        for item in package.xpath("//*[local-name()='manifest']/*[local-name()='item']"):
            name = posixpath.join(folder, unquote(item.get("href", "")))
            names[item.get("id")] = posixpath.normpath(name)
            kinds[item.get("id")] = item.get("media-type", "")
        locked = archive.read(_ENCRYPTION).decode() if _ENCRYPTION in archive.namelist() else ""
        # In the order of the book.
        for item in package.xpath("//*[local-name()='spine']/*[local-name()='itemref']/@idref"):
            if kinds[item] not in _CHAPTERS:
                n_pictures += 1
                continue
            if names[item] in unquote(locked):
                raise DataError("the book is encrypted", path=path, help="export it without copy protection")  # fmt: skip
            chapters.append(html.read(archive.read(names[item]), path))
            n_characters += len(chapters[-1])  # the book may name a chapter many times
            check_size(n_characters, "text is longer", path, "split it")
    notes = dict.fromkeys(
        f"chapter {n}: {note}" for n, each in enumerate(chapters, 1) for note in each.notes
    )
    return ReaderText(
        "\n\n".join(filter(None, map(str.strip, chapters))),
        notes=[*notes, *not_read({"chapter": n_pictures})],
    )
