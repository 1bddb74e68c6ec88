"""Hidden layers of a PDF: what no reader shows unless its user turns the layer on."""

from __future__ import annotations

import io
import re
from contextvars import ContextVar
from ctypes import addressof, byref, c_ubyte, c_ulong
from typing import TYPE_CHECKING

from pearl.errors.patterns import lazy_pattern

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfTextPage

HIDDEN: ContextVar[frozenset[bytes]] = ContextVar("HIDDEN", default=frozenset())
"""The names of the hidden layers of the PDF that is read."""

_PROPERTIES = lazy_pattern(rb"/OCProperties(?:<<| (\d+) 0 R)")
_DEFAULT = lazy_pattern(rb"/D(?:<<| (\d+) 0 R)")
_OBJECT = lazy_pattern(rb"\s(\d+) 0 obj\s")
_LIST = r"/%s\[([^\]]*)\]"
_REFERENCE = lazy_pattern(rb"(\d+) 0 R")
_NAME = lazy_pattern(rb"/Name(?:\(((?:\\.|[^\\)])*)\)|<([0-9A-Fa-f]*)>)", re.DOTALL)
_ESCAPED = lazy_pattern(rb"\\(.)", re.DOTALL)


def hidden_layers(document: PdfDocument, data: bytes) -> frozenset[bytes]:
    """The names of the layers that are hidden when the file is opened."""
    if b"/OCProperties" not in data and b"/ObjStm" not in data:  # which may have it, compressed
        return frozenset()
    from pypdfium2 import PdfiumError

    copy = io.BytesIO()
    try:
        document.save(copy)  # PDFium tells no layers, and writes every object but streams as it is
    except PdfiumError:
        return frozenset()
    plain = copy.getvalue()
    if not (properties := _PROPERTIES.search(plain)):
        return frozenset()
    places = {found[1]: found.end() for found in _OBJECT.finditer(plain)}

    def behind(found: re.Match[bytes] | None) -> bytes:
        """What stands behind a key, of another object if the key names one."""
        if found is None:
            return b""
        start = places.get(found[1], len(plain)) if found[1] else found.end()
        return plain[start : plain.find(b"endobj", start)] if found[1] else found.string[start:]

    known = behind(properties)
    default = behind(_DEFAULT.search(known))
    off = _references(default, "OFF")
    if b"/BaseState/OFF" in default:
        off |= _references(known, "OCGs") - _references(default, "ON")
    starts = (places[number] for number in off if number in places)
    names = (_NAME.search(plain, start, plain.find(b"endobj", start)) for start in starts)
    return frozenset(_decoded(name) for name in names if name)


def _references(text: bytes, key: str) -> set[bytes]:
    found = re.search((_LIST % key).encode(), text)
    return set(_REFERENCE.findall(found[1])) if found else set()


def _decoded(found: re.Match[bytes]) -> bytes:
    """A string as its bytes."""
    if found[1] is None:
        return bytes.fromhex(found[2].decode())
    escapes = {b"n": b"\n", b"r": b"\r"}
    return _ESCAPED.sub(lambda escaped: escapes.get(escaped[1], escaped[1]), found[1])


def hidden_characters(layer: PdfTextPage) -> dict[int, bytes]:
    """The characters of a page that are on hidden layers, each with the name of its layer."""
    from pypdfium2 import raw

    hidden = HIDDEN.get()
    known: dict[int, bytes] = {}
    found: dict[int, bytes] = {}
    for i in range(layer.count_chars() if hidden else 0):
        if made := raw.FPDFText_GetTextObject(layer, i):
            place = addressof(made.contents)
            if place not in known:
                known[place] = next((name for name in _layers(made) if name in hidden), b"")
            if known[place]:
                found[i] = known[place]
    return found


def _layers(made: object) -> list[bytes]:
    """The names of the layers that an object of a page is on."""
    from pypdfium2 import raw

    names: list[bytes] = []
    buffer, n_bytes = (c_ubyte * 1_000)(), c_ulong()
    for i in range(raw.FPDFPageObj_CountMarks(made)):
        mark = raw.FPDFPageObj_GetMark(made, i)
        if raw.FPDFPageObjMark_GetParamBlobValue(
            mark, b"Name", buffer, len(buffer), byref(n_bytes)
        ):
            names.append(bytes(buffer[: n_bytes.value]))
    return names
