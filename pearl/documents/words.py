"""Normalised tokens of a text, for comparing answers."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

_KEPT = ("<super>", "<sub>", "<fraction>")
"""Compatibility forms that differ in meaning from their plain form: 10² is not 102."""

_LINES = r"[-‐‑‒–—−]"


@cache
def _token() -> regex.Pattern[str]:
    import regex  # imported on use: takes 10 ms

    return regex.compile(
        rf"""
          (?P<number>(?:\d[\d,]*|(?<!\d)(?=\.\d))(?:\.\d+)?(?<!,))
        | (?P<alone>[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}]\p{{M}}*)
        | (?P<word>[[\p{{L}}\p{{M}}\p{{Nl}}]--[\p{{Han}}\p{{Hiragana}}\p{{Katakana}}\p{{Thai}}\p{{Lao}}\p{{Khmer}}\p{{Myanmar}}]]+)
        | (?P<line>
              (?<=\d\s*){_LINES}(?=\s*\d)           # a range
            | (?<![\w\)\]]){_LINES}(?=\p{{Sc}}?\.?\d) # a sign before a number
            | (?<=\w){_LINES}(?!\w|{_LINES}|\s*\d)   # one after a word, as in the blood type AB-
            | −                                       # what is nothing but a minus
          )
        | (?P<sign>[\p{{Sm}}\p{{Sc}}\p{{No}}%‰‱°′″#/^])
        """,
        regex.VERBOSE | regex.VERSION1,
    )


_ARTICLES = frozenset({"a", "an", "the"})


def words(text: str) -> list[str]:
    """The comparison tokens of an answer: words, numbers and signs, in order.

    Ignored: case, blanks, quotation marks, punctuation and English articles before a word. Kept:
    signs and comparisons (`-5.2%`, `< 5 mg`, `AB+`, `C++`, `10-20`), currencies and units, vowel
    marks, decimal points. Width variants and ligatures are normalised, digits of all scripts are
    equal, and thousands commas are removed. Scripts without blanks between words give one token per
    character. If no token is left, the text itself is the token.

    Source:
        Rajpurkar et al., SQuAD (2016), whose scorer drops all marks; Lewis et al., MLQA (2020), for
        scripts without blanks.
    """
    plain = "".join(map(_plain, unicodedata.normalize("NFC", text)))
    found: list[str] = []
    tokens = list(_token().finditer(plain))
    for i, token in enumerate(tokens):
        match token.lastgroup:
            case "number":
                found.append(_number(token[0]))
            case "line":
                found.append("-")
            case "word" if _is_article(tokens, i):
                pass
            case _:
                found.append(unicodedata.normalize("NFC", token[0].casefold()))
    return found or [plain.casefold().strip()]


def shared_words(one: str, other: str) -> float:
    """Return the token F1 of two texts, 0 to 1 (Rajpurkar et al., SQuAD, 2016)."""
    first, second = words(one), words(other)
    n_shared = (Counter(first) & Counter(second)).total()
    return 2 * n_shared / (len(first) + len(second))


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    if unicodedata.category(character) == "Cf":  # soft hyphens, joiners, marks of direction
        return ""
    form = unicodedata.decomposition(character)
    if form.startswith("<") and not form.startswith(_KEPT):
        return unicodedata.normalize("NFKC", character)
    return character


def _number(digits: str) -> str:
    import regex

    plain = regex.sub(r"(?<=^\d{1,3}(?:,\d{3})*),(?=(?:\d{3},)*\d{3}(?:\.|$))", "", digits)
    return f"0{plain}" if plain.startswith(".") else plain


def _is_article(tokens: list[regex.Match[str]], i: int) -> bool:
    """Whether a word is an article: before another word, and not a letter as in `vitamin A`."""
    token = tokens[i]
    if token[0].casefold() not in _ARTICLES or i + 1 == len(tokens):
        return False
    is_name = token[0] == "A" and i > 0
    return not is_name and tokens[i + 1].lastgroup in ("word", "number", "alone")
