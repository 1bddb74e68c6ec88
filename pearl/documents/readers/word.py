"""Word files → text: paragraphs and tables in document order.

Blocks are separated by a blank line; a row of a table is one line, its cells separated by tabs.
Insertions of tracked changes, links, content controls and text boxes count as text; deletions,
headers, footers, notes and comments do not.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING
from zipfile import ZipFile

from pearl.documents.document import check_archive
from pearl.errors import DataError

if TYPE_CHECKING:
    from docx.oxml.xmlchemy import BaseOxmlElement

SUFFIXES = (".docx",)

_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "\xad"}
_SKIPPED = frozenset({"pPr", "rPr", "del", "moveFrom", "rt", "Fallback"})
"""Skipped elements: properties, deleted text, ruby annotations, and the fallback copy of a text
box."""

_NO_MEMORY = 2  # XML_ERR_NO_MEMORY of libxml2


def recognises(data: bytes) -> bool:
    """Whether the bytes are an archive with the main part of a Word file in it.

    Part names are never compressed, so this also recognises truncated files.
    """
    return data.startswith(b"PK") and b"word/document.xml" in data


def read(data: bytes, path: str) -> str:
    """The text of a Word file."""
    import docx

    try:
        with ZipFile(BytesIO(data)) as archive:
            check_archive(archive, path)
        root = docx.Document(BytesIO(data)).element
    except SyntaxError as error:  # of lxml
        if getattr(error, "code", None) == _NO_MEMORY:
            raise MemoryError from error
        raise
    if root.getroottree().docinfo.internalDTD is not None:
        # ISO/IEC 29500-2 forbids them, and entities would be missing from the text.
        raise DataError(
            "the file declares XML entities, which no Word file may", path=path, help="save it again as .docx"
        )  # fmt: skip
    return _text(root).strip()


def _text(element: BaseOxmlElement) -> str:
    """The text of an element at any nesting depth.

    python-docx's `paragraph.text` omits insertions, content controls and text boxes.
    """
    kind = element.tag.rpartition("}")[2]
    if kind in _SKIPPED:
        return ""
    if kind == "t":
        return element.text or ""
    inner = _CHARACTERS.get(kind) or "".join(map(_text, element.iterchildren("*")))
    match kind:
        case "p":
            return f"{inner}\n\n" if inner.strip() else ""
        case "tc":
            return " ".join(filter(None, map(str.strip, inner.split("\n")))) + "\t"
        case "tr":
            return inner.removesuffix("\t") + "\n"
        case "tbl":
            return inner + "\n"
        case _:
            return inner
