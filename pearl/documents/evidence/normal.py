"""The normal form of a text, equal for all typographic variants of a wording, with a map back.

It removes differences that models and typesetters introduce without changing the wording: line
breaks and blanks, quotation marks, dashes, line-end hyphens, composed and decomposed accents,
full-width forms and ligatures. Letters, case, digits, signs and decimals must agree.

Invariant: a range that is found has the normal form of the quote, and begins and ends between words:
"he left" is not in "she left". A number is one token with its sign, comparison and currency before it,
its decimals, groups, fractions and range, and the `%`, `°` or currency after it: `5` is not in `1.5`,
`-5`, `< 5`, `$5`, `1 250`, `1/2`, `10-20` or `5%`. A hyphen, a slash or an apostrophe between letters
joins words, also over a line break. Normalisation takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property, lru_cache

from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern

_REACH = 24  # characters inspected on either side of a boundary; no rule needs more
_AT = "\0"

_W = r"[^\W_]"
_LETTER = r"[^\W\d_]"
_HYPHEN = r"[-\u2010\u2011\xad]"
_ANY_DASH = r"[-\u2010-\u2013\u2212]"  # up to the en dash: an em dash is not part of a number
_SPACE = r"[ \u00a0\u2009\u202f]"  # on the same line
_CURRENCY = "[$€£¥₹₩₽¢]"
_HAN_NUMBER = "[〇零一二三四五六七八九十百千万萬亿億兆两兩]"
_DECIMAL = r"[-\u2013\u2212+]?[.·]?\d"


def _cut(before: str, after: str) -> str:
    """The pattern of a boundary between `before` and `after`; `_AT` marks the offset that is examined."""
    return f"{before}[^{_AT}]*{_AT}{{1,2}}{after}"


def _join(before: str, between: str, after: str, backwards: str | None = None) -> str:
    """Patterns of a token `before between after` that is cut before or after its middle, such as the point of `1.5`."""
    joint = between if backwards is None else backwards
    return f"{_cut(joint + before, after)}|{_cut(before, between + after)}"


_JOINED = lazy_pattern(
    "|".join((
        _join(r"\d", r"[.,:'’·/^×*]", r"\d"),  # 1.5, 10:30, 1/2, 10^5
        _join(_W, rf"{_HYPHEN}(?:[ \t]*\n\s*)?", _W, rf"(?:\s*\n[ \t]*)?{_HYPHEN}"),  # well-known
        _join(r"\d", rf"{_ANY_DASH}(?:[ \t]*\n\s*)?", _W, rf"(?:\s*\n[ \t]*)?{_ANY_DASH}"),  # 10–20, 12-B
        _join(_W, _ANY_DASH, r"\d"),  # B–12
        _join(r"\d", rf"{_SPACE}?(?:{_ANY_DASH}|[±×]){_SPACE}?", r"\d"),  # 10 - 20, 5 ± 2
        _join(rf"(?:\d{{3}}{_SPACE})*\d{{1,3}}(?![\d.,])", _SPACE, r"\d{3}(?!\d)"),  # 1 250 000
        _join(r"\d{1,3}(?!\d)", f"{_SPACE}?", r"(?:\d{1,2}[/⁄]\d{1,2}(?![\d/])|[¼-¾⅐-⅞])"),  # 1 1/2, 1½
        _join(_W, "[/_@]", _W),  # mg/dL, a_b, a@b
        _cut(rf"[.·](?:{_AT}|[\s(\[<>~≈±$€£+–−-])", r"\d"),  # the point of .5
        _cut(rf"[-–−+±](?:{_AT}|[^\w–—-])", r"[.·]?\d"),  # the sign of -5
        _cut(rf"{_SPACE}?(?:[<≤≥≦≧⩽⩾≠≈~±]|>[ \t]*[^\s>{_AT}])", _DECIMAL),  # < 5, ≥5; `> 5` at the start of a line is a quote
        _cut(_CURRENCY, _DECIMAL),  # $5
        _cut(r"\d", rf"(?:[%‰°]|{_CURRENCY})(?!{_SPACE}?\d)"),  # 5%, 5€
        _cut(_LETTER, rf"['’ʼ](?!s\b|[\u3040-\u9fff]){_LETTER}"),  # can't; `the dog` may be quoted from `the dog's`
        _cut(_HAN_NUMBER, _HAN_NUMBER),  # 二十五
        _cut(r"\d", r"[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]"),  # 5月
    ))
)  # fmt: skip


_WORD_ENDS = frozenset(" \n.,;:!?)")


def is_inside_token(text: str, at: int) -> bool:
    """Whether an offset is inside a number or a compound word."""
    after = text[at : at + 1]
    # Most words begin behind one blank, and end at a blank or a mark; no token is joined there.
    if after.isalpha() and text[at - 1 : at] == " " and not text[at - 2 : at - 1].isspace():
        return False
    if after in _WORD_ENDS and text[at - 1 : at].isalpha():
        return False
    before = text[max(at - _REACH, 0) : at][::-1]
    # The second mark stands for the beginning of the text.
    return _JOINED.match(f"{before}{_AT}{_AT}{text[at : at + _REACH]}") is not None


UNSPACED = lazy_pattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai and Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts without blanks between words; the last line is Chinese and Japanese."""

