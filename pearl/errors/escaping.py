r"""Escaping: control characters for terminals, formulas for spreadsheets, secrets in addresses; JSON.

Answers, ids, file names and messages of servers are untrusted. On a terminal, their control characters
could change colours, rename the window, write the clipboard or forge lines. Other libraries remove such
sequences silently; here they stay visible, as JSON escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pearl.errors.patterns import lazy_pattern

_OBEYED = lazy_pattern(
    "["
    "\x00-\x08\x0b-\x1f\x7f"  # C0 except tab and line break, and DEL
    "\x80-\x9f"  # C1: single characters for escape sequences
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Unicode's Bidi_Control: they reorder a line
    "\u2028\u2029"  # line and paragraph separators
    "]"
)


def escaped(text: str) -> str:
    r"""The text with every control character as `\uXXXX`; existing escapes stay as they are.

    JSON text stays the same data, because control characters occur in strings only.
    """
    if text.isprintable():  # A third of the time of the pattern
        return text
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible(text: str) -> str:
    r"""The text on one line, with characters that are not printable as Python escapes.

    For text that a user has to judge, such as the name of a file.

    Example:
        >>> print(visible("no" + chr(0x200B) + "tes\nrm"))
        no\u200btes\nrm
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def to_json(data: Any, *, indent: int | None = None) -> str:
    """JSON text that is safe on a terminal; characters of all scripts stay readable."""
    return escaped(json.dumps(data, ensure_ascii=False, indent=indent))


def json_bytes(data: Any) -> bytes:
    r"""JSON in UTF-8 for programs, without blanks; ten times as fast as the standard library.

    A lone surrogate becomes its escape, because UTF-8 cannot encode it.
    """
    import msgspec  # late: `pearl --version`

    try:
        return msgspec.json.encode(data, enc_hook=_dumped)
    except UnicodeEncodeError:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_dumped)
        return text.encode("utf-8", "backslashreplace")


_COMPUTED = lazy_pattern(
    r"""\A(?='*+[=+\-@\t\r\n＝＋－＠])"""  # after apostrophes, too, so that no two texts become one
    r"""|(?<=[;|\t\r\n])(?=[ "']*+[=+\-@＝＋－＠])(?![ ]*+[+-][\d.]++\s*+(?:[;|]|\Z))"""
)
"""The position before a formula: at the start of a cell, or after a character that may separate cells."""
_NUMBER = lazy_pattern(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")  # -5, .5, 1e6: no formulas


def inert(cell: Any) -> Any:
    """Escape a cell that a spreadsheet would evaluate, by an apostrophe.

    After https://owasp.org/www-community/attacks/CSV_Injection; numbers stay numbers.
    """
    is_text = isinstance(cell, str) and not _NUMBER.fullmatch(cell)
    return _COMPUTED.sub("'", cell) if is_text else cell


def _dumped(value: Any) -> Any:
    """The data of a pydantic model, a Struct or another mapping."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    if isinstance(value, Mapping):
        return dict(value)
    import msgspec

    return msgspec.to_builtins(value)


LEFT_OUT = "***"
"""Placeholder for a redacted part that the user has to fill in before the URL can be used."""

_ADDRESS = lazy_pattern(
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,30}://)"  # bounded: else long words take quadratic time
    # Up to the last @: passwords often contain unescaped slashes and question marks.
    r"(?P<user>[^\s\"'<>]*@)?"
    r"(?P<place>[^\s?#\"'<>]*)"
    r"(?P<rest>[?#][^\s\"'<>]*)?",
    re.IGNORECASE,
)


def redacted(text: str, mark: str = "") -> str:
    """Remove user names, passwords and query strings, which may hold keys, from the URLs in a text."""

    def without(found: re.Match[str]) -> str:
        user = f"{mark}@" if found["user"] and mark else ""
        rest = f"?{mark}" if found["rest"] and mark else ""
        return f"{found['scheme']}{user}{found['place']}{rest}"

    return _ADDRESS.sub(without, text)


def counted(n: int, thing: str) -> str:
    """A number with a noun.

    Example:
        >>> counted(1, "row"), counted(1_200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
