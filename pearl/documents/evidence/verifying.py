"""Find the spans of the document that verify quotes, or the reason why none does.

A quote is looked up literally, then in normal form (see `normal`). The pieces of a quote with
omissions must occur in order, close together, in one paragraph; each omission lies within one sentence
or ends at the beginning of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from pearl.documents.evidence.finding import TableRowFinder, is_passage, n_words
from pearl.documents.evidence.normal import (
    MAX_PLACES,
    NormalText,
    Range,
    is_inside,
    normal_text,
)
from pearl.documents.passages import sentences
from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern

Match = Literal["exact", "normalised", "elided"]
"""Form of a quote: literal, with typographic differences, or with omissions."""

Doubt = Literal["missing", "short", "apart"]
"""Why a quote is not verified: it is not in the document; it is too short; its pieces do not form a
passage."""

MAX_ATTRIBUTION_LENGTH = 80
"""Maximum characters of an attribution after a quote: `(chapter 2)`, `— The Author, p. 7`."""

MAX_OMITTED = 500  # maximum characters of one omission, in normal form
MIN_PIECE_LETTERS = 4
"""Minimum letters of a one-word piece; pieces of two words, or of two characters in scripts without
blanks, always qualify."""
MIN_LONGEST_WORDS = 3  # minimum words of the longest piece of a quote with omissions
_MAX_TRIED = 200  # maximum candidate places examined for the pieces of one quote


class Quote(Struct, frozen=True):
    """A quote of a reply, and its place in the document."""

    text: str
    spans: tuple[Span, ...]
    result: Match | Doubt

    @property
    def is_verified(self) -> bool:
        """Whether the document contains it."""
        return self.result in {"exact", "normalised", "elided"}


_OMISSION = lazy_pattern(r"[(\[]?(?:…|\.[ ]?\.[ ]?\.)[)\]]?")  # …, ..., . . ., [...]
_ATTRIBUTION = lazy_pattern(
    rf"""(?:(?<=[.!?…"'”’»」』。！？]\s)|(?<=\n)) (?:[–—―]|--?) \s [^\n]{{1,{MAX_ATTRIBUTION_LENGTH}}} $
    | (?<=[.!?…"'”’»」』。！？]) \s* [(\[（【] [^()\[\]（）【】]{{1,{MAX_ATTRIBUTION_LENGTH}}} [)\]）】] [\s.]* $""",
    re.VERBOSE,
)
"""An attribution after a whole sentence, on its line or the next; the quote is looked up without it."""
_BETWEEN = lazy_pattern(r"""(?<=[^\W\d_])[\s.,;:'"“”„‘’«»()\[\]*]++(?=[^\W\d_]|(?<=\s)\d)""")
"""Marks between two words, or a word and a number, except marks that may be a sign or part of a number."""
_PUNCTUATION = ".…,;:'\"“”„‘’«»()[]*_–—-"


class Verifier:
    """Verifies quotes against one document."""

    def __init__(self, text: str, rows: TableRowFinder | None = None) -> None:
        self._text = text
        self._rows = rows
        self._found: dict[str, tuple[int, list[Span]]] = {}
        """The first places of a quote, with the number that was asked for."""

    def verify(self, quote: str) -> Quote:
        """Find a quote. Punctuation may differ, it may end in an attribution or have omissions; a row is found by cells."""
        doubts: list[Quote] = []
        attribution = _ATTRIBUTION.search(quote)
        for wording in [quote, quote[: attribution.start()].rstrip()] if attribution else [quote]:
            for pieces in _divided(wording):
                if pieces[1:]:
                    found = next(self._elided(wording, pieces))
                else:
                    found = self._whole(wording, pieces[0])
                if found.is_verified:
                    # Without its attribution, this is not a literal quote.
                    is_other = wording != quote and found.result == "exact"
                    return replace(found, result="normalised") if is_other else found
                doubts.append(found)
        if self._rows is not None:
            spans = list(islice(self._rows.find(quote), 2))
            if spans and (len(spans) == 1 or is_passage(quote)):
                return Quote(quote, (spans[0],), "normalised")
            doubts += [Quote(quote, (), "short")] if spans else []
        # The reason for a rejected match is more useful than "missing".
        return next((d for d in doubts if d.result != "missing"), Quote(quote, (), "missing"))

    @property
    def length(self) -> int:
        """Characters of the document."""
        return len(self._text)

    @cached_property
    def _normal(self) -> NormalText:
        return normal_text(self._text)

    @cached_property
    def _words(self) -> NormalText:
        return normal_text(_as_words(self._text))

    def _whole(self, wording: str, piece: str) -> Quote:
        """A quote without omissions."""
        needle = normal_text(piece)
        first, last = needle.core
        exact = self._exactly(piece) if first < last else None
        is_long = is_passage(piece)
        # A long quote may occur several times, and the first place counts; a short one must occur once.
        places = [] if exact and is_long else self._first_places(piece, 2)
        if not (exact or places):
            return Quote(wording, (), "missing")
        is_said = sum(map(str.isalnum, needle.text)) > 1
        if not (is_long or (is_said and len(places) == 1)):
            return Quote(wording, (), "short")
        span = exact or places[0]
        is_exact = self._text[span.start : span.end] == piece
        return Quote(wording, (span,), "exact" if is_exact else "normalised")

    def places(self, quote: str) -> Iterator[Span]:
        """Every place of a quote without omissions, however short; without such a place, the places of its words."""
        begin = 0
        for is_loose in (False, True):
            needle = normal_text(_as_words(quote) if is_loose else quote)
            text = self._words if is_loose else self._normal
            while (at := text.find(needle, begin)) is not None and at[0] < at[1]:
                yield text.original(*at)
                begin = at[1]
            if begin:
                return

    def _first_places(self, quote: str, n: int) -> Sequence[Span]:
        """The first places of a quote, which are kept."""
        known, found = self._found.get(quote, (0, []))
        if known < n and len(found) == known:  # There may be more
            found = list(islice(self.places(quote), n))
            self._found[quote] = n, found
        return found[:n]

    def every(self, quote: str) -> list[Quote]:
        """Every place of a quote, in order; only the one of `verify` if the others are not certain."""
        first = self.verify(quote)
        if not (first.is_verified or first.result == "short"):
            return [first]
        match = "normalised" if first.result == "exact" else first.result
        spans: list[tuple[Span, ...]] = [
            (place,) for place in self._first_places(first.text, MAX_PLACES)
        ]
        if not spans and (pieces := _divided(first.text)[-1])[1:]:
            elided = islice(self._elided(first.text, pieces), _MAX_TRIED)
            spans = [each.spans for each in elided if each.is_verified]
        if not spans and self._rows is not None:
            spans = [(place,) for place in islice(self._rows.find(quote), MAX_PLACES)]
        apart = [
            place for i, place in enumerate(spans)
            if not i or place[0].start >= spans[i - 1][-1].end
        ]  # fmt: skip
        if first.is_verified and (first.spans not in apart or len(apart) == 1):
            return [first]
        return [Quote(first.text, place, match) for place in apart] or [first]

    def _exactly(self, quote: str) -> Span | None:
        at = -1
        for _ in range(MAX_PLACES):
            at = self._text.find(quote, at + 1)
            if at < 0:
                return None
            if not (is_inside(self._text, at) or is_inside(self._text, at + len(quote))):
                return Span(at, at + len(quote))
        return None

    def _elided(self, wording: str, pieces: Sequence[str]) -> Iterator[Quote]:
        """Yield a quote with omissions for each of its places, and at last without a place, as `apart` or `missing`."""
        needles = [normal_text(piece) for piece in pieces]
        for places in islice(self._near_each_other(needles), _MAX_TRIED):
            spans = tuple(self._normal.original(*place) for place in places)
            gaps = [Span(one.end, other.start) for one, other in pairwise(spans)]
            left_out = [self._text[gap.start : gap.end] for gap in gaps]
            if not any(map(_says_something, left_out)):
                yield Quote(wording, (Span(spans[0].start, spans[-1].end),), "normalised")
                continue
            if not self._is_one_passage(spans):
                continue
            # Whether the pieces of a quote are long enough for a match to be significant
            are_long = (
                n_words(p) > 1 or sum(map(str.isalnum, p)) >= MIN_PIECE_LETTERS for p in pieces
            )
            if not (all(are_long) and max(map(n_words, pieces)) >= MIN_LONGEST_WORDS):
                yield Quote(wording, (), "short")
                continue
            yield Quote(wording, spans, "elided")
        is_there = all(self._normal.find(needle) for needle in needles)
        yield Quote(wording, (), "apart" if is_there else "missing")

    def _near_each_other(self, needles: Sequence[NormalText]) -> Iterator[list[Range]]:
        """Candidate places: for each match of the first piece, the nearest matches of the others."""
        begin = 0
        while (first := self._normal.find(needles[0], begin)) is not None:
            begin = first[0] + 1
            places = [first]
            for i, needle in enumerate(needles[1:], start=1):
                last = places[-1][1]
                reach = last + MAX_OMITTED + len(needle.text)
                if (found := self._normal.find(needle, last, reach)) is None:
                    # Skip to the next match of the following piece.
                    ahead = self._normal.find(needle, last)
                    if ahead is None:
                        return
                    reach = sum(MAX_OMITTED + len(each.text) for each in needles[:i])
                    begin = max(begin, ahead[0] - reach)
                    break
                places.append(found)
            else:
                # The first match of a common piece may be sentences before the next piece.
                for i in reversed(range(len(needles) - 1)):
                    low = places[i][0]
                    nearer = self._normal.find(needles[i], low, places[i + 1][0], is_last=True)
                    places[i] = nearer or places[i]
                begin = max(begin, places[0][0] + 1)
                yield places

    def _is_one_passage(self, spans: Sequence[Span]) -> bool:
        """Whether each omission is within one sentence, or ends at the beginning of one."""
        begin, end = spans[0].start, spans[-1].end
        passage = self._text[begin:end]
        gaps = [self._text[a.end : b.start].split("\n") for a, b in pairwise(spans)]
        if any(not line.strip() for lines in gaps for line in lines[1:-1]):
            return False  # a blank line ends a paragraph
        starts = [begin + sentence.start for sentence in sentences(passage)]
        for one, other in pairwise(spans):
            begun = [start for start in starts if one.end <= start <= other.start]
            if begun and _says_something(self._text[begun[-1] : other.start]):
                return False
        return True


def _says_something(text: str) -> bool:
    """Whether a text is more than blanks and punctuation."""
    return any(not (each.isspace() or each in _PUNCTUATION) for each in text)


def _as_words(text: str) -> str:
    """A text of the same length, without the punctuation between its words."""

    def blank(between: re.Match[str]) -> str:
        is_apart = any(map(str.isspace, between[0]))  # else it may be part of the word
        return " " * len(between[0]) if is_apart else between[0]

    return _BETWEEN.sub(blank, text)


def _divided(wording: str) -> list[list[str]]:
    """The quote as one piece and, if it has omissions, split into pieces."""
    pieces = [piece.strip() for piece in _OMISSION.split(wording)]
    pieces = [piece for piece in pieces if any(map(str.isalnum, piece))]
    return [[wording]] if pieces in ([], [wording]) else [[wording], pieces]