_EDGES = " '-.,:;!?…*_#()[]{}<>·•¿¡、。〈〉《》〔〕【】،؛؟।"
"""Characters that may differ at both ends of a quote, in normal form. Not `%`: it is part of a
number."""


MAX_PLACES = 5_000
"""Maximum matches inside words that are examined: a text without word breaks has one everywhere."""

Range = tuple[int, int]  # start and end offsets in a normal form


def normalise(text: str) -> str:
    """The normal form of a text, equal for all typographic variants of a wording."""
    return normal_text(text).text


_BLANK, _DASH, _MARK = " ", "-", "'"
_QUOTATION_MARKS = frozenset("\"'`´‘’‚‛“”„‟‹›«»′″‴ʹʺʻʼʽ׳״「」『』〝〞〟")
_DASHES = frozenset("\xad\u2043\u2212")
"""Dashes outside the Unicode category: soft hyphen, bullet hyphen, minus."""
_TATWEEL = "\u0640"  # elongates an Arabic word, like letter spacing


def _plain(character: str) -> str:
    """The normal form of one character."""
    # Layout forms only: full NFKC would turn 10² into 102.
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
    """The class of a character for the rules below, as one ASCII character."""
    if plain in {"", _BLANK, _DASH, _MARK}:
        return plain or "z"
    if len(plain) > 1:
        return "x" if plain[0].isalpha() else "…"
    category = unicodedata.category(plain)
    # Korean vowels and finals compose with the preceding consonant, as accents do.
    if category[0] == "M" or "\u1160" <= plain <= "\u11ff":
        return "n" if UNSPACED.match(plain) else "m"
    if category[0] == "L":
        return "c" if UNSPACED.match(plain) else "a"
    return "0" if category[0] == "N" else "."


