"""Text → its normal form, the same for all ways to set the same wording, and the way back."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable

from pearl.errors import Span

__all__ = ["UNSPACED", "NormalText", "core", "normalise"]

UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts that write no blanks between words; the last line is Chinese and Japanese."""

_EDGES = " '-.,:;!?…*_#()[]{}<>·•¿¡、。〈〉《》〔〕【】،؛؟।"
"""What may differ at both ends of a quote, in normal form. Not `%`: it belongs to a number."""


def normalise(text: str) -> str:
    r"""The normal form of a text: the same for all ways to set the same wording.

    Example:
        >>> normalise("a “so-\ncalled” ﬁle") == normalise("a 'so-called'   file")
        True
    """
    return NormalText(text).text


def core(normal: str) -> str:
    """A normal form without what may differ at both ends of a quote."""
    return normal.strip(_EDGES)


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
        return "n" if UNSPACED.match(plain) else "m"
    if category[0] == "L":
        return "c" if UNSPACED.match(plain) else "a"
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


class NormalText:
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
        bare = core(needle)
        at = self.text.find(bare, begin)
        while at >= 0 and not self._is_whole(at, at + len(bare)):
            at = self.text.find(bare, at + 1)
        return None if at < 0 else self._widen(at, bare, needle)

    def rfind(self, needle: str, end: int) -> tuple[int, int] | None:
        """The last place of a quote up to an offset."""
        bare = core(needle)
        at = self.text.rfind(bare, 0, end)
        while at >= 0 and not self._is_whole(at, at + len(bare)):
            at = self.text.rfind(bare, 0, at + len(bare) - 1)
        return None if at < 0 else self._widen(at, bare, needle)

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

    def _widen(self, at: int, bare: str, needle: str) -> tuple[int, int]:
        """The range of a quote's core with the punctuation that agrees with the quote's."""
        start = at - needle.index(bare)
        end = start + len(needle)
        if start >= 0 and self.text.startswith(needle, start) and self._is_whole(start, end):
            return start, end
        return at, at + len(bare)

    def _piece(self, at: int) -> int:
        return bisect_right(self._normals, at) - 1
