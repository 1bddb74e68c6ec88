"""Answers with the numbers of their evidence, and evidence with the lines of the document around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pearl.documents.evidence import Evidence, normalise, placed
from pearl.documents.evidence.normal import NormalText
from pearl.errors import Span

if TYPE_CHECKING:
    from pearl.documents.document import Document
    from pearl.interpreter.answer import RowEvidence

MIN_WORDS = 4
"""Words of a passage from which it is found in a sentence without quotation marks around it."""

MAX_LINE = 200
"""Characters that are shown of a line beside a quote, and of the quote's own line on either side."""

MAX_QUOTE = 1_000
"""Characters that are shown of a quote among its lines."""

_SEARCHED = 20_000
"""Characters in which each line is looked for."""

_NUMBER = re.compile(r"\[\d+\]")
_CLOSING = "\"'”’»«」』"
_OPENING = "\"'“‘„‚«»「『"


def mark_form(text: str) -> str:
    """The form of marks: `[1]`, or `[^1]` where the text has numbers of its own in brackets.

    Example:
        >>> mark_form("It leaked.").format(1), mark_form("It leaked, as shown in [7].").format(1)
        ('[1]', '[^1]')
    """
    return "[^{}]" if _NUMBER.search(text) else "[{}]"


def cited(
    text: str, evidence: Sequence[Evidence]
) -> tuple[list[tuple[str, tuple[int, ...]]], frozenset[int]]:
    """Cut an answer after the passages that it quotes."""
    numbers = {id(each): n for n, each in enumerate(evidence, start=1)}
    blocks, others = placed(text, evidence)
    pieces: list[tuple[str, tuple[int, ...]]] = []
    for at, (block, each) in enumerate(blocks):
        last = "" if at == len(blocks) - 1 else "\n"
        if each is not None:
            pieces += [(block, (numbers[id(each)],)), (last, ())]
        else:
            pieces += _within(block + last, others, numbers)
    found = {n for _, marks in pieces for n in marks}
    return [piece for piece in pieces if piece[0] or piece[1]], frozenset(found)


def _within(
    text: str, evidence: Sequence[Evidence], numbers: dict[int, int]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A text cut after the passages within its sentences."""
    ends: dict[int, list[int]] = {}
    whole = NormalText(text)
    for each in evidence:
        passage = NormalText(each.text)
        span = whole.find(passage) if not each.omitted else None
        if span is None or span[0] == span[1]:
            continue
        start, end = whole.original(*span).start, whole.original(*span).end
        is_quoted = text[max(0, start - 1) : start] in _OPENING and text[end : end + 1] in _CLOSING
        is_quoted &= 0 < start < end < len(text)
        if is_quoted or len(normalise(each.text).split()) >= MIN_WORDS:
            ends.setdefault(end + is_quoted, []).append(numbers[id(each)])
    at = 0
    for end in sorted(ends):
        yield text[at:end], tuple(ends[end])
        at = end
    yield text[at:], ()


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a document around a quote, or of it."""

    before: str
    quote: str = ""
    after: str = ""


@dataclass(frozen=True)
class Surroundings:
    """The lines around evidence."""

    document: Document
    n: int

    def of(self, evidence: Evidence) -> list[Line]:
        """The lines around a passage; none where the document no longer has it there."""
        return self._around(evidence.span, evidence.text)

    def of_row(self, row: RowEvidence) -> list[Line]:
        """The lines around a row; none where it is not of the document."""
        if row.span is None:
            return []
        at = dict(reversed(self.document.parts)).get(row.source, 0)
        return self._around(Span(at + row.span.start, at + row.span.end), row.text)

    def _around(self, span: Span, quote: str) -> list[Line]:
        text = self.document.text
        if text[span.start : span.end] != quote or not quote:
            return []
        low, high = self._file(span)
        begin = text.rfind("\n", low, span.start) + 1 or low
        end = text.find("\n", span.end - 1, high)
        end = high if end < 0 else max(end, span.end)
        return [
            *(Line(line) for line in self._before(low, begin)),
            *_quoted(_end_of(text, begin, span.start), quote, _start_of(text, span.end, end)),
            *(Line(line) for line in self._after(end, high)),
        ]

    def _file(self, span: Span) -> tuple[int, int]:
        """Where the file begins and ends that a passage is in, without the heading of the next one."""
        from pearl.documents.document import heading

        low, high = 0, len(self.document.text)
        for name, start in self.document.parts:
            if start > span.start:
                title = heading(name)
                has_title = self.document.text.startswith(title, start - len(title))
                high = start - len(title) if has_title else start
                break
            low = start
        return low, max(high, span.end)

    def _before(self, low: int, end: int) -> list[str]:
        text = self.document.text
        start = max(low, end - self.n * _SEARCHED)
        lines = text[start:end].split("\n")
        if start > low and text[start - 1] != "\n":
            lines[0] = f"…{lines[0]}"
        kept = [line for line in lines if line.strip("… \t")]
        return [_end_of(line, 0, len(line)) for line in kept[-self.n :]]

    def _after(self, start: int, high: int) -> list[str]:
        text = self.document.text
        end = min(high, start + self.n * _SEARCHED)
        lines = text[start:end].split("\n")
        if end < high and text[end] != "\n":
            lines[-1] = f"{lines[-1]}…"
        kept = [line for line in lines if line.strip("… \t")]
        return [_start_of(line, 0, len(line)) for line in kept[: self.n]]


def _quoted(before: str, quote: str, after: str) -> Iterator[Line]:
    """The lines of a quote, blank ones left out."""
    if len(quote) > MAX_QUOTE:
        half = MAX_QUOTE // 2
        quote = f"{quote[:half]} … {quote[-half:]}"
    lines = quote.split("\n")
    for at, line in enumerate(lines):
        head = before if at == 0 else ""
        tail = after if at == len(lines) - 1 else ""
        if f"{head}{line}{tail}".strip():
            yield Line(head, line, tail)


def _end_of(text: str, start: int, end: int) -> str:
    """The end of a part of a text."""
    return text[start:end] if end - start <= MAX_LINE else f"…{text[end - MAX_LINE : end]}"


def _start_of(text: str, start: int, end: int) -> str:
    """The beginning of a part of a text."""
    return text[start:end] if end - start <= MAX_LINE else f"{text[start : start + MAX_LINE]}…"
