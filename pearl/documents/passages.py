"""Split a text into passages with spans: sentences and chunks within a token budget; and search terms.

Spans refer to the original text, which is not normalised before it is split. Linear in the length
of the text.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, islice, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Literal

from pearl.errors import Span
from pearl.errors.patterns import lazy_pattern

_MAX_PIECE = 4_000
"""Maximum characters per call of the splitter, which is quadratic on unclosed quotes."""

_LONG_SPEECH = 100  # quoted speech of at least this many characters is split into sentences
_MIN_WIDTH = 30  # minimum characters of a wrapped line

_Range = tuple[int, int]  # start and end offsets

_LINE = lazy_pattern(r"[^\r\n]*(?:\r\n?|\n|\Z)")  # with its end, any of the three kinds
ENDED = lazy_pattern(r"[.!?…:;。！？।][\"'”’»)\]]*\s*\Z")  # ... was paid.”
_ITEM = lazy_pattern(  # - an item, > a quote, 1) or (2) a number, a. or (b) a letter, ## a heading
    r"\s*(?:[-*•‣▪–—>|+]\s|>|\(?\d{1,3}[.)]\s|\(?[a-zA-Z][.)]\s|#{1,6}\s)"
)
_TURN = lazy_pattern(  # [doctor] or Dr. Noor:
    r"\s*(?:\[[^\]\n]{1,30}\]|[A-Z][\w.'’-]{0,24}(?:[ \t][A-Z][\w.'’-]{0,24}){0,3}:)(?:\s|\Z)"
)
_HASHES = tuple("#" * n for n in range(1, 7))
_LEADS_ON = lazy_pattern(  # what no sentence ends with: a comma, "of", "which", Dr.
    r"(?:[,(–—-]|\b(?:a|an|the|of|in|on|at|to|by|for|with|from|and|or|but|as|that|which|who|his|her"
    r"|its|their|our|my|your|is|was|are|were|Mr|Mrs|Ms|Dr|St)\.?)\s*\Z",
    re.I,
)
# These patterns begin with characters that are rare, which keeps the search fast.
LOST_BREAK = lazy_pattern(
    r",(?<=[.:;?!)],)(?=[A-Z0-9])"
)  # a comma in place of a line break: `1. Tear.,2. Pain.`
_CUT = lazy_pattern(
    r"[.,;:?!)](?:\s+(?=[A-Z][A-Z /&-]{3,40}:)"  # a label in capitals: `IMPRESSION: ...`
    r"|(?<=[a-z]{2}[.!?])\s+(?=[\"“][A-Z])"  # a quotation after a sentence: `He left. "Why?"`
    # Words that the splitter mistakes for abbreviations of states, months and titles.
    r"|(?:(?<=\b(?:art|etc|fed|ill|[Mm]ay)\.)|(?<=\b(?:id|me|mm|no)\.)|(?<=\bmiss\.))"
    r"\s+(?=[\"“]?(?:[A-Z][a-z]|I\b|A\b)))"
)
_STOP = lazy_pattern(r"[.!?…][\"'”’»)\]]{0,4}\s|[。！？।]")  # `paid.” ` or 。
_GAP = lazy_pattern(r"\s|[。！？।]")  # where a long text without full stops may be cut
_OPENING = lazy_pattern(r"\s([\"'“‘«(\[]+)\s*\Z")  # ` “` at the end
_QUOTES = str.maketrans(dict.fromkeys('"“”„«»', " "))

_LANGUAGES = {
    "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "HANGUL": "ko", "CYRILLIC": "ru", "ARABIC": "ar",
    "DEVANAGARI": "hi", "GREEK": "el", "HEBREW": "he", "THAI": "th",
}  # fmt: skip
"""First words of Unicode names of letters → language. Kana come before Han, because Japanese has both."""

_LIST_MARK = lazy_pattern(r"\s*(?:[-*•–]|\(?\d{1,9}[.)])\s+")  # `- `, `2. `, `3) `
PARAGRAPH_BREAK = lazy_pattern(r"\n[^\S\n]*\n\s*")


def paragraphs(text: str) -> tuple[Span, ...]:
    """Return the paragraphs of a text, which blank lines separate, without surrounding blanks."""
    edges = [0, *(m.end() for m in PARAGRAPH_BREAK.finditer(text)), len(text)]
    return tuple(span for a, b in pairwise(edges) for span in stripped(text, Span(a, b)))


def sentences(text: str) -> tuple[Span, ...]:
    """The sentences of a text, in order, without blanks around them."""
    return tuple(Span(start, end) for start, end in sentence_ranges(text))


def sentence_ranges(text: str) -> Iterator[_Range]:
    """The start and the end of each sentence of a text, for many sentences."""
    language = _language(text)
    for block in _blocks(text):
        yield from _sentences_in(text, block, language)


def sentences_near(text: str, start: int, end: int, beside: tuple[int, int]) -> list[_Range]:
    """The sentences that overlap a range, with `beside[0]` before and `beside[1]` after it; other blocks are not split."""
    language, blocks = _language(text), list(_blocks(text))
    first = max(bisect_right(blocks, start, key=itemgetter(0)) - 1, 0)
    last = first + 1
    found = list(_sentences_in(text, blocks[first], language)) if blocks else []
    while first > 0 and sum(stop <= start for _, stop in found) < beside[0]:
        first -= 1
        found = [*_sentences_in(text, blocks[first], language), *found]
    while last < len(blocks) and (
        blocks[last][0] < end or sum(begin >= end for begin, _ in found) < beside[1]
    ):
        found += _sentences_in(text, blocks[last], language)
        last += 1
    inside = [i for i, (begin, stop) in enumerate(found) if begin < end and stop > start]
    return found[max(inside[0] - beside[0], 0) : inside[-1] + 1 + beside[1]] if inside else []


def _sentences_in(text: str, block: _Range, language: str) -> Iterator[_Range]:
    # Imported on use: `import pearl` stays light.
    from sentencex import segment

    for first, last in _pieces(text, block):
        source = text[first:last]
        if not _STOP.search(source, 0, max(0, len(source.rstrip()) - 1)):
            yield from _without_blanks(text, first, last)
            continue
        start = end = first
        for part in segment(language, source):
            end += len(part)
            whole = text[start:end]
            inner = whole.strip()
            # A number belongs to its item; the splitter knows Mr., Mrs. and Dr., but not Ms.
            is_title = inner.endswith("Ms.") and not inner[-4:-3].isalnum()
            if end < last and (is_title or _is_number(inner)):
                continue
            if inner:
                begin = start if whole[0] == inner[0] else start + whole.index(inner)
                if len(inner) < _LONG_SPEECH:
                    yield begin, begin + len(inner)
                else:
                    yield from _speech(text, (begin, begin + len(inner)), language)
            start = end


def _is_number(text: str) -> bool:
    """Whether a text is the number of an item: `3.` or `(b)`."""
    number = text[:-1].removeprefix("(")
    is_letter = len(number) == 1 and number.isascii() and number.isalpha()
    return text[-1:] in (".", ")") and (is_letter or (number.isdecimal() and len(number) < 4))


def without_list_mark(line: str) -> str:
    """A line without the mark of an item of a list before it."""
    mark = _LIST_MARK.match(line)
    return line[mark.end() :] if mark else line


def _language(text: str) -> str:
    """The splitter's language code for the main script at the beginning, middle and end of a text."""
    if text.isascii():
        return "en"
    middle = len(text) // 2
    sample = text[:1_000] + text[middle : middle + 1_000] + text[-1_000:]
    scripts = (unicodedata.name(c, "").partition(" ")[0] for c in sample if not c.isascii())
    found = Counter(filter(None, map(_LANGUAGES.get, scripts)))
    n_letters = sum(map(str.isalpha, sample)) if found else 0
    # Kana are a fraction of a Japanese text; any other script must be the majority.
    for code in _LANGUAGES.values():
        if found[code] > n_letters * (0.1 if code == "ja" else 0.3):
            return code
    return "en"


