"""The reply of a composer → sentences with their citations; numbers and citations are checked.

A composed answer is used only if every number of a sentence is one of the results that the sentence
cites. Named values (`{count}`) are inserted here, so the model does not write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pearl.documents.english import ONES, TENS, UNITS
from pearl.documents.evidence import normalise
from pearl.documents.numbers import (
    CURRENCIES,
    CURRENCY_CODES,
    FOREIGN_SCALES,
    SCALE_WORDS,
    plain_character,
)  # fmt: skip
from pearl.documents.passages import sentences, terms
from pearl.errors.patterns import lazy_pattern

MAX_LENGTH = 6_000
"""Maximum characters of a composed answer."""

NUMBER_WORD = lazy_pattern(
    r"\b(?:zero|none|no|nobody|neither|never|nothing|once|twice|thrice|one|two|three|four|five|six|seven|eight|"
    r"nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty\b[\w-]*|hundreds?|thousands?|millions?|billions?|dozens?|couple|pair|half|nil|single|only|both|"
    r"keine?r?|null|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\w+zehn|\w+zig|hundert|tausend|"
    r"aucune?|deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|cent|mille|ning[uú]n\w*|uno|dos|tres|cuatro|cinco|seis|siete|ocho|"
    r"nueve|diez|nessun\w*|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|dois|duas|oito|dez)\b",
    re.I,
)
"""Words for numbers, in several languages."""
_MORE_WORDS = lazy_pattern(
    r"\b(?:treize|quatorze|quinze|seize|vingts?(?:-\w+)?|trente|quarante|cinquante|soixante|once|doce|trece|catorce|quince|"
    r"veint(?:e|i\w+)|treinta|cuarenta|cincuenta|cien(?:t[oa]s?)?|mil|undici|dodici|"
    r"venti(?:uno|due|tr[eé]|quattro|cinque|sei|sette|otto|nove)?|trenta|vijf|zeven|acht|negen|dwa|trzy|"
    r"восемь|семь|шесть|пять|три|два|åtta|sju)\b",
    re.I,
)
"""More of them, which a composed answer has only if its support has them."""

_VALUES = {
    **{word: str(i) for i, word in enumerate(ONES)},
    **{word: str(10 * i) for i, word in enumerate(TENS, start=2)},
    **{f"{ten}-{ONES[i]}": str(10 * n + i) for n, ten in enumerate(TENS, start=2) for i in range(1, 10)},
    "once": "1", "twice": "2", "thrice": "3", "dozen": "12",
}  # fmt: skip
_CODES = [code for code in map(str.casefold, CURRENCY_CODES) if code in UNITS]
"""Codes that are no words: figures are compared in any case."""
_MONEY = {
    **{code: UNITS[code] for code in _CODES}, **{sign: sign for sign in CURRENCIES},
    "dollar": "$", "euro": "€", "pound": "£", "yen": "¥", "cent": "cent", "franc": "chf",
}  # fmt: skip
_SCALES = {
    **{word: f"e{power}" for word, power in {**SCALE_WORDS, **FOREIGN_SCALES, "hundred": 2, "k": 3, "m": 6}.items()},
    **dict.fromkeys(("%", "percent", "per cent", "percentage point", "percentage points"), "%"),
    **{word: word for word in ("‰", "lakh", "crore", "cr", "dozen", "thousandth", "millionth", "hundredth")},
    **{word: word for word in "万億亿兆千百만억천백"},
}  # fmt: skip
_WORDS = "|".join(sorted(map(re.escape, {*_MONEY, *_SCALES}), key=len, reverse=True))
_DIGIT = "[0-9½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞⁰¹²³⁴⁵⁶⁷⁸⁹]"
_WORD_FIGURE = "|".join(sorted(_VALUES.keys() - {"one", "once"}, key=len, reverse=True))
_FIGURE = lazy_pattern(
    rf"""
      (?P<sign>(?<![\w.)])[-−–](?=[\d$€£¥])|\b(?:minus|negative|moins|menos|meno)\s|\((?=\W?[\d.,]+[^()\d]*\)))?
      (?P<money>US\$|[{CURRENCIES}]|\b(?:{"|".join(_CODES)})\s?)?\s?
      (?P<digits>{_DIGIT}(?:[.,’':/–-]?{_DIGIT})*|\b(?:{_WORD_FIGURE}|(?<=only\s)one|(?<=just\s)one|(?<=exactly\s)one)\b)
      (?P<after>(?:[\s-]{{0,2}}(?:{_WORDS})s?(?![^\W\d_])\.?)*)
    """,
    re.I | re.X,
)
_DECIMALS = lazy_pattern(r"\d+\.(?!\d{3}$)\d+")
"""A number with decimals: "1.200" may be one thousand two hundred."""
_AFTER = lazy_pattern(rf"(?:{_WORDS})", re.I)
_LITERAL = lazy_pattern(
    r"\b(?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|quarter|double|triple|half|[IVXLCDM]{2,})\b"
    r"|[一二三四五六七八九十百千零两]"
)
"""Numbers in other words, which the support has to have as they are."""
_EITHER = frozenset({
    "none", "no", "nobody", "neither", "never", "nothing", "one", "once", "single", "only", "both", "pair", "null", "due",
    "keine", "keiner", "kein", "aucun", "aucune",
})  # fmt: skip
"""Words that sentences use without a figure."""
_QUOTED = lazy_pattern(r"[\"“„«「『]([^\"“”„«»「」『』]{3,})[\"”“»」』]|^\s*>\s*(.+)$", re.M)
_MARKS = lazy_pattern(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_MARKS_AFTER = lazy_pattern(
    r"(?P<end>[.!?…。！？][\"'”’»)]*)(?P<marks>(?:[^\S\n]*\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\])+)(?P<more>[.]?)"
)
_LISTED = lazy_pattern(r"\A\s*(?:[-*•]\s+)?(?:(\d{1,2})[.)]\s)?")
_MARK_FIRST = lazy_pattern(r"^\s*(?:[-*•]\s+)?\[\d", re.M)
_NAME = lazy_pattern(r"\{\s*(\w+)\s*\}")
_STEP = lazy_pattern(r"^\W{0,4}(?:\d+\.\s*)?\w+\s*:?=\s*[A-Z][A-Z_]+\(", re.M)
_TAG = lazy_pattern(r"</?input\b|^\s*\|", re.I | re.M)


class Sentence(NamedTuple):
    """A piece of a composed answer, and the items that it cites, from 0."""

    text: str
    cites: tuple[int, ...]


class Composed(NamedTuple):
    """A composed answer; without sentences, `why` is the reason why the reply is not used."""

    sentences: tuple[Sentence, ...] = ()
    why: str = ""
    n_bad_cites: int = 0
    n_uncited: int = 0


def read_composed(
    text: str, items: Sequence[str], values: Mapping[str, tuple[int, str]], question: str
) -> Composed:
    """Read a composed answer.

    Args:
        text: The reply, without reasoning.
        items: What each number from 1 cites: a quote with the result that it belongs to.
        values: Item and text of each named value; a sentence that inserts one cites its item.
        question: Its numbers may be repeated.

    Example:
        >>> reply = "Ada sold {n} boats [2]. They leaked [1], all 9 of them [1]."
        >>> read_composed(reply, ["It leaked.", "n = 3"], {"n": (1, "3")}, "").why
        "it says '9', which the results that it cites do not have"
    """
    text = text.strip().translate(_BRACKETS)
    if len(text) > MAX_LENGTH:
        return Composed(why=f"it has {len(text):,} characters")
    if _STEP.search(text) or _TAG.search(text):
        return Composed(why="it repeats the plan or the results, or is a table")
    if _MARK_FIRST.search(text):
        return Composed(why="its citations stand before the sentences")
    kept: list[Sentence] = []
    n_bad = n_uncited = 0
    n_listed = 0  # the last number of a numbered list
    for line in _MARKS_AFTER.sub(r"\g<marks>\g<end> ", text).splitlines():
        for at, piece in enumerate(_sentences(line)):
            numbers = [
                int(n) - 1 for marks in _MARKS.findall(piece) for n in re.split(r"\D+", marks)
            ]
            good = [n for n in numbers if 0 <= n < len(items)]
            n_bad += len(numbers) - len(good)
            bare = " ".join(_MARKS.sub("", piece).split())
            names = _NAME.findall(bare)
            if unknown := [name for name in names if name not in values]:
                return Composed(why=f"it names '{{{unknown[0]}}}', which is no result")
            cites = tuple(dict.fromkeys([*good, *(values[name][0] for name in names)]))
            # An introduction speaks of the sentences that follow it.
            is_intro = bare.endswith(":") and not numbers and _says_known(bare, [question, *items])
            if not bare or (not cites and not is_intro):
                n_uncited += bool(bare)
                continue
            support = "\n".join([question, *(items if is_intro else (items[n] for n in cites))])
            shown = _NAME.sub(lambda name: values[name[1]][1], bare)
            body = shown
            if at == 0 and (listed := _LISTED.match(shown)) is not None:
                n_listed += bool(listed[1])
                if not listed[1] or int(listed[1]) == n_listed:
                    body = shown[listed.end() :]
            stranger = _stranger(body, support)
            if stranger:
                return Composed(
                    why=f"it says '{stranger}', which the results that it cites do not have"
                )
            indent = piece[: len(piece) - len(piece.lstrip())] if at == 0 else " "
            kept.append(Sentence(indent + shown, cites))
        if kept:
            kept.append(Sentence("\n", ()))
    while kept and not kept[-1].cites:  # line breaks, and an introduction that nothing follows
        kept.pop()
    if not kept:
        return Composed(why="no sentence cites a result", n_bad_cites=n_bad, n_uncited=n_uncited)
    return Composed(tuple(kept), "", n_bad, n_uncited)


_BRACKETS = str.maketrans("［］｛｝", "[]{}")


def _says_known(text: str, sources: Sequence[str]) -> bool:
    """Whether the sources have all words of a text that carry meaning."""
    known = set(terms("\n".join(sources)))
    return known.issuperset({*terms(_plain(text), drop_stop_words=True)} - _VALUES.keys())


def _sentences(line: str) -> Iterator[str]:
    """The sentences of a line with the blanks before them."""
    ends = [span.end for span in sentences(line)]
    at = 0
    for end in [*ends[:-1], len(line)]:
        yield line[at:end]
        at = end


def _stranger(text: str, support: str) -> str:
    """A number or a quotation of a text that its support does not have; "" if it has all of them."""
    text, support = _plain(text), _plain(support)
    known = {figure for figure, _ in _figures(support)}
    for figure, shown in _figures(text):
        if figure not in known:
            return shown
    words = {*re.findall(r"\w+", support.casefold()), *_VALUES, *_EITHER}
    for word in (*NUMBER_WORD.findall(text), *_MORE_WORDS.findall(text)):
        if word.casefold() not in words:
            return str(word)
    for word in _LITERAL.findall(text):
        if word.casefold() not in support.casefold():
            return str(word)
    whole = normalise(support).casefold()
    for quotes in _QUOTED.findall(text):
        quote = next(filter(None, quotes))
        if " " in quote.strip() and normalise(quote).casefold().strip(" .,;:!?…") not in whole:
            return str(quote)
    return ""


def _plain(text: str) -> str:
    """A text with ASCII digits and plain blanks, without emphasis and invisible characters."""
    return "".join(map(plain_character, text)).translate(_NO_EMPHASIS)


_NO_EMPHASIS = str.maketrans("\t", " ", "*_`")

_Figure = tuple[bool, str, str, tuple[str, ...]]
"""Whether it is negative, its currency, value and scale."""


def _figures(text: str) -> Iterator[tuple[_Figure, str]]:
    """The numbers of a text, in digits or in English words, and how they are written."""
    for match in _FIGURE.finditer(text):
        digits = match["digits"].casefold()
        if _DECIMALS.fullmatch(digits):
            digits = digits.rstrip("0").rstrip(".")
        after = [word.casefold() for word in _AFTER.findall(match["after"])]
        money = [_MONEY[word] for word in after if word in _MONEY]
        before = (match["money"] or "").strip().casefold().replace("us$", "$")
        scale = tuple(_SCALES[word] for word in after if word not in _MONEY)
        value = "1" if digits == "one" else _VALUES.get(digits, digits)
        currency = _MONEY.get(before, "") or "".join(money)
        yield (bool(match["sign"]), currency, value, scale), match[0].strip()
