"""Collect the passages that the replies of steps quote, and the quotes that are not verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.document import Document, Source
from pearl.documents.evidence.finding import TableRowFinder, find_quotes, quoted_line
from pearl.documents.evidence.normal import NormalText, normal_text
from pearl.documents.evidence.verifying import Doubt, Match, Quote, Verifier
from pearl.documents.evidence.wording import DOUBTS, full_place, with_omissions
from pearl.documents.passages import stripped
from pearl.errors import Span


class StepReply(Struct, frozen=True):
    """The reply of a step."""

    step: str
    text: str
    given: tuple[str, ...] = ()
    sources: frozenset[str] = frozenset()
    """The sources that it may quote; none for the whole document."""


class Evidence(Struct, frozen=True):
    """A passage of the document that steps quote."""

    text: str
    span: Span
    steps: tuple[str, ...]
    match: Match
    source: str
    source_span: Span
    omitted: tuple[Span, ...] = ()
    ranks: tuple[tuple[str, int], ...] = ()
    page: int | None = None
    """The page that the passage begins on, within its source; None if that has no pages."""
    ocr: float | None = None
    """If the passage was read by OCR: the mean confidence of the words of its page, 0 to 1."""

    @property
    def marked(self) -> str:
        """The passage on one line, with omitted text marked as `[left out: ...]`."""
        return with_omissions(self.text, self.omitted)

    @property
    def where(self) -> str:
        """The place of the passage and the steps that quote it, for people."""
        place = full_place(self.source, self.source_span, self.page, self.ocr, self.ranks)
        return f"{place}; {', '.join(self.steps)}{'; elided' if self.omitted else ''}"


class Unverified(Struct, frozen=True):
    """A quote that could not be verified."""

    step: str
    text: str
    reason: Doubt | Literal["given"]

    @property
    def why(self) -> str:
        """The reason as text."""
        return DOUBTS[self.reason]


def collect(
    replies: Iterable[StepReply], document: Document
) -> tuple[tuple[Evidence, ...], tuple[Unverified, ...]]:
    """Look up every quote of every reply in the document, or in the sources of the reply."""
    verifiers: dict[frozenset[str], Verifier | _Verifiers] = {}
    found: dict[tuple[Span, tuple[Span, ...]], Evidence] = {}
    unverified: dict[Unverified, None] = {}
    for reply in replies:
        given: list[NormalText] = []
        if (verifier := verifiers.get(reply.sources)) is None:
            read = [each for each in document.sources if each.name in reply.sources]
            verifier = (
                _Verifiers(read) if read else Verifier(document.text, TableRowFinder(document))
            )
            verifiers[reply.sources] = verifier
        quotes = (_parts(text, verifier, ("\n\n", "\n")) for text in find_quotes(reply.text))
        for quote in chain.from_iterable(quotes):
            if quote.spans:
                add_passage(found, passage_at(quote, reply.step, document))
            if quote.is_verified:
                continue
            reason: Any = quote.result
            if reason == "missing":
                given = given or [normal_text(text) for text in reply.given]
                needle = normal_text(quote.text)
                if any(text.find(needle) for text in given):
                    reason = "given"
            unverified.setdefault(Unverified(reply.step, quote.text, reason))
    return tuple(found.values()), tuple(unverified)


def placed(
    text: str, evidence: Sequence[Evidence]
) -> tuple[list[tuple[str, Evidence | None]], list[Evidence]]:
    """Match the evidence of an answer to the places that quote it."""
    by_form = {_form(each.text): each for each in evidence if not each.omitted}
    pieces: list[tuple[str, Evidence | None]] = []
    is_placed: set[int] = set()
    rest: list[str] = []
    lines = [(quoted_line(line), line) for line in text.split("\n")]
    for is_quoted, run in groupby(lines, lambda pair: pair[0] is not None):
        pairs = list(run)
        for block in [pairs] if is_quoted else [[pair] for pair in pairs]:
            bare = (line.removeprefix("- ") if said is None else said for said, line in block)
            each = by_form.get(_form("\n".join(bare)))
            if each is None:
                rest += (line for _, line in block)
                continue
            if rest:
                pieces.append(("\n".join(rest), None))
                rest = []
            pieces.append(("\n".join(line for _, line in block), each))
            is_placed.add(id(each))
    if rest:
        pieces.append(("\n".join(rest), None))
    return pieces, [each for each in evidence if id(each) not in is_placed]


def _form(text: str) -> str:
    normal = normal_text(text)
    first, last = normal.core
    return normal.text[first:last]


class _Verifiers:
    """Looks quotes up in several sources; the places found are offsets in the joined text."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._of = [
            (each.start, Verifier(each.document.text, TableRowFinder(each.document)))
            for each in sources
        ]

    def verify(self, quote: str) -> Quote:
        """The place in the first source that has the quote."""
        doubts: list[Quote] = []
        for start, verifier in self._of:
            found = verifier.verify(quote)
            found = replace(found, spans=tuple(span.moved(start) for span in found.spans))
            if found.is_verified:
                return found
            doubts.append(found)
        return next((doubt for doubt in doubts if doubt.result != "missing"), doubts[0])


def _parts(text: str, verifier: Verifier | _Verifiers, breaks: Sequence[str]) -> Iterator[Quote]:
    """Yield a quote if the document contains it, else each of its paragraphs or lines as a quote."""
    quote = verifier.verify(text)
    while breaks and breaks[0] not in text:
        breaks = breaks[1:]
    if quote.is_verified or not breaks:
        yield quote
        return
    for part in text.split(breaks[0]):
        if any(map(str.isalnum, part)):
            yield from _parts(part.strip(), verifier, breaks[1:])


def add_passage(found: dict[tuple[Span, tuple[Span, ...]], Evidence], passage: Evidence) -> None:
    """Add a passage; if it was already found, add its steps."""
    key = passage.span, passage.omitted
    before = found.setdefault(key, passage)
    steps = tuple(dict.fromkeys((*before.steps, *passage.steps)))
    if steps != before.steps:
        found[key] = replace(before, steps=steps)


def passage_at(quote: Quote, step: str, document: Document) -> Evidence:
    """The passage of a document around a verified quote of a step."""
    span = Span(quote.spans[0].start, quote.spans[-1].end)
    omitted = tuple(
        Span(gap.start - span.start, gap.end - span.start)
        for one, other in pairwise(quote.spans)
        for gap in stripped(document.text, Span(one.end, other.start))
    )
    source, start = document.locate(span.start)
    match: Match = "elided" if omitted else "exact" if quote.result == "exact" else "normalised"
    return Evidence(
        document.text[span.start : span.end], span, (step,), match, source,
        Span(start, start + span.end - span.start), omitted,
        page=document.page_at(span.start), ocr=document.ocr_at(span),
    )  # fmt: skip