def is_wrapped(text: str) -> bool:
    """Whether lines are wrapped at a width rather than at the end of a sentence."""
    lines = text.split("\n")
    lengths = sorted(len(line) for line in lines if line.strip())
    width = lengths[len(lengths) * 9 // 10] if lengths else 0
    pairs = ((a, b) for a, b in pairwise(lines) if a.strip() and b.strip())
    wraps = [
        len(a) + len(b.split(maxsplit=1)[0]) > 0.7 * width
        and not ENDED.search(a[-60:])
        and not _breaks(a, b, width)
        for a, b in islice(pairs, 1_000)
    ]
    return width >= _MIN_WIDTH and 2 * sum(wraps) > len(wraps)


def _blocks(text: str) -> Iterator[_Range]:
    """Runs of lines that one sentence may span."""
    width: int | None = None
    begin: int | None = None  # of the block
    start = end = 0
    line = ""
    for following in chain((m.span() for m in _LINE.finditer(text)), [(len(text), len(text))]):
        after = text[slice(*following)]
        if after.isspace():
            after = ""
        if line:
            begin = start if begin is None else begin
            if after and width is None:  # that nine of ten lines do not exceed
                lengths = sorted(n for m in _LINE.finditer(text) if (n := m.end() - m.start()) > 20)
                width = lengths[len(lengths) * 9 // 10] if lengths else 0
            if not after or _breaks(line, after, width or 0):
                yield begin, end
                begin = None
        (start, end), line = following, after


def _breaks(line: str, following: str, width: int) -> bool:
    """Whether the break between two lines is intended, and not the result of wrapping."""
    is_heading = line.split(maxsplit=1)[0] in _HASHES
    if _TURN.match(following) or is_heading or _ITEM.match(following):
        # A number or a letter that begins a wrapped line follows an unfinished sentence.
        return not following.lstrip()[0].isalnum() or not _LEADS_ON.search(line[-60:])
    head = following.split(maxsplit=1)[0]
    if head[0].islower():
        return False
    is_full = len(line.rstrip()) + 1 + len(head) > 0.9 * width
    if is_full and width <= 120:
        return False
    return bool(ENDED.search(line[-60:])) or not (is_full or _LEADS_ON.search(line[-60:]))


def _pieces(text: str, block: _Range) -> Iterator[_Range]:
    """Split a block where line breaks were lost and where it is too long for the splitter."""
    at, last = block
    cuts = [m.start() for m in LOST_BREAK.finditer(text, at, last)]
    cuts += [m.end() for m in _CUT.finditer(text, at, last)]
    for cut in [*sorted(cuts), last]:
        while cut - at > _MAX_PIECE:
            # Text without full stops, such as a speech transcript, is split between words.
            for end in (_STOP, _GAP):
                if ends := [m.end() for m in end.finditer(text, at, at + _MAX_PIECE)]:
                    stop = ends[-1]
                    break
            else:
                later = _GAP.search(text, at + _MAX_PIECE, cut)
                stop = later.end() if later else cut
            yield at, stop
            at = stop
        if at < cut:
            yield at, cut
        at = cut + 1 if text[cut : cut + 1] == "," else cut


def _speech(text: str, span: _Range, language: str) -> Iterator[_Range]:
    """The sentences inside a long quoted speech, which the splitter keeps whole."""
    from sentencex import segment

    at, last = end, _ = span
    source = text[at:last]
    bare = source.translate(_QUOTES)
    if bare == source:
        yield span
        return
    for part in segment(language, bare):
        end += len(part)
        # The splitter attached the opening quote mark of the next sentence to this one.
        opening = _OPENING.search(text, at, end)
        stop = opening.start(1) if opening else end
        yield from _without_blanks(text, at, stop)
        at = stop
    yield from _without_blanks(text, at, last)


def stripped(text: str, span: Span) -> Iterator[Span]:
    """The span without surrounding blanks; nothing for a blank one."""
    for start, end in _without_blanks(text, span.start, span.end):
        yield Span(start, end)


def _without_blanks(text: str, start: int, end: int) -> Sequence[_Range]:
    source = text[start:end]
    inner = source.strip()
    if not inner:
        return ()
    if not source.startswith(inner):
        start += len(source) - len(source.lstrip())
    return ((start, start + len(inner)),)


def chunks(text: str, max_tokens: int, count: Callable[[str], int]) -> tuple[Span, ...]:
    """Consecutive spans that cover the whole text, each of at most `max_tokens`."""
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}, must be at least 1")
    done: list[Span] = []
    taken: list[tuple[Span, int, int]] = []  # atoms of the current chunk: span, level, tokens
    n_taken = 0
    todo = [(Span(0, len(text)), 0)] if text else []
    while todo or taken:
        if todo:
            span, level = todo.pop()
            n = count(text[span.start : span.end])
            if n > max_tokens and span.end - span.start > 1 and not taken:
                todo += [(part, level + 1) for part in reversed(_split(text, span, level))]
                continue
            if not taken or n_taken + n <= max_tokens:
                n_taken += n
                taken.append((span, level, n))
                continue
            todo.append((span, level))
        # Token counts are not additive, so the chunk itself is counted.
        start = taken[0][0].start
        while len(taken) > 1 and count(text[start : taken[-1][0].end]) > max_tokens:
            span, level, _ = taken.pop()
            todo.append((span, level))
        done.append(Span(start, taken[-1][0].end))
        taken, n_taken = [], 0
    return tuple(done)


def _split(text: str, span: Span, level: int) -> list[Span]:
    """A span cut into paragraphs (level 0), sentences (1), lines (2), words (3) or halves (4 and more)."""
    source = text[span.start : span.end]
    match level:
        case 0:
            starts = [m.end() for m in PARAGRAPH_BREAK.finditer(source)]
        case 1:
            starts = [sentence.start for sentence in sentences(source)]
        case 2:  # lines of a list, which look like a wrapped paragraph
            starts = [m.end() for m in re.finditer("\n", source)]
        case 3:
            starts = [m.start() for m in re.finditer(r"(?<=\s)\S", source)]
        case _:
            starts = [len(source) // 2]
    edges = [0, *(start for start in starts if 0 < start < len(source)), len(source)]
    return [Span(span.start + a, span.start + b) for a, b in pairwise(edges) if a < b]


_FUNCTION_WORDS = """
a about above after again against all also although am an and any are as at be because been
before being below between both but by can cannot could did do does doing done down during each
either else ever every few for from further get gets getting go goes going got had has have
having he her here hers herself him himself his how however i if in into is it its itself just
let like ll made make makes making many me more most much must my myself neither no nor not now
of off on once one only onto or other others our ours ourselves out over own per quite rather
re same shall she should since so some such than that the their theirs them themselves then
there these they this those though through thus to too toward towards under until up upon us ve
very was we were what whatever when whenever where wherever whether which while who whoever
whom whose why will with within without would yes yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())  # of English

_UNSPACED = "\u0e00-\u0e7f\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_MARKS = (
    "\u00ad\u200c\u200d\u2060\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a"
    "\u0900-\u0963\u0970-\u0dff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
"""Accents, vowel signs, soft hyphens and joiners: part of a word, but not matched by `\\w`."""

_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
WORD = lazy_pattern(rf"\d+(?:[.,]\d+)+|[{_UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")
"""A word, in any case; of scripts written without blanks, a run of letters."""
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200c\u200d\u2060\u0640"))
_IS_UNSPACED = lazy_pattern(f"[{_UNSPACED}]")
_CLITIC = lazy_pattern(r"(?:n['’]t|['’](?:s|d|ll|re|ve|m|t))\Z")  # didn't, Nora’s


MAX_LENGTH = 40
"""Maximum characters of a token whose terms are cached: in scripts without blanks, a paragraph is one token."""

Stem = Literal["english", "porter", "none"]


def terms(text: str, *, drop_stop_words: bool = False, stem: Stem = "english") -> list[str]:
    """The search terms of a text, in order, with repeats: case and accents folded, stemmed; bigrams in scripts without blanks."""
    found: list[str] = []
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    for word in WORD.findall(text.casefold()):
        if not word.isascii() and _IS_UNSPACED.match(word):
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
            continue
        term, is_stop_word = _term(word, stem)
        if term and not (drop_stop_words and is_stop_word):
            found.append(term)
    return found


@lru_cache(maxsize=1 << 16)
def _term(word: str, stem: Stem) -> tuple[str, bool]:
    """The term of a case-folded word, and whether it is a stop word."""
    if not word.isascii():
        decomposed = unicodedata.normalize("NFKD", word.translate(_INVISIBLE))
        word = "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()
    if word[:1].isdigit():
        return word.replace(",", ""), False
    bare = word if word.isalnum() else _CLITIC.sub("", word)
    is_stop_word = bare in STOP_WORDS or word in STOP_WORDS or (bare != word and len(bare) < 3)
    base = _base_forms().get(bare, bare) if stem == "english" else bare
    return (base if stem == "none" else _stemmer(stem)(base)), is_stop_word


@cache
def _stemmer(algorithm: str) -> Callable[[str], str]:
    # Imported on use: `import pearl` stays light.
    from Stemmer import Stemmer

    stem: Callable[[str], str] = Stemmer(algorithm).stemWord
    return stem


@cache
def _base_forms() -> dict[str, str]:
    """Map irregular forms to base forms, from the list beside this file."""
    rows = Path(__file__).with_name("irregular_forms.txt").read_text(encoding="utf-8").splitlines()
    pairs = [row.split(":") for row in rows if row and not row.startswith("#")]
    return {form: base for base, forms in pairs for form in forms.split()}


@cache
def analyzer(stem: Stem) -> Callable[[str], list[str]]:
    """Return the function that splits a query into terms, in order, with repeats."""

    def analyse(query: str) -> list[str]:
        return terms(query, drop_stop_words=True, stem=stem) or terms(query, stem=stem)

    return analyse


@cache
def read_synonyms(path: Path) -> dict[tuple[str, ...], dict[str, None]]:
    """Map the stems of a phrase to its synonyms; each line of the file is a group, split at commas or blanks."""
    others: dict[tuple[str, ...], dict[str, None]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        phrases = [] if line.startswith("#") else line.split("," if "," in line else None)
        stems = {phrase.strip(): tuple(terms(phrase)) for phrase in phrases}
        for own in filter(None, stems.values()):
            different = (phrase for phrase in stems if stems[phrase] != own)
            others.setdefault(own, {}).update(dict.fromkeys(different))
    return others