class _FoldTable(dict[int, str]):
    """A table for `str.translate`, filled on demand."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> str:
        self[code] = self._rule(chr(code))
        return self[code]


_PLAIN = _FoldTable(lambda character: p if len(p := _plain(character)) == 1 else character)
_KINDS = _FoldTable(lambda character: _kind(_plain(character)))

_SIGN = "\u02d7"  # the minus of a number, distinct from other dashes: `was -5` is not `was - 5`
# the dash of "was -5" or "(−.5", not that of "10-20" or "10 -20"
_SIGNS = lazy_pattern(r"[-−–‐‑](?=[.·]?\d)(?<![\w–—-][-−–‐‑])(?<!\d[ \u00a0][-−–‐‑])")
_LINE_END = lazy_pattern(r"\xad+|[-‐‑\xad]\s+|.*\n", re.DOTALL)
"""A hyphen that may come from line breaking: `exam-\\nple`, or `exam- ple` where lines were
joined."""

_SPACED = frozenset("a0mx")
_LETTERS = frozenset("acmnx")
_SOLE = frozenset("ac")  # Letters that stand for themselves
_POINTS = frozenset(".,:/·")

# Every alternative begins with the same character set, which keeps the search fast.
_EDIT = r"""[ z'x…-] (?:(?<![a0mx][ ])|(?![a0x])) (?:           # not: a blank between two words
      (?<=[^ z'-][ ]) (?![ z'-]|.?0) (?P<dropped>)           # a lone blank beside a mark
    | (?<=[x…]) [mn]*                                        # a ligature, an ellipsis
    | (?<=') [ z']* '                                        # nested marks of quotation
    | (?<=[ z-]) [ z-]*
    )"""
_EDITS = lazy_pattern(_EDIT, re.VERBOSE)
_EDITS_OR_CLUSTERS = lazy_pattern(rf"[^ zmn-][mn]+|{_EDIT}", re.VERBOSE)
"""Matches, in a string of kinds, every place where the normal form may differ in length."""


_BLOCK = 4_096
"""Minimum characters normalised at once. Blocks of ASCII alone are fast, and of short blocks more are such."""

_WITHIN_WORD = lazy_pattern(r"[^\W\d_](?=[^\W\d_])")


def _beside(text: str, at: int) -> tuple[str, str]:
    """The classes of the characters before and after an offset; "" for none."""
    kinds = text[max(at - 1, 0) : at + 1].translate(_PLAIN).translate(_KINDS)
    return (kinds[:1], kinds[1:]) if at else ("", kinds)


def is_inside(text: str, at: int) -> bool:
    """Whether an offset is inside a word, a number or a character."""
    before, after = _beside(text, at)
    if after in {"m", "n"} or (before in _SPACED and after in _SPACED):
        return True
    return is_inside_token(text, at)


def _edited(source: str, plain: str, kinds: str, start: int, end: int) -> str:
    """The normal form of a range that an edit matches."""
    edited = kinds[start:end]
    if edited == _BLANK:
        return _BLANK if _divides_numbers(source, kinds, start, end) else ""
    if edited[0] in {"x", "…"}:
        return unicodedata.normalize("NFC", _plain(plain[start]) + plain[start + 1 : end])
    if edited[-1] in {"m", "n"}:
        return unicodedata.normalize("NFC", plain[start:end])
    if edited[0] == _MARK:
        return _MARK
    before, after = kinds[max(start - 1, 0) : start], kinds[end : end + 1]
    if _DASH in edited:
        # Between letters it may be a line-end hyphen; this is ambiguous.
        return "" if before in _LETTERS and after in _LETTERS else _DASH
    # Only a blank between words is significant.
    is_counted = before in _SPACED and after in _SPACED
    is_counted = is_counted or _divides_numbers(source, kinds, start, end)
    return _BLANK if _BLANK in edited and is_counted else ""


def _divides_numbers(source: str, kinds: str, start: int, end: int) -> bool:
    """Whether blanks separate two numbers: `1, 250`, `of .5`, `. 5`."""
    if kinds[end : end + 1] == "0":
        return source[max(start - 1, 0) : start] in _POINTS
    return source[end : end + 1] in _POINTS and kinds[end + 1 : end + 2] == "0"


SHORT = 2_000  # Maximum characters of a text whose normal form is cached


class NormalText:
    """A text in normal form, with a map back to the original."""

    def __init__(self, original: str) -> None:
        self._source = original
        # Pieces alternate: unchanged, edited, unchanged, ...; these are their start offsets.
        self._originals = array("q", [0])
        self._normals = array("q", [0])
        self._hyphens = array("q")
        self._may_break = bytearray()
        begin = n_normal = 0
        parts: list[str] = []
        while begin < len(original):
            # Between two letters, no edit, and no text that an edit depends on, crosses the end.
            letters = (m.end() for m in _WITHIN_WORD.finditer(original, begin + _BLOCK))
            ends = (at for at in letters if _SOLE.issuperset(_beside(original, at)))
            end = next(ends, len(original))
            parts.append(self._normal_block(begin, end, n_normal))
            n_normal += len(parts[-1])
            begin = end
        self.text = "".join(parts)

    def _normal_block(self, first: int, last: int, n_normal: int) -> str:
        """The normal form of a block of the text, whose edits are recorded; `n_normal` characters are before it."""
        source = self._source[first:last]
        plain = _SIGNS.sub(_SIGN, source).translate(_PLAIN)
        kinds = plain.translate(_KINDS)
        is_composed = unicodedata.is_normalized("NFC", plain)
        pieces: list[str] = []
        originals, normals = list[int](), list[int]()
        begin = 0
        for edit in (_EDITS if is_composed else _EDITS_OR_CLUSTERS).finditer(kinds):
            start, end = edit.span()
            pieces.append(plain[begin:start])
            n_normal += start - begin
            begin = end
            originals += (first + start, first + end)
            if edit.lastindex:  # The most frequent edit by far
                normals += (n_normal, n_normal)
                continue
            piece = _edited(source, plain, kinds, start, end)
            if not piece and _DASH in kinds[start:end]:
                self._hyphens.append(n_normal)
                self._may_break.append(_LINE_END.fullmatch(source, start, end) is not None)
            pieces.append(piece)
            normals += (n_normal, n_normal + len(piece))
            n_normal += len(piece)
        pieces.append(plain[begin:])
        self._originals.extend(originals)
        self._normals.extend(normals)
        return "".join(pieces)

    @cached_property
    def core(self) -> tuple[int, int]:
        """The range of the normal form without the punctuation at both ends."""
        start = len(self.text) - len(self.text.lstrip(_EDGES))
        end = len(self.text.rstrip(_EDGES))
        if self.text[start : start + 1].isdigit():
            before = self.text[:start]
            start -= len(before) - len(before.rstrip("<>"))
            if before.endswith(".") and not before.endswith(".."):
                start -= 1
        return start, max(start, end)

    def find(
        self, quote: NormalText, begin: int = 0, end: int | None = None, *, is_last: bool = False
    ) -> Range | None:
        """The first or the last match of a quote in a range, with its punctuation if that agrees."""
        end = len(self.text) if end is None else end
        first, last = quote.core
        bare = quote.text[first:last]
        search = self.text.rfind if is_last else self.text.find
        for _ in range(MAX_PLACES if bare else 0):
            at = search(bare, begin, end)
            if at < 0 or self._has(quote, at):
                return None if at < 0 else self._widen(at, quote)
            if is_last:
                end = at + len(bare) - 1
            else:
                begin = at + 1
        return None

    def _has(self, quote: NormalText, at: int) -> bool:
        """Whether the match at an offset consists of whole words with the same hyphens."""
        first, last = quote.core
        end = at + last - first
        if not self._is_whole(at, end):
            return False
        all_here, fixed_here = self._joins(at, end)
        all_there, fixed_there = quote._joins(first, last)
        return fixed_here <= all_there and fixed_there <= all_here

    def _joins(self, start: int, end: int) -> tuple[frozenset[int], frozenset[int]]:
        """The positions of removed hyphens in a range: all, and only those inside a line."""
        if not self._hyphens:
            return frozenset(), frozenset()
        among = range(bisect_right(self._hyphens, start), bisect_left(self._hyphens, end))
        return (
            frozenset(self._hyphens[i] - start for i in among),
            frozenset(self._hyphens[i] - start for i in among if not self._may_break[i]),
        )

    def original(self, start: int, end: int) -> Span:
        """Map a non-empty range of the normal form to the original."""
        first, last = self._piece(start), self._piece(end - 1)
        begin = self._originals[first] + (0 if first % 2 else start - self._normals[first])
        if last % 2:
            return Span(begin, self._originals[last + 1])
        return Span(begin, self._originals[last] + end - self._normals[last])

    def _is_whole(self, start: int, end: int) -> bool:
        """Whether a range of the normal form covers whole words of the original."""
        first, last = self._piece(start), self._piece(end - 1)
        if first % 2 and start != self._normals[first]:
            return False  # within a ligature
        if last % 2 and end != self._normals[last + 1]:
            return False
        span = self.original(start, end)
        return not (is_inside(self._source, span.start) or is_inside(self._source, span.end))

    def _widen(self, at: int, quote: NormalText) -> Range:
        """Extend the match of a quote's core by the punctuation that agrees."""
        first, last = quote.core
        start = at - first
        end = start + len(quote.text)
        if (first, last) == (0, len(quote.text)):
            return start, end
        if start >= 0 and self.text.startswith(quote.text, start) and self._is_whole(start, end):
            return start, end
        return at, at + last - first

    def _piece(self, at: int) -> int:
        return bisect_right(self._normals, at) - 1


def has_name(text: str, name: str) -> bool:
    """Whether a text contains a name as a whole, not only inside a longer name."""
    at = text.find(name)
    while at >= 0:
        beside = text[max(at - 1, 0) : at] + text[at + len(name) : at + len(name) + 1]
        if not any(each.isalnum() or each == "_" for each in beside):
            return True
        at = text.find(name, at + 1)
    return False


_of_short_text = lru_cache(256)(NormalText)


def normal_text(text: str) -> NormalText:
    """The normal form of a text; those of short texts are cached, because a quote is compared many times."""
    return _of_short_text(text) if len(text) <= SHORT else NormalText(text)
