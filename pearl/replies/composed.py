"""The reply of a composer → sentences with their citations; numbers and citations are checked.

A composed answer is used only if every number of a sentence is one of the results that the sentence
cites. Named values (`{count}`) are inserted here, so the model does not write them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pearl.documents.passages import sentences
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

_NO_FIGURE = frozenset(
    [
        "none",
        "no",
        "nobody",
        "neither",
        "never",
        "nothing",
        "one",
        "single",
        "only",
        "both",
        "null",
        "due",
        "keine",
        "keiner",
        "kein",
        "aucun",
        "aucune",
    ]
)
"""Number words that sentences use without a figure."""

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES = {
    **{word: i for i, word in enumerate(_ONES)},
    **{word: 10 * i for i, word in enumerate(_TENS, start=2)},
    "once": 1, "twice": 2, "thrice": 3, "dozen": 12,
}  # fmt: skip

_SCALE = r"(?:\s?%|[\s-]?(?:percent(?:age points?)?|per cent|hundred|thousand|million|billion|trillion|bn|mn|k|m)\b)"
_FIGURE = lazy_pattern(
    rf"(?P<sign>(?<![\w.])[-−–](?=[\d$€£¥]))?(?P<money>[$€£¥])?\s?(?P<digits>\d+(?:[.,’']\d+)*)(?P<scale>{_SCALE})?",
    re.I,
)
_DECIMALS = lazy_pattern(r"\d+\.(?!\d{3}$)\d+")
"""A number with decimals: "1.200" may be one thousand two hundred."""
_SCALED_WORD = lazy_pattern(rf"(?P<scale>{_SCALE})", re.I)
_SCALES = {"percent": "%", "per cent": "%", "bn": "billion", "mn": "million", "m": "million", "k": "thousand"}  # fmt: skip

_MARKS = lazy_pattern(r"\s*\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_MARKS_AFTER = lazy_pattern(
    r"(?P<end>[.!?…。！？][\"'”’»)]*)(?P<marks>(?:[^\S\n]*\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\])+)(?P<more>[.]?)"
)
_LISTED = lazy_pattern(r"\A\d{1,2}[.)]\s")
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
    text = unicodedata.normalize("NFKC", text).strip()
    if len(text) > MAX_LENGTH:
        return Composed(why=f"it has {len(text):,} characters")
    if _STEP.search(text) or _TAG.search(text):
        return Composed(why="it repeats the plan or the results, or is a table")
    unknown = next((name for name in _NAME.findall(text) if name not in values), None)
    if unknown is not None:
        return Composed(why=f"it names '{{{unknown}}}', which is no result")
    kept: list[Sentence] = []
    n_bad = n_uncited = 0
    for line in _MARKS_AFTER.sub(r"\g<marks>\g<end> ", text).splitlines():
        pieces = list(_sentences(line))
        for at, piece in enumerate(pieces):
            numbers = [
                int(n) - 1 for marks in _MARKS.findall(piece) for n in re.split(r"\D+", marks)
            ]
            good = [n for n in numbers if 0 <= n < len(items)]
            n_bad += len(numbers) - len(good)
            named = [values[name][0] for name in _NAME.findall(piece)]
            cites = tuple(dict.fromkeys([*good, *named]))
            bare = " ".join(_MARKS.sub("", piece).split())
            is_intro = bare.endswith(":") and not numbers
            if not bare or (not cites and not is_intro):
                n_uncited += bool(bare)
                continue
            # An introduction speaks of the sentences that follow it.
            support = "\n".join([question, *(items if is_intro else (items[n] for n in cites))])
            shown = _NAME.sub(lambda name: values[name[1]][1], bare)
            stranger = _stranger(_LISTED.sub("", shown), support)
            if stranger:
                return Composed(
                    why=f"it says '{stranger}', which the results that it cites do not have"
                )
            indent = piece[: len(piece) - len(piece.lstrip())] if at == 0 else " "
            kept.append(Sentence(indent + shown, cites))
        kept.append(Sentence("\n", ()))
    while kept and not kept[-1].cites:  # line breaks, and an introduction that nothing follows
        kept.pop()
    if not kept:
        return Composed(why="no sentence cites a result", n_bad_cites=n_bad, n_uncited=n_uncited)
    return Composed(tuple(kept), "", n_bad, n_uncited)


def _sentences(line: str) -> Iterator[str]:
    """The sentences of a line with the blanks before them."""
    ends = [span.end for span in sentences(line)]
    at = 0
    for end in [*ends[:-1], len(line)]:
        yield line[at:end]
        at = end


def _stranger(text: str, support: str) -> str:
    """A number of a text that its support does not have; "" if it has all of them."""
    known = _figures(support)
    known |= {("", "", value, scale) for _, _, value, scale in known}
    known |= {("", money, value, scale) for _, money, value, scale in known}
    for figure, shown in _found(text):
        if figure not in known:
            return shown
    words = set(re.findall(r"\w+", support.casefold()))
    for word in NUMBER_WORD.findall(text):
        if word.casefold() not in {*_NO_FIGURE, *_VALUES, *words} and not _tens(word):
            return str(word)
    return ""


_Figure = tuple[str, str, str, str]
"""Sign, currency, value and scale of a number."""


def _figures(text: str) -> set[_Figure]:
    return {figure for figure, _ in _found(unicodedata.normalize("NFKC", text))}


def _found(text: str) -> Iterator[tuple[_Figure, str]]:
    """The numbers of a text, in digits or in English words, and how they are written."""
    for match in _FIGURE.finditer(text):
        digits = match["digits"]
        if _DECIMALS.fullmatch(digits):
            digits = digits.rstrip("0").rstrip(".")
        sign = "-" if match["sign"] else ""
        yield (sign, match["money"] or "", digits, _scale(match["scale"])), match[0].strip()
    for match in re.finditer(r"[A-Za-z]+(?:-[A-Za-z]+)?", text):
        value = _VALUES.get(match[0].casefold(), _tens(match[0]))
        if value is not None and match[0].casefold() not in _NO_FIGURE:
            scale = _SCALED_WORD.match(text, match.end())
            yield ("", "", str(value), _scale(scale and scale["scale"])), match[0]


def _tens(word: str) -> int | None:
    """The value of a word as "twenty-five"."""
    tens, _, ones = word.casefold().partition("-")
    if tens not in _TENS or ones not in _ONES[1:10]:
        return None
    return _VALUES[tens] + _VALUES[ones]


def _scale(text: str | None) -> str:
    scale = (text or "").strip(" -").casefold()
    return "%" if scale.startswith("percent") else _SCALES.get(scale, scale)
