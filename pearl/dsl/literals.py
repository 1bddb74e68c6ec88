"""Names and strings of the plan language."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from pearl.errors.patterns import lazy_pattern
from pearl.plugins.files import read_data

UNTYPED = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that are not allowed in a plan."""

SPECIAL = lazy_pattern(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    rf"""|\\["\\nt']|\\|"|{UNTYPED.pattern}"""
)
"""Escapes, quotes and forbidden characters inside a string literal."""

_ASSIGNED = rf"[^\W\d]\w*+[ {UNTYPED.pattern[1:-1]}]*+=[ {UNTYPED.pattern[1:-1]}]*+[^\W\d]\w*+\("
GLUED = lazy_pattern(
    rf"(?:(?<![ \t])(?<!\\n)(?:\\n|[ \t])++|(?<=[^\w\s\\]))(?=\d++[.)] *+{_ASSIGNED})"
    rf"|(?<![ \t])[ \t]*+;[ \t]*+(?={_ASSIGNED})"
)
"""What stands between two steps on one line: a written `\\n`, blanks, or a semicolon."""

_MEANING = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\\": "\\"}


def unescape(literal: str) -> str:
    """The value of a string literal."""
    if "\\" not in literal:
        return literal[1:-1]
    return SPECIAL.sub(
        lambda m: _MEANING[m[0]] if len(m[0]) == 2 else chr(int(m[0][2:], 16)), literal[1:-1]
    )


def quote(value: str) -> str:
    """The string literal for `value`; a lone surrogate becomes U+FFFD."""
    body = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{UNTYPED.sub(lambda m: _escaped(m[0]), body)}"'


def flaw(special: str) -> tuple[str, str | None] | None:
    """The error in a match of `SPECIAL`, and its replacement if unambiguous."""
    if special in _MEANING:
        return None
    if special == '"':
        return r"a quote inside a string reads \"", r"\""
    if special == r"\'":
        return "an escape that is not needed", "'"
    if special == "\\":
        return "unknown escape", None
    if len(special) == len(r"\uXXXX\uXXXX"):
        halves = chr(int(special[2:6], 16)) + chr(int(special[8:], 16))
        whole = halves.encode("utf-16", "surrogatepass").decode("utf-16")
        return "a character in two halves", whole
    if len(special) == len(r"\uXXXX"):
        is_half = 0xD800 <= int(special[2:], 16) <= 0xDFFF
        return ("half a character (a lone surrogate)", None) if is_half else None
    return f"the character U+{ord(special):04X} in a string", _escaped(special)


def requote(body: str) -> str:
    """The string literal for text from other quotes; unknown escapes are kept literally."""

    def meant(special: re.Match[str]) -> str:
        _, replacement = flaw(special[0]) or ("", special[0])
        return replacement or f"\\{special[0]}"

    return f'"{SPECIAL.sub(meant, body)}"'


def _escaped(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return r"\ufffd"
    return r"\t" if character == "\t" else f"\\u{ord(character):04x}"


MAX_NAME = 80  # Maximum length of a name in characters; the grammar has the same limit
NAME_TOO_LONG = f"a name has at most {MAX_NAME} characters"


COARSE_NAME = r"[^\x00-@\[-^`{-\x7f][^\x00-\x2f:-@\[-^`{-\x7f]*"
"""What may be a name: any character beyond ASCII is taken for a letter, which compiles fast."""


@cache
def terminal(name: str) -> re.Pattern[str]:
    """A terminal of the grammar as a regular expression, so that it is defined in one place only."""
    found = re.search(rf"^{name}: /(.*)/$", read_data("grammars", "plan.lark"), re.M)
    assert found, name
    return re.compile(found[1])


def canonical_name(name: str) -> str:
    """A name as it is compared, stored and printed: in Unicode's normal form C (UAX #31, R4)."""
    return unicodedata.normalize("NFC", name)


def short(text: str) -> str:
    """A text truncated for a message."""
    return text if len(text) <= 40 else f"{text[:39]}…"
