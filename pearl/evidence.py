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
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pearl.errors import Span

__all__ = ["Match", "Quote", "Verifier", "find_quotes", "normalise"]

Match = Literal["exact", "normalised", "missing"]

MIN_QUOTED_WORDS = 4
MIN_QUOTED_CHARACTERS = 8
"""A shorter inline quotation is a term or a title. Characters are counted in scripts that write
no blanks between words."""

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


_QUOTED_LINE = re.compile(r"[ \t]*>(?:[ \t]+>)*(?:[ \t]+(?P<text>.*))?")
_MARKS = (('(?<!\\w)"', '"', '"(?!\\w)'), *(
    (begin, begin + end, f"[{end}]") for begin, end in ("“”", ("„", "“”"), "«»", "「」")
))  # fmt: skip
_INLINE = re.compile(
    # A quotation may run over a line break, but not over a paragraph's end.
    "|".join(rf"{begin}((?:(?!\n\s*\n)[^{marks}])+){end}" for begin, marks, end in _MARKS)
)
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts that write no blanks between words; the last line is Chinese and Japanese."""


def find_quotes(reply: str) -> list[str]:
    r"""The quotes of a reply in their order: block quotes and longer inline quotations.

    A block quote is a run of lines that begin with `> `. Inline quotations stand in "…", “…”,
    „…“, «…» or 「…」 and have at least four words, or eight characters in scripts that write no
    blanks between words.

    Example:
        >>> find_quotes('He wrote "it was a dark night" there.\n\n> The wind\n> blew.\n')
        ['it was a dark night', 'The wind\nblew.']
    """
    quotes: list[str] = []
    for is_block, text in _paragraphs(reply):
        if is_block:
            quotes += [text.strip()] if text.strip() else []
            continue
        for match in _INLINE.finditer(text):
            quote = match[match.lastindex or 0].strip()
            if _is_passage(quote):
                quotes.append(quote)
    return quotes


def _is_passage(quote: str) -> bool:
    """Whether a quote is more than a term, which stands in many places."""
    n_unspaced = len(_UNSPACED.findall(quote))
    return len(quote.split()) >= MIN_QUOTED_WORDS or n_unspaced >= MIN_QUOTED_CHARACTERS


def _paragraphs(reply: str) -> list[tuple[bool, str]]:
    """Runs of lines, and whether they are a block quote, which is given without its marks."""
    runs: list[tuple[bool, list[str]]] = []
    for line in reply.splitlines():
        quoted = _QUOTED_LINE.fullmatch(line)
        if not runs or runs[-1][0] != bool(quoted):
            runs.append((bool(quoted), []))
        runs[-1][1].append((quoted["text"] or "") if quoted else line)
    return [(is_block, "\n".join(lines)) for is_block, lines in runs]


_OMISSION = re.compile(r"[(\[]?(?:…|\.[ ]?\.[ ]?\.)[)\]]?")
_ATTRIBUTION = re.compile(
    rf"""(?:(?<=[.!?…"'”’»」』。！？]\s)|(?<=\n)) (?:[–—―]|--?) [^\n]{{1,{MAX_ATTRIBUTION_LENGTH}}} $
    | [(\[（【] (?P<source>[^()\[\]（）【】]{{1,{MAX_ATTRIBUTION_LENGTH}}}) [)\]）】] [\s.]* $""",
    re.VERBOSE,
)
_SENTENCE_END = re.compile(r"""[.!?…"'”’»」』。！？]$""")
_EDGES = " '-.,:;!?…*_#()[]{}<>·•¿¡、。〈〉《》〔〕【】،؛؟।"
"""What may differ at both ends of a quote, in normal form. Not `%`: it belongs to a number."""


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
                pieces = [piece.strip() for piece in passage if _core(normalise(piece))]
                if spans := self._find(pieces):
                    shown = [self._text[span.start : span.end] for span in spans]
                    return Quote(wording, spans, "exact" if shown == pieces else "normalised")
        lines = [line for line in quote.split("\n") if line.strip()]
        if len(lines) < 2 or not all(map(_is_passage, lines)):
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
    def _normal(self) -> _Normal:
        return _Normal(self._text)

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


def normalise(text: str) -> str:
    r"""The normal form of a text: the same for all ways to set the same wording.

    Example:
        >>> normalise("a “so-\ncalled” ﬁle") == normalise("a 'so-called'   file")
        True
    """
    return _Normal(text).text


def _core(normal: str) -> str:
    return normal.strip(_EDGES)


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


_BLANK, _DASH, _MARK = " ", "-", "'"
_QUOTATION_MARKS = frozenset("\"'`´‘’‚‛“”„‟‹›«»′″‴ʹʺʻʼʽ׳״「」『』〝〞〟")
_DASHES = frozenset("\xad\u2043\u2212")
"""Beyond those of the Unicode category: soft hyphen, bullet hyphen, minus."""
_TATWEEL = "\u0640"  # stretches an Arabic word, like blanks between letters


def _plain(character: str) -> str:
    """The normal form of one character, by itself."""
    # Of the compatibility forms only those of layout: NFKC also makes 10² to 102.
    if character == "…" or "\ufb00" <= character <= "\uffef":
        character = unicodedata.normalize("NFKC", character)
    if len(character) > 1:
        return character
    category = unicodedata.category(character)
    if character in _DASHES or category == "Pd":
        return _DASH
    if character in _QUOTATION_MARKS:
        return _MARK
    if category == "Cf" or character == _TATWEEL:
        return ""
    if character.isspace():
        return _BLANK
    return unicodedata.normalize("NFC", character)


def _kind(plain: str) -> str:
    """What a character is to the rules below, as one ASCII character."""
    if plain in {"", _BLANK, _DASH, _MARK}:
        return plain or "z"
    if len(plain) > 1:
        return "x" if plain[0].isalpha() else "…"
    category = unicodedata.category(plain)
    # The vowels and finals of Korean compose with the consonant before them, as accents do.
    if category[0] == "M" or "\u1160" <= plain <= "\u11ff":
        return "n" if _UNSPACED.match(plain) else "m"
    if category[0] == "L":
        return "c" if _UNSPACED.match(plain) else "a"
    return "0" if category[0] == "N" else "."


class _Table(dict[int, str]):
    """What `str.translate` puts for each character; fills itself with those that occur."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> str:
        self[code] = self._rule(chr(code))
        return self[code]


_PLAIN = _Table(lambda character: p if len(p := _plain(character)) == 1 else character)
_KINDS = _Table(lambda character: _kind(_plain(character)))

_NUMBER = re.compile(r"\d[.,]\d")
_SPACED = frozenset("a0mx")
_LETTERS = frozenset("acmnx")

# Every alternative begins with the same set, so that a text is searched for nothing else.
_EDITS = re.compile(
    r"""[ z'x…-](?:
      (?<=[x…]) [mn]*                                        # a ligature, an ellipsis
    | (?<=') [ z']* '                                        # nested marks of quotation
    | (?<=[ z-]) (?:(?<![a0mx].)|(?![a0x])|(?<=[z-])) [ z-]* # not: one blank between two words
    )""",
    re.VERBOSE,
)
_EDITS_OR_CLUSTERS = re.compile(rf"[^ zmn-][mn]+|{_EDITS.pattern}", re.VERBOSE)
"""In a string of kinds, where the normal form may be of another length."""


class _Normal:
    """A text in normal form, and the way back.

    Attributes:
        kinds: The kind of each character of the original.
        text: The normal form.
    """

    def __init__(self, original: str) -> None:
        self._source = original
        plain = original.translate(_PLAIN)
        self.kinds = plain.translate(_KINDS)
        is_composed = unicodedata.is_normalized("NFC", plain)
        pieces: list[str] = []
        # Pieces alternate: unchanged, edited, unchanged, ... Here is where each begins.
        self._originals = [0]
        self._normals = [0]
        begin = n_normal = 0
        for edit in (_EDITS if is_composed else _EDITS_OR_CLUSTERS).finditer(self.kinds):
            start, end = edit.span()
            piece = self._edit(plain[start:end], start, end)
            pieces += (plain[begin:start], piece)
            n_normal += start - begin
            self._originals += (start, end)
            self._normals += (n_normal, n_normal + len(piece))
            n_normal += len(piece)
            begin = end
        pieces.append(plain[begin:])
        self.text = "".join(pieces)

    def _edit(self, plain: str, start: int, end: int) -> str:
        kinds = self.kinds[start:end]
        if kinds == _BLANK:  # what `_EDITS` leaves of them; most edits by far
            return ""
        if kinds[0] in {"x", "…"}:
            return unicodedata.normalize("NFC", _plain(plain[0]) + plain[1:])
        if kinds[-1] in {"m", "n"}:
            return unicodedata.normalize("NFC", plain)
        if kinds[0] == _MARK:
            return _MARK
        before, after = self.kinds[max(start - 1, 0) : start], self.kinds[end : end + 1]
        if _DASH in kinds:
            # Between letters it may be the hyphen of a line's end, and nobody can tell.
            return "" if before in _LETTERS and after in _LETTERS else _DASH
        # A blank counts between words only: the others are the typesetter's.
        is_counted = _BLANK in kinds and before in _SPACED and after in _SPACED
        return _BLANK if is_counted else ""

    def find(self, needle: str, begin: int) -> tuple[int, int] | None:
        """The first place of a quote from an offset on, its punctuation with it if it agrees."""
        core = _core(needle)
        at = self.text.find(core, begin)
        while at >= 0 and not self._is_whole(at, at + len(core)):
            at = self.text.find(core, at + 1)
        return None if at < 0 else self._widen(at, core, needle)

    def rfind(self, needle: str, end: int) -> tuple[int, int] | None:
        """The last place of a quote up to an offset."""
        core = _core(needle)
        at = self.text.rfind(core, 0, end)
        while at >= 0 and not self._is_whole(at, at + len(core)):
            at = self.text.rfind(core, 0, at + len(core) - 1)
        return None if at < 0 else self._widen(at, core, needle)

    def original(self, start: int, end: int) -> Span:
        """The range of the original that a non-empty range of the normal form stands for."""
        first, last = self._piece(start), self._piece(end - 1)
        begin = self._originals[first] + (0 if first % 2 else start - self._normals[first])
        if last % 2:
            return Span(begin, self._originals[last + 1])
        return Span(begin, self._originals[last] + end - self._normals[last])

    def is_within_word(self, at: int) -> bool:
        """Whether an offset of the original is inside a word, a number or a character."""
        before, after = self.kinds[max(at - 1, 0) : at], self.kinds[at : at + 1]
        if after in {"m", "n"} or (before in _SPACED and after in _SPACED):
            return True
        return any(_NUMBER.fullmatch(self._source, max(i, 0), i + 3) for i in (at - 2, at - 1))

    def _is_whole(self, start: int, end: int) -> bool:
        """Whether a range of the normal form is words of the original."""
        first, last = self._piece(start), self._piece(end - 1)
        if first % 2 and start != self._normals[first]:
            return False  # within a ligature
        if last % 2 and end != self._normals[last + 1]:
            return False
        span = self.original(start, end)
        return not (self.is_within_word(span.start) or self.is_within_word(span.end))

    def _widen(self, at: int, core: str, needle: str) -> tuple[int, int]:
        """The range of a quote's core with the punctuation that agrees with the quote's."""
        start = at - needle.index(core)
        end = start + len(needle)
        if start >= 0 and self.text.startswith(needle, start) and self._is_whole(start, end):
            return start, end
        return at, at + len(core)

    def _piece(self, at: int) -> int:
        return bisect_right(self._normals, at) - 1
