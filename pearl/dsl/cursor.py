"""A cursor over a line of a plan: advances and collects diagnostics."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache

from pearl.errors import Diagnostic, Fix, Span
from pearl.plugins.files import read_data

MAX_NAME = 80
"""Maximum length of a name in characters; the grammar has the same limit."""

_BLANKS = re.compile(r"\s*+")


@cache
def terminal(name: str) -> re.Pattern[str]:
    """A terminal of the grammar as a regular expression, so that it is defined in one place only."""
    found = re.search(rf"^{name}: /(.*)/$", read_data("grammars", "plan.lark"), re.M)
    assert found, name
    return re.compile(found[1])


def canonical_name(name: str) -> str:
    r"""A name as it is compared, stored and printed: in Unicode's normal form C (UAX #31, R4).

    Not NFKC, which would merge names that look different, such as `x` and full-width `ｘ`; the
    checker notes those.

    Example:
        >>> canonical_name("cle\u0301") == canonical_name("cl\u00e9")
        True
    """
    return unicodedata.normalize("NFC", name)


@dataclass(slots=True)
class Scan:
    """What is wrong with a line."""

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
