"""Plain text and Markdown in any encoding, guessed only if the bytes do not show it; damaged UTF-8 is an error."""

from __future__ import annotations

import codecs
import re

from pearl.documents.readers import ReaderText
from pearl.errors import DataError

IS_BOUNDED = True

SUFFIXES = (".txt", ".text", ".md", ".markdown")

_BYTE_ORDER_MARKS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LEGACY_ENCODINGS = (
    "cp1254", "cp1252", "cp1251", "cp932", "euc_jp", "gb18030", "euc_kr", "cp1250", "iso8859_2",
    "big5", "koi8_r", "cp1253", "cp1255", "cp1256", "cp874",
)  # fmt: skip
"""Candidate encodings of text that is not UTF-8; the first of equally good ones wins. With all of
its 90, charset-normalizer reads short French as Hungarian or UTF-16. Turkish (cp1254) is first
because it is Western except for six Icelandic letters."""

_SUPERSETS = {
    "iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030",
    "euc_kr": "cp949", "shift_jis": "cp932",
}  # fmt: skip
"""Declared encodings → the encodings that texts really have (WHATWG, Encoding, 4.2)."""

_OF_OLD_SYSTEMS = ("cp437", "mac_roman")
"""Every byte is valid in these. So one is chosen only if it fits better than all candidates above, and if the text has a
byte that in the encodings of Windows is neither a letter nor a common quote or dash."""

_EVERYDAY = bytes({0x80, 0x82, 0x84, 0x85, *range(0x91, 0x98), 0x99, *range(0xA0, 0x100)})

_SEQUENCE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]{3}"
)
"""A sequence of UTF-8, or three letters beyond ASCII."""

_CONTROL_BYTES = bytes(set(range(0x20)) - set(b"\t\n\f\r\x1b"))
_CONTROLS_BLANKED = bytes.maketrans(_CONTROL_BYTES, b" " * len(_CONTROL_BYTES))
_MAX_CONTROL_SHARE = 1 / 3
"""Maximum fraction of odd bytes in a text; the same threshold as Perl's `-T`."""


def read(data: bytes, path: str) -> ReaderText:
    """The text of the bytes."""
    return decode(data, path)


def decode(data: bytes, path: str, *, declared: str | None = None) -> ReaderText:
    """Decode bytes by byte order mark, as UTF-8, as declared, by line, or by statistics; a guess adds a note."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return ReaderText(_decode_strictly(data, encoding, path)[1:])
    if data.startswith(b"{\\rtf"):  # RTF is text, but full of markup
        raise DataError(
            "RTF is not supported", path=path, help="save it as .docx, .pdf, .html or plain text"
        )
    # Whether there is any takes half the time of their number.
    if data.translate(_CONTROLS_BLANKED) != data:
        n_controls = len(data) - len(data.translate(None, _CONTROL_BYTES))
        if n_controls > len(data) * _MAX_CONTROL_SHARE:
            raise _binary(path)
    if declared and data.isascii() and (text := _decode_as_declared(data, declared)):
        return ReaderText(text)  # ISO-2022-JP and similar encodings look like ASCII
    try:
        return ReaderText(data.decode())
    except UnicodeDecodeError:
        if b"\0" in data:
            raise _binary(path) from None
    if mixed := _decode_by_line(data):
        return mixed
    if _is_damaged_utf_8(data):
        return ReaderText(_decode_strictly(data, "utf-8", path))
    if declared and (text := _decode_as_declared(data, declared)):
        return ReaderText(text)
    return _decode_by_statistics(data, path)


def _binary(path: str) -> DataError:
    return DataError(
        "the file is binary, not text",
        path=path,
        help="convert it to text in UTF-8, .html, .pdf or .docx",
    )


def _decode_strictly(data: bytes, encoding: str, path: str) -> str:
    """Decode, or report the offending byte."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"the byte at offset {error.start} is not {encoding.upper()}, though the document is",
            path=path,
            help="remove it, or create the file again: it was truncated or written wrongly",
        ) from error


def _is_damaged_utf_8(data: bytes) -> bool:
    """Whether bytes are damaged UTF-8: they have more valid UTF-8 sequences than invalid bytes."""
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        n_beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
        n_broken = text.count("\ufffd")
        return n_beyond_ascii - n_broken >= n_broken
    return True


def _decode_by_line(data: bytes) -> ReaderText | None:
    """Decode lines in UTF-8 mixed with lines in cp1252; None unless this mixture is certain."""
    # A damaged line has a sequence of UTF-8, one in another alphabet long runs of letters beyond ASCII.
    decoded, others, n_utf_8 = list[str](), list[int](), 0
    lines = data.split(b"\n")
    for n, line in enumerate(lines, 1):
        try:
            decoded.append(line.decode())
            n_utf_8 += not line.isascii()
        except UnicodeDecodeError as error:
            is_cut = line is lines[-1] and error.reason == "unexpected end of data"
            text = None if is_cut or _SEQUENCE.search(line) else _decode_as_declared(line, "cp1252")
            if not text:
                return None
            decoded.append(text)
            others.append(n)
    if not n_utf_8 or not others:
        return None
    # Late, because a child that reads a page has no numbers to read
    from pearl.documents.numbers import listed

    note = f"not UTF-8 and read as cp1252 (a guess): lines {listed([*map(str, others)], 5)}"
    return ReaderText("\n".join(decoded), notes=[note])


def _decode_as_declared(data: bytes, declared: str) -> str | None:
    """The text in the declared encoding; None if the bytes contradict it."""
    try:
        encoding = codecs.lookup(declared).name
        # A declaration in ASCII bytes cannot be UTF-16.
        if encoding.startswith(("utf-16", "utf-32")):
            return None
        return data.decode(_SUPERSETS.get(encoding, encoding))
    except (LookupError, UnicodeError):
        return None


def _decode_by_statistics(data: bytes, path: str) -> ReaderText:
    from charset_normalizer import from_bytes  # imported on use: most documents are UTF-8

    # With the default of 5 samples of 512 bytes, accented French is sometimes rejected.
    matches = from_bytes(
        data, steps=10, chunk_size=2048, threshold=0.3,
        cp_isolation=[*_LEGACY_ENCODINGS, *_OF_OLD_SYSTEMS],
    )  # fmt: skip
    known = [each for each in matches if each.encoding not in _OF_OLD_SYSTEMS]
    least = min((each.chaos for each in known), default=1)
    old = [each for each in matches if each not in known and each.chaos < least]
    if old and not data.translate(None, _EVERYDAY).isascii():
        best = min(old, key=lambda each: (each.chaos, -each.coherence))
        return _guessed(str(best), best.encoding)
    if not known:
        raise DataError(
            "the encoding of the text cannot be detected", path=path, help="convert it to UTF-8"
        )
    best = known[0]
    fitting = {
        encoding: match
        for match in known
        if match.chaos <= best.chaos + 0.06 and match.coherence >= best.coherence - 0.1
        for encoding in match.could_be_from_charset
    }
    encoding = next(encoding for encoding in _LEGACY_ENCODINGS if encoding in fitting)
    text = str(fitting[encoding])
    # Without one of its six letters, Turkish is Western.
    is_western = text == _decode_as_declared(data, "cp1252")
    return _guessed(text, "cp1252" if is_western else encoding)


def _guessed(text: str, encoding: str) -> ReaderText:
    note = f"the encoding is not stated and guessed to be {encoding}"
    return ReaderText(text, notes=[note])
