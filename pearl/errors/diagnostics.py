"""Diagnostics: spans, carets, machine-applicable fixes and did-you-mean suggestions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from pearl.errors.callers import ShownInNotebooks


class Span(Struct, frozen=True, order=True):
    """A half-open range of characters: `text[start:end]`, offsets from 0."""

    start: int
    end: int

    def position(self, text: str) -> tuple[int, int]:
        """Line and column of the start in `text`, both from 1."""
        starts = _line_starts(text)
        line = bisect_right(starts, self.start)
        return line, self.start - starts[line - 1] + 1

    def moved(self, n: int) -> Span:
        """The range that begins `n` characters later."""
        return Span(self.start + n, self.end + n) if n else self


@lru_cache(maxsize=2)  # a text may have a diagnostic on every line
def _line_starts(text: str) -> list[int]:
    return list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))


class Fix(Struct, frozen=True):
    """A machine-applicable fix: replace `span` of the text by `replacement`."""

    span: Span
    replacement: str


def apply_fixes(text: str, fixes: Iterable[Fix]) -> str:
    """Apply the fixes to the text they were made for.

    A fix that overlaps an earlier one is skipped; the next check of the result offers it again.

    Example:
        >>> apply_fixes("a b", [Fix(Span(0, 1), "A"), Fix(Span(2, 3), "B")])
        'A B'
    """
    pieces: list[str] = []
    at = 0
    for fix in sorted(fixes, key=lambda fix: fix.span):
        if fix.span.start < at:
            continue
        pieces += [text[at : fix.span.start], fix.replacement]
        at = fix.span.end
    return "".join([*pieces, text[at:]])


Severity = Literal["error", "note"]


class Diagnostic(ShownInNotebooks, Struct, frozen=True):
    """One finding about one place of a text."""

    code: str
    message: str
    span: Span
    severity: Severity = "error"
    help: str | None = None
    fix: Fix | None = None

    def render(self, text: str, name: str = "<text>") -> str:
        """The diagnostic with its source line and a caret, without colour."""
        line, column = self.span.position(text)
        shown, lead, width = excerpt(self.span, text)
        margin = " " * len(str(line))
        # As wide as what stands before the caret, tabs kept
        lead_text = "".join("\t" if c == "\t" else " " for c in shown[:lead])
        rows = [
            f"{name}:{line}:{column}: {self.severity}: {self.message} [{self.code}]",
            f"{margin} |",
            f"{line} | {shown}",
            f"{margin} | {lead_text}{'^' * width}",
        ]
        if self.help:
            rows.append(f"{margin} = help: {self.help}")
        return "\n".join(rows)

    def to_dict(self, text: str) -> dict[str, object]:
        """The diagnostic as JSON data; line and column from 1, offsets from 0."""
        line, column = self.span.position(text)
        fix = self.fix and {
            "start": self.fix.span.start,
            "end": self.fix.span.end,
            "replacement": self.fix.replacement,
        }
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "line": line,
            "column": column,
            "start": self.span.start,
            "end": self.span.end,
            "help": self.help,
            "fix": fix,
        }


MAX_SHOWN = 160  # Maximum characters of a line that is shown


def excerpt(span: Span, text: str) -> tuple[str, int, int]:
    """A part of the line in which a span begins, and the start and width of the caret."""
    _, column = span.position(text)
    first = span.start - column + 1
    last = text.find("\n", span.start)
    source, at = text[first : len(text) if last < 0 else last], column - 1
    begin = max(0, min(at - MAX_SHOWN // 2, len(source) - MAX_SHOWN))
    shown, lead = source[begin : begin + MAX_SHOWN], min(at, len(source)) - begin
    width = min(span.end, first + len(source)) - span.start
    return shown, lead, max(1, min(width, len(shown) - lead))


def render_diagnostics(diagnostics: Sequence[Diagnostic], text: str, name: str = "<text>") -> str:
    """All diagnostics as text, in order, as shown to users and models."""
    return "\n".join(diagnostic.render(text, name) for diagnostic in diagnostics)
