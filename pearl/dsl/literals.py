"""Names and strings of the plan language, and a position in a line of a plan."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache

from pearl.errors import Diagnostic, Fix, Span
from pearl.errors.patterns import lazy_pattern
from pearl.plugins.files import read_data

UNTYPED = lazy_pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that are not allowed in a plan."""

SPECIAL = lazy_pattern(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
    rf"""|\\["\\nt']|\\|"|{UNTYPED.pattern}"""
)
"""Escapes, quotes and forbidden characters inside a string literal."""

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
    return f'"{SPECIAL.sub(_as_meant, body)}"'


def _as_meant(special: re.Match[str]) -> str:
    wrong = flaw(special[0])
    if wrong is None:
        return special[0]
    return f"\\{special[0]}" if wrong[1] is None else wrong[1]


def _escaped(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return r"\ufffd"
    return r"\t" if character == "\t" else f"\\u{ord(character):04x}"


MAX_NAME = 80
"""Maximum length of a name in characters; the grammar has the same limit."""

_BLANKS = lazy_pattern(r"\s*+")


@cache
def terminal(name: str) -> re.Pattern[str]:
    """A terminal of the grammar as a regular expression, so that it is defined in one place only."""
    found = re.search(rf"^{name}: /(.*)/$", read_data("grammars", "plan.lark"), re.M)
    assert found, name
    return re.compile(found[1])


def canonical_name(name: str) -> str:
    """A name as it is compared, stored and printed: in Unicode's normal form C (UAX #31, R4)."""
    return unicodedata.normalize("NFC", name)


@dataclass(slots=True)
class Scan:
    """The errors of a line, and the names it defines."""

    found: list[Diagnostic] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def should_read(text: str, span: Span, wanted: str, why: str) -> Diagnostic:
    """The error that a range should read `wanted`, starting at the first difference."""
    source, same = text[span.start : span.end], 0
    while same < min(len(source), len(wanted)) and source[same] == wanted[same]:
        same += 1
    return Diagnostic("syntax", why, Span(span.start + same, span.end), fix=Fix(span, wanted))


class BrokenError(Exception):
    """The rest of the line cannot be scanned; the error has been reported."""


class Cursor:
    """A position in a line."""

    def __init__(self, text: str, span: Span) -> None:
        self.text, self.start, self.at, self.end = text, span.start, span.start, span.end
        self.result = Scan()

    def error(
        self,
        message: str,
        start: int,
        end: int | None = None,
        advice: str | None = None,
        fix: Fix | None = None,
    ) -> None:
        """Report what is wrong with `text[start:end]`, one character if no end is given."""
        end = min(start + 1, self.end) if end is None else end
        self.result.found.append(
            Diagnostic("syntax", message, Span(start, end), help=advice, fix=fix)
        )

    def broken(
        self, message: str, start: int, end: int | None = None, advice: str | None = None
    ) -> BrokenError:
        """Report an error that ends the scan of the line, and return the exception to raise."""
        self.error(message, start, end, advice)
        return BrokenError()

    def mend(self, message: str, start: int, end: int, replacement: str) -> None:
        """Report that `text[start:end]` should read `replacement`, from the first difference on."""
        self.result.found.append(should_read(self.text, Span(start, end), replacement, message))

    def match(self, pattern: re.Pattern[str], at: int | None = None) -> re.Match[str] | None:
        """Match here, or at another offset of the line, without advancing."""
        return pattern.match(self.text, self.at if at is None else at, self.end)

    def after_blanks(self) -> int:
        """Offset of the next non-blank character."""
        blanks = self.match(_BLANKS)
        return blanks.end() if blanks else self.at

    def end_of_words(self) -> int:
        """Offset of the trailing blanks and marks of the line, in linear time."""
        at = self.end
        while at > self.at and (self.text[at - 1] in "`*" or self.text[at - 1].isspace()):
            at -= 1
        return at

    def no_blanks(self) -> None:
        """Skip blanks and report them as errors."""
        end = self.after_blanks()
        if end > self.at:
            self.mend("a blank that does not belong here", self.at, end, "")
        self.at = end

    def seen(self, at: int) -> str:
        """A description of the character at an offset."""
        if at >= self.end:
            return "the line ends"
        character = self.text[at]
        return (
            f"unexpected {character!r}"
            if character.isprintable()
            else f"unexpected character U+{ord(character):04X}"
        )


def short(text: str) -> str:
    """The beginning of a text for a message."""
    return text if len(text) <= 40 else f"{text[:39]}…"
