"""Web pages: HTML → its text as a browser lays it out, without markup, scripts and styles."""

from __future__ import annotations

import re

from pearl.sources.text import decode

__all__ = ["SUFFIXES", "read", "recognises"]

SUFFIXES = (".html", ".htm", ".xhtml")

_BEGINNING = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html)\b", re.I
)
_DECLARED_ENCODING = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.I)
_DECLARATION_BYTES = 1024
"""Where a page has to declare its encoding (HTML Living Standard, 13.2.3.2)."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")


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
        DataError: The page is not text.

    Example:
        >>> read(b"<h1>One</h1><p>two <b>three</b>", "page.html")
        'One\n\ntwo three'
    """
    from inscriptis import get_text

    declared = _DECLARED_ENCODING.search(data, 0, _DECLARATION_BYTES)
    page = decode(data, path, declared=declared[1].decode() if declared else None)
    # The parser stops at a NUL: what follows would be lost without a word.
    text: str = get_text(_CONTROLS.sub(" ", page))
    # Cells are padded to the width of their table, the last ones too.
    return re.sub(r" +$", "", text, flags=re.MULTILINE).strip("\n")
