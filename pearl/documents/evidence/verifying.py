"""Quotes → the spans of a document that prove them, or why none does.

A quote is looked up as it is, then in normal form (see `normal`). A quote with omissions is a passage
with something left out of it: its pieces stand in their order in one paragraph, close to each other, and
what is left out is part of one sentence, or goes on to where another begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Literal

from pearl.documents.evidence.borders import with_units
from pearl.documents.evidence.finding import is_passage, n_words
from pearl.documents.evidence.negation import negations, with_negation
from pearl.documents.evidence.normal import MAX_PLACES, NormalText, Range
from pearl.documents.passages import sentences
from pearl.errors import Span

__all__ = ["Doubt", "Match", "Quote", "Verifier"]

Match = Literal["exact", "normalised", "elided"]
"""How a passage is quoted: as it is, set in another way, or with something left out."""

Doubt = Literal["missing", "short", "apart", "negation"]
"""Why a quote is not verified: the document does not have it; it is so short that it stands in several
places or says nothing; its pieces are no passage; it leaves a negation out."""

MAX_ATTRIBUTION_LENGTH = 80
"""Characters of `(chapter 2)` or `— The Author, p. 7` after a quote; longer is part of it."""
MAX_ATTRIBUTION_WORDS = 8

MAX_OMITTED = 500
"""Characters, in normal form, that one omission may leave out."""
MIN_PIECE_LETTERS = 4
"""Letters of a piece of one word; any piece of two words will do, and two characters in scripts that
write no blanks between words."""
MIN_LONGEST_WORDS = 3
"""Words of the longest piece of a quote with omissions."""
_MAX_TRIED = 200
"""Places looked at closely where the pieces of one quote stand near each other."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote of a reply, and where the document says it.

    Attributes:
        text: The quote as the reply gives it, less an attribution that was left out to verify it.
        spans: Where it stands: one span, or one for each piece of a quote with omissions, in the
            order of the quote. Empty if it was not found; a quote that leaves a negation out has some.
        result: How it was found, or why it is not verified.
    """

    text: str
    spans: tuple[Span, ...]
    result: Match | Doubt

    @property
    def is_verified(self) -> bool:
        """Whether the document says it."""
        return self.result in {"exact", "normalised", "elided"}


_OMISSION = re.compile(r"[(\[]?(?:…|\.[ ]?\.[ ]?\.)[)\]]?")
_ATTRIBUTION = re.compile(
    rf"""(?:(?<=[.!?…"'”’»」』。！？]\s)|(?<=\n)) (?:[–—―]|--?) [^\n]{{1,{MAX_ATTRIBUTION_LENGTH}}} $
    | [(\[（【] (?P<source>[^()\[\]（）【】]{{1,{MAX_ATTRIBUTION_LENGTH}}}) [)\]）】] [\s.]* $""",
    re.VERBOSE,
)
_SENTENCE_END = re.compile(r"""[.!?…"'”’»」』。！？]$""")
_LOCATOR = re.compile(
    r"""^[\d\s,;:.–-]+$ | (?<!\d)(?:1[5-9]|20)\d\d(?!\d) | § | [第页頁章节節]
    | \b(?:pp?|pages?|ch|chap|chapters?|sec|sections?|lines?|vol|volume|par|paras?|paragraphs?|verses?
      |act|scene|no|note|art|articles?|clauses?|part|book|Seiten?|S|Kapitel|Absatz|Zeile|chapitre|capítulo
      |página|pagina|capitolo|стр|гл|страница|глава)\b[.]?\s*(?:\d|[ivxlc]+\b)""",
    re.VERBOSE | re.IGNORECASE,
)
_ASIDE = re.compile(r"[ \t]*\n?[ \t]*[(\[（【]")
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_NOTHING = re.compile(r"""[\s.…,;:'"“”„‘’«»()\[\]*_–—-]*""")


class Verifier:
    r"""Looks quotes up in one document.

    Args:
        text: The document, as spans are to refer to it.

    Example:
        >>> verifier = Verifier("He called it\na “well-known” fact. Nobody spoke.")
        >>> verifier.verify("He called it a 'well-known' fact").spans
        (Span(start=0, end=32),)
        >>> verifier.verify("He called it a little-known fact").result
        'missing'
        >>> verifier.verify("He called it ... fact.").result
        'elided'
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def verify(self, quote: str) -> Quote:
        """Find a quote in the document.

        Punctuation at both ends may differ; a unit at the end and a negation right before the quote may be
        left off, and are in the span.
        An attribution after the quote, `(chapter 2)` or `— The Author`, is left out if the document does
        not have it. Omissions (`...`, `…`, `[…]`) divide a quote into pieces.

        Args:
            quote: As `find_quotes` gives it, without its marks.

        Returns:
            The quote with the first place where the document has it, or why it is not verified.
        """
        doubts: list[Quote] = []
        for wording in self._wordings(quote):
            for pieces in _divided(wording):
                found = (
                    self._elided(wording, pieces) if pieces[1:] else self._whole(wording, pieces[0])
                )
                if found.is_verified and wording != quote:
                    end = found.spans[-1].end
                    if not _SENTENCE_END.search(wording) and _ASIDE.match(self._text, end):
                        continue  # what the document has there is quoted wrongly
                    # Something was left out: it is not the quote as it is.
                    result = "normalised" if found.result == "exact" else found.result
                    found = Quote(wording, found.spans, result)
                if found.is_verified:
                    return found
                doubts.append(found)
        # A quote that was found but does not count: that says more than that it was not found.
        return next((d for d in doubts if d.result != "missing"), Quote(quote, (), "missing"))

    @cached_property
    def _normal(self) -> NormalText:
        return NormalText(self._text)

    def _wordings(self, quote: str) -> list[str]:
        """A quote as it is, and without the attribution at its end if it may have one."""
        found = _ATTRIBUTION.search(quote)
        if found is None:
            return [quote]
        rest, source = quote[: found.start()].rstrip(), found["source"]
        aside = quote[found.start() :] if source is None else source
        if not _LOCATOR.search(aside) and (
            negations(aside)
            or any(map(str.isdigit, aside))
            or len(aside.split()) > MAX_ATTRIBUTION_WORDS
            or (source and source[0].islower() and not _SENTENCE_END.search(rest))
        ):
            return [quote]  # `(who agreed)` and `(5 mg)` are part of the sentence
        return [quote, rest]

    def _whole(self, wording: str, piece: str) -> Quote:
        """A quote without omissions."""
        needle = NormalText(piece)
        first, last = needle.core
        found = self._exactly(piece) if first < last else None
        if found is None:
            if (at := self._normal.find(needle)) is None:
                return Quote(wording, (), "missing")
            found = self._normal.original(*at)
        if not is_passage(piece) and not self._stands_once(needle):
            return Quote(wording, (), "short")
        start, end = with_units(self._text, found.start, found.end)
        span = Span(with_negation(self._text, start), end)
        is_exact = self._text[span.start : span.end] == piece
        return Quote(wording, (span,), "exact" if is_exact else "normalised")

    def _exactly(self, quote: str) -> Span | None:
        at = -1
        for _ in range(MAX_PLACES):
            at = self._text.find(quote, at + 1)
            if at < 0:
                return None
            if not (self._normal.is_inside(at) or self._normal.is_inside(at + len(quote))):
                return Span(at, at + len(quote))
        return None

    def _stands_once(self, quote: NormalText) -> bool:
        """Whether a short quote says something, and where."""
        at = self._normal.find(quote)
        is_said = sum(map(str.isalnum, quote.text)) > 1
        return is_said and at is not None and self._normal.find(quote, at[1]) is None

    def _elided(self, wording: str, pieces: Sequence[str]) -> Quote:
        """A quote with omissions."""
        needles = [NormalText(piece) for piece in pieces]
        doubtful: tuple[Span, ...] = ()
        for places in islice(self._near_each_other(needles), _MAX_TRIED):
            spans = self._spans(places)
            gaps = [Span(one.end, other.start) for one, other in pairwise(spans)]
            left_out = [self._text[gap.start : gap.end] for gap in gaps]
            if all(map(_NOTHING.fullmatch, left_out)):
                return Quote(wording, (Span(spans[0].start, spans[-1].end),), "normalised")
            if not self._is_one_passage(spans):
                continue
            if not _are_long_enough(pieces):
                return Quote(wording, (), "short")
            if not any(map(negations, left_out)):
                return Quote(wording, spans, "elided")
            doubtful = doubtful or spans
        if doubtful:
            return Quote(wording, doubtful, "negation")
        is_there = all(self._normal.find(needle) for needle in needles)
        return Quote(wording, (), "apart" if is_there else "missing")

    def _near_each_other(self, needles: Sequence[NormalText]) -> Iterator[list[Range]]:
        """Where pieces follow each other closely: for each place of the first, the nearest others."""
        begin = 0
        while (first := self._normal.find(needles[0], begin)) is not None:
            begin = first[0] + 1
            places = [first]
            for i, needle in enumerate(needles[1:], start=1):
                last = places[-1][1]
                reach = last + MAX_OMITTED + len(needle.text)
                if (found := self._normal.find(needle, last, reach)) is None:
                    # Leap to where the next piece is; before it no place can do.
                    ahead = self._normal.find(needle, last)
                    if ahead is None:
                        return
                    room = sum(MAX_OMITTED + len(each.text) for each in needles[:i])
                    begin = max(begin, ahead[0] - room)
                    break
                places.append(found)
            else:
                # The first place of a common piece may be sentences before the next piece.
                for i in reversed(range(len(needles) - 1)):
                    low = places[i][0]
                    nearer = self._normal.rfind(needles[i], low, places[i + 1][0])
                    places[i] = nearer or places[i]
                begin = max(begin, places[0][0] + 1)
                yield places

    def _spans(self, places: Sequence[Range]) -> tuple[Span, ...]:
        """Spans of pieces with the units of their numbers, if the other pieces let them be."""
        spans: list[Span] = []
        for i, place in enumerate(places):
            found = self._normal.original(*place)
            start, end = with_units(self._text, found.start, found.end)
            start = start if spans else with_negation(self._text, start)
            low = spans[-1].end if spans else 0
            high = self._normal.original(*places[i + 1]).start if places[i + 1 :] else end
            spans.append(
                Span(start if start >= low else found.start, end if end <= high else found.end)
            )
        return tuple(spans)

    def _is_one_passage(self, spans: Sequence[Span]) -> bool:
        """Whether what is left out between pieces is of one sentence, or ends where one begins."""
        begin, end = spans[0].start, spans[-1].end
        passage = self._text[begin:end]
        if any(_PARAGRAPH_END.search(self._text, a.end, b.start) for a, b in pairwise(spans)):
            return False
        starts = [begin + sentence.start for sentence in sentences(passage)]
        for one, other in pairwise(spans):
            begun = [start for start in starts if one.end <= start <= other.start]
            if begun and not _NOTHING.fullmatch(self._text, begun[-1], other.start):
                return False
        return True


def _divided(wording: str) -> list[list[str]]:
    """A quote as one piece and, if it has omissions, as the pieces that they leave."""
    pieces = [piece.strip() for piece in _OMISSION.split(wording)]
    pieces = [piece for piece in pieces if any(map(str.isalnum, piece))]
    if not pieces or pieces == [wording]:
        return [[wording]]
    return [[wording], pieces]


def _are_long_enough(pieces: Sequence[str]) -> bool:
    """Whether pieces of a quote say so much that their order and distance mean something."""
    for piece in pieces:
        letters = sum(map(str.isalnum, piece))
        if n_words(piece) < 2 and letters < MIN_PIECE_LETTERS:
            return False
    return max(map(n_words, pieces)) >= MIN_LONGEST_WORDS
