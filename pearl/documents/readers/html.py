"""HTML → its text as a browser lays it out, without markup, scripts and styles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pearl.documents.readers.text import decode
from pearl.errors import DataError

if TYPE_CHECKING:
    from inscriptis.model.html_element import HtmlElement as InscriptisElement
    from lxml.html import HtmlElement

__all__ = ["SUFFIXES", "read", "recognises"]

SUFFIXES = (".html", ".htm", ".xhtml")

_BEGINNING = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html)\b", re.I
)
_DECLARED_ENCODING = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I)
_DECLARATION_BYTES = 1024
"""Bytes within which a page must declare its encoding (HTML Living Standard, 13.2.3.2)."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
_XML_DECLARATION = re.compile(r"<\?xml [^>]+?\?>")
_LONG_NUMBER = re.compile(r"[0-9]{4,}")

_MAX_LENGTH = 40
"""Maximum indent in characters, and margin in lines, of a `style`."""


def recognises(data: bytes) -> bool:
    """Whether the bytes begin as a web page does.

    Example:
        >>> recognises(b"<!DOCTYPE html><p>Text</p>")
        True
    """
    return _BEGINNING.match(data) is not None


def read(data: bytes, path: str) -> str:
    r"""The text of a page.

    Raises:
        DataError: The page is not text, or nested too deeply.
        MemoryError: It takes more memory than this process may have.

    Example:
        >>> read(b"<h1>One</h1><p>two <b>three</b>", "page.html")
        'One\n\ntwo three'
    """
    from inscriptis.html_engine import Inscriptis
    from inscriptis.model.config import ParserConfig

    declared = _DECLARED_ENCODING.search(data, 0, _DECLARATION_BYTES)
    page = decode(data, path, declared=declared[1].decode() if declared else None)
    # The parser stops at a NUL and would silently drop the rest.
    tree = _tree(_CONTROLS.sub(" ", page).strip(), path)
    config = ParserConfig(table_cell_separator="\t")
    attributes = config.attribute_handler
    attributes.attribute_mapping = {**attributes.attribute_mapping, "style": _apply_style}
    text: str = "" if tree is None else Inscriptis(tree, config).get_text()
    # Cells are padded to the column width, even in the last column.
    return re.sub(r" +$| +(?=\t)", "", text, flags=re.MULTILINE).strip("\n")


def _tree(page: str, path: str) -> HtmlElement | None:
    """The page as a tree, or None if it is blank. A partly parsed page is an error."""
    from lxml.etree import LxmlError, ParserError
    from lxml.html import HTMLParser, document_fromstring

    page = _XML_DECLARATION.sub("", page, count=1)  # the declared encoding no longer applies
    if not page:
        return None
    parser = HTMLParser(huge_tree=True)  # else a nesting depth of 256 ends the page
    try:
        tree = document_fromstring(page, parser=parser)
    except ParserError:  # nothing but comments
        return None
    except LxmlError:
        tree = None
    # libxml2 repairs most errors; after a fatal one it stops and returns a partial tree.
    fatal = next((entry for entry in parser.error_log if entry.level_name == "FATAL"), None)
    if fatal is not None and fatal.type_name == "ERR_NO_MEMORY":
        raise MemoryError
    if fatal is not None or tree is None:
        reason = fatal.message.partition(",")[0].strip() if fatal else "no reason given"
        raise DataError(
            f"the page cannot be read to its end: {reason}",
            path=path,
            help="simplify it, or convert it to plain text",
        )
    return tree


def _apply_style(style: str, element: InscriptisElement) -> None:
    """Apply a `style` with bounded lengths, because every line is indented by that many blanks."""
    from inscriptis.model.css import CssParse

    # Guards against a length of 400 digits.
    CssParse.attr_style(_LONG_NUMBER.sub("999", style), element)
    for name in ("padding_inline", "margin_before", "margin_after"):
        length = getattr(element, name)
        setattr(element, name, max(-_MAX_LENGTH, min(length, _MAX_LENGTH)))
