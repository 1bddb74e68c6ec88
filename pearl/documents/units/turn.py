"""Turns of a conversation: `Ann: Hello.`, `[Ann] Hello.`, `ANN - Hello.`, with times or without."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pearl.documents.passages import paragraphs
from pearl.documents.units import Piece, lines, trimmed
from pearl.errors.patterns import lazy_pattern

_TIME = r"[\[(]?\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d{1,3})?(?:[ ]?[AaPp]\.?[Mm]\.?)?[\])]?"
_WORD = r"[^\W_a-z][\w.'’&-]{0,24}"
_NAME = (
    rf"(?:(?!\d){_WORD}(?:[ ](?:{_WORD}|(?:of|the|de|van|von|la)\b)){{0,4}}|[a-z]\w{{0,24}})"
    r"(?:[ ]\((?!\d)[^()\n]{1,30}\))?"
)
_BEFORE = rf"^[ \t]*+(?P<turn>)(?:[-–—*][ ])?(?:(?P<time>{_TIME})[ \t]*(?:[-–—|][ \t]*)?)?"
_BEHIND = rf"(?:[ \t]*(?P<later>[\[(]{_TIME}[\])]))?"
_COLON = r"(?::(?=\s|\*|\Z)|：)"

_STYLES = tuple(
    lazy_pattern(pattern, re.M)
    for pattern in (
        rf"{_BEFORE}\[(?P<name>[^\W\d_][^\]\[\n]{{0,39}})\]:?(?=\s|\Z)",  # [doctor] Hello.
        rf"{_BEFORE}(?:\*\*)?(?P<name>{_NAME}){_BEHIND}(?:\*\*)?{_COLON}",  # **Ann** (10:30): Hello.
        rf"{_BEFORE}(?P<name>{_NAME}){_BEHIND}[ \t]+[-–—][ \t]+(?=\S)",  # ANN - Hello.
    )
)

_LEAST_LINES = 0.1
_LEAST_PARAGRAPHS = 0.5
"""Minimum shares of the lines, and of the paragraphs, that begin a turn; in prose, few do."""


def split(text: str, parts: Sequence[tuple[str, int]] = ()) -> list[Piece]:
    """Return every turn with `Speaker` and `Time`. In a short text every line or paragraph must be a turn."""
    begins = [at for at, line in lines(text) if line]
    # At the beginning of each line: a search tries every character
    found = ([style.match(text, at) for at in begins] for style in _STYLES)
    starts = max(([match for match in each if match] for each in found), key=len)
    speakers = {match["name"] for match in starts}
    is_short = len(starts) < 2 * len(speakers)
    n_fits = len(speakers) == 2 if is_short else len(speakers) > 1
    if not (n_fits and _are_many(text, starts, is_short)):
        raise ValueError("no turns: few lines begin with a speaker, as in 'Ann: Hello.'")
    ends = [*(match.start() for match in starts[1:]), len(text)]
    pieces = []
    for match, end in zip(starts, ends, strict=True):
        groups = match.groupdict()
        fields = {"Speaker": match["name"].strip()}
        if time := groups["time"] or groups.get("later"):
            fields["Time"] = time.strip("[]()")
        pieces += trimmed(text, match.start("turn"), end, fields)
    return pieces


def _are_many(text: str, starts: Sequence[re.Match[str]], is_short: bool) -> bool:
    """Whether enough lines or paragraphs begin a turn; in a short text, all of them."""
    n_lines = sum(not line.isspace() for line in text.split("\n") if line)
    if len(starts) >= n_lines * (1 if is_short else _LEAST_LINES):
        return True
    beginnings = {match.start("turn") for match in starts}
    found = paragraphs(text)
    n_begun = sum(span.start in beginnings for span in found)
    return n_begun > 1 and n_begun >= len(found) * (1 if is_short else _LEAST_PARAGRAPHS)
