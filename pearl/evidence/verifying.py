"""Quotes of a reply → spans of the document that prove them.

A quote is looked up as it is, then in a normal form that leaves out what models and typesetters
change without changing the wording: line breaks and blanks, the marks of quotation, dashes and
hyphens, composed and decomposed accents, full-width forms and ligatures. Letters, their case,
digits and all other punctuation have to agree.

Invariant: a span always refers to the document as it is, `text[span.start:span.end]` has the
normal form of the quote, and it begins and ends between words: "he left" is not in "she left".
The document is normalised once, in time linear in its length.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pearl.errors import Span
from pearl.evidence.finding import is_passage
from pearl.evidence.normal import NormalText, core, normalise

__all__ = ["Match", "Quote", "Verifier"]

Match = Literal["exact", "normalised", "missing"]

MAX_ATTRIBUTION_LENGTH = 80
"""Characters of `(chapter 2)` or `— The Author, p. 7` after a quote; longer is part of it."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote of a reply, and where the document says it.

    Attributes:
        text: The quote as the reply gives it, less an attribution that was left out to verify it.
        spans: Where it stands: one span, or one for each piece of a quote with omissions, in the
            order of the quote; empty if any piece is missing.
        match: How it was found; `normalised` if any piece had to be.
    """

    text: str
    spans: tuple[Span, ...]
    match: Match

    @property
    def is_verified(self) -> bool:
        """Whether the document says it."""
        return self.match != "missing"


_OMISSION = re.compile(r"[(\[]?(?:…|\.[ ]?\.[ ]?\.)[)\]]?")
_ATTRIBUTION = re.compile(
    rf"""(?:(?<=[.!?…"'”’»」』。！？]\s)|(?<=\n)) (?:[–—―]|--?) [^\n]{{1,{MAX_ATTRIBUTION_LENGTH}}} $
    | [(\[（【] (?P<source>[^()\[\]（）【】]{{1,{MAX_ATTRIBUTION_LENGTH}}}) [)\]）】] [\s.]* $""",
    re.VERBOSE,
)
_SENTENCE_END = re.compile(r"""[.!?…"'”’»」』。！？]$""")


class Verifier:
    r"""Looks quotes up in one document.

    Args:
        text: The document, as spans are to refer to it.

    Example:
        >>> verifier = Verifier("He called it\na “well-known” fact. Nobody spoke.")
        >>> verifier.verify("He called it a 'well-known' fact").spans
        (Span(start=0, end=32),)
        >>> verifier.verify("He called it a little-known fact").match
        'missing'
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def verify(self, quote: str) -> Quote:
        """Find a quote in the document.

        Punctuation at both ends may differ. Omissions (`...`, `…`, `[…]`) divide a quote into
        pieces that have to follow each other. An attribution after it, `(chapter 2)` or `— The
        Author`, is left out if the document does not have it. Of a block quote that is not one
        passage, every line may be.

        Args:
            quote: As `find_quotes` gives it, without its marks.

        Returns:
            The quote with the first place where the document has it, or flagged as missing.
        """
        for wording in _wordings(quote):
            passages = [[wording], _OMISSION.split(wording)]
            for passage in passages if len(passages[1]) > 1 else passages[:1]:
                pieces = [piece.strip() for piece in passage if core(normalise(piece))]
                if spans := self._find(pieces):
                    shown = [self._text[span.start : span.end] for span in spans]
                    return Quote(wording, spans, "exact" if shown == pieces else "normalised")
        lines = [line for line in quote.split("\n") if line.strip()]
        if len(lines) < 2 or not all(map(is_passage, lines)):
            return Quote(quote, (), "missing")
        found = [self.verify(line) for line in lines]
        if not all(line.is_verified for line in found):
            return Quote(quote, (), "missing")
        return Quote(
            "\n".join(line.text for line in found),
            tuple(span for line in found for span in line.spans),
            "exact" if all(line.match == "exact" for line in found) else "normalised",
        )

    @cached_property
    def _normal(self) -> NormalText:
        return NormalText(self._text)

    def _find(self, pieces: list[str]) -> tuple[Span, ...]:
        """Where the pieces of a quote follow each other, nothing if they do not."""
        if len(pieces) == 1 and (span := self._find_exactly(pieces[0])):
            return (span,)
        needles = [normalise(piece) for piece in pieces]
        ranges: list[tuple[int, int]] = []
        for needle in needles:
            found = self._normal.find(needle, ranges[-1][1] if ranges else 0)
            if found is None:
                return ()
            ranges.append(found)
        # The first place of a common piece may be chapters before the next piece: take the last.
        for i in reversed(range(len(needles) - 1)):
            ranges[i] = self._normal.rfind(needles[i], ranges[i + 1][0]) or ranges[i]
        return tuple(self._normal.original(*found) for found in ranges)

    def _find_exactly(self, quote: str) -> Span | None:
        at = self._text.find(quote)
        while at >= 0:
            span = Span(at, at + len(quote))
            if not any(map(self._normal.is_within_word, (span.start, span.end))):
                return span
            at = self._text.find(quote, at + 1)
        return None


def _wordings(quote: str) -> list[str]:
    """A quote as it is, and without the attribution at its end if it may have one."""
    found = _ATTRIBUTION.search(quote)
    if found is None:
        return [quote]
    rest, source = quote[: found.start()].rstrip(), found["source"]
    is_aside = source and source[0].islower() and not any(map(str.isdigit, source))
    if is_aside and not _SENTENCE_END.search(rest):
        return [quote]  # `(who agreed)` is part of the sentence
    return [quote, rest]
