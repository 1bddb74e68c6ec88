"""Kinds of answers, and signs that a sentence contains one, whatever the topic of the question."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Literal

from pearl.documents.english import MONTH, NUMBER_WORD, TIME_UNIT, WEEKDAY, YEAR
from pearl.documents.passages import terms
from pearl.errors.patterns import lazy_pattern

Kind = Literal["advice", "duration", "emotion", "number", "person", "reason", "thing", "time"]

_PERSONS = (
    r"(?:man|men|woman|women|boy|girl|child|children|mother|father|brother|sister|son|daughter|wife|husband|uncle"
    r"|aunt|friend|king|queen|president|captain|nurse|doctor|surgeon|patient|student|crew|family|committee|council"
    r"|company|board|government|team|people|\w{3,}(?:ers?|ors?|ists?|ians?|m[ae]n))"
)

_NEW: dict[str, tuple[tuple[re.Pattern[str], float], ...]] = {
    kind: tuple((lazy_pattern(pattern, re.I), strength) for pattern, strength in patterns)
    for kind, patterns in (
        ("time", (
            (rf"\b(?:{YEAR}s?|{WEEKDAY}s?|\d{{1,2}}:\d\d|\d{{1,2}} ?[ap]\.?m\b|o['’]clock|noon|midnight|christmas|easter"
             rf"|{MONTH}\b\.? (?:the )?\d|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}"
             rf"|(?:in|since|by|until|during|last|this|next|early|late|of|from)[ -](?:early |late |mid-?)?{MONTH})\b", 1.0),
            (rf"\b(?:yesterday|today|tomorrow|tonight|ago|dawn|dusk|sunrise|sunset|spring|summer|autumn|winter|{TIME_UNIT}"
             rf"|(?:last|next|that|same|following|previous|first) {TIME_UNIT}|{TIME_UNIT}s? (?:later|earlier|before|after|old)"
             r"|age of|aged)\b", 0.7),
            (r"\b(?:when|after|before|until|till|while|during|since|once|as soon as)\b", 0.4),
        )),
        ("duration", (
            (rf"\b(?:\d[\d,.]*|{NUMBER_WORD}|an?|one|several|few|many|some|whole|all|every|each|per)[ -](?:\w+[ -]){{0,2}}?"
             rf"{TIME_UNIT}s?\b", 1.0),
            (r"\b(?:daily|weekly|monthly|yearly|hourly|once|twice|times|always|never|often|rarely|usually)\b", 0.6),
        )),
    )
}  # fmt: skip
"""Patterns with their strength; a match counts only if it has a term that the question lacks."""

_CUES = {
    kind: lazy_pattern(rf"\b(?:{words})\b", re.I)
    for kind, words in {
        "advice": r"should\w*|ought|must\w*|need(?:s|ed)? to|ha(?:ve|s|d) to|advis\w+|advice|recommend\w+|suggest\w+|stop"
        r"|try|avoid|make sure|do not|don['’]t|instead|keep|let['’]s|follow[ -]?up|at least",
        "emotion": r"feel|feels|felt|feelings?|afraid|fear\w*|ang(?:er|ry)|happy|happiness|glad|joy\w*|sad\w*|grief|sorry"
        r"|regret\w*|ashamed|guilt\w*|proud|pride|jealous\w*|love[ds]?|hat(?:e|es|ed|red)|(?:dis)?like[ds]?|bitter\w*"
        r"|hop(?:e|ed|es)|despair\w*|surpris\w+|worr(?:y|ied|ies)|anxi\w+|relie(?:f|ved)|upset|cr(?:y|ied)|wept|smil\w+",
    }.items()
}
"""Words that indicate advice or emotion; one word is weak evidence, two are strong."""

_REASON = lazy_pattern(
    r"\b(?:because|so that|in order (?:to|that)|so as to|since (?!then|(?:the|last|\d))|reasons?|due to|owing to|thanks to"
    r"|on account of|as a result|result of|for fear|lest|caused?|out of (?!the\b)|led (?:to|him|her|them)|therefore|hence"
    r"|that (?:is|was) why|for the sake|in case|thus|made (?:him|her|them|it)|forced|persuaded|prompted|drove)\b",
    re.I,
)
_WEAK_REASON = lazy_pattern(
    r"\b(?:so|for (?:he|she|they|it|the|his|her)|as (?:he|she|they|it|the)|wanted|hoped|feared|afraid|needed|wished|hoping"
    r"|wanting|intended|explained|trying)\b|\bto\s+[a-z]+\s+(?:the|an?|his|her|their|its|it|him|them)\b"
    r"|\bto (?:avoid|make|keep|get|save|protect|see|find|be|have|pay|prevent|help|show|prove|escape|raise|let|give|learn)\b",
    re.I,
)
_NUMBER = lazy_pattern(rf"(?<![\w.])\$?\d[\d,]*(?:\.\d+)?|\b{NUMBER_WORD}\b", re.I)
_LOOSE_NUMBER = lazy_pattern(
    r"\b(?:one|single|several|few|many|most|all|every|no|once|pair)\b", re.I
)
_CAPITALISED = lazy_pattern(r"(?<![\w'’])[A-Z][\w'’-]*\w")
_PERSON_NOUN = lazy_pattern(
    rf"\b(?:the|an?|his|her|their|my|our|its)\s+(?:[\w'’-]+\s+){{0,3}}?{_PERSONS}\b", re.I
)
_NO_NAME = lazy_pattern(rf"(?:{MONTH}|{WEEKDAY}|i['’]\w+|mrs?|ms|dr|the|an|oh|yes|no|ok)", re.I)


def sign(
    kind: Kind, sentence: str, asked: Set[str], common: Set[str], counted: Set[str] = frozenset()
) -> float:
    """How likely a sentence contains an answer of a kind, 0 to 1.

    Example:
        >>> sign("time", "It opened on 4 May 1911.", frozenset(), frozenset())
        1.0
        >>> sign("person", "Ada sold it.", frozenset({"ada"}), frozenset())
        0.0
    """
    match kind:
        case "thing":
            return 0.0
        case "person":
            return _person(sentence, asked, common)
        case "number":
            return _number(sentence, asked, counted)
        case "reason":
            return 1.0 if _REASON.search(sentence) else bool(_WEAK_REASON.search(sentence)) / 2
        case "advice" | "emotion":
            return min(1.0, 0.7 * len({match.lower() for match in _CUES[kind].findall(sentence)}))
        case "time" | "duration":
            for pattern, strength in _NEW[kind]:
                if any(_is_new(match[0], asked) for match in pattern.finditer(sentence)):
                    return strength
            return 0.0


def _is_new(text: str, asked: Set[str]) -> bool:
    """Whether a phrase has a term that the question does not have."""
    words = terms(text, drop_stop_words=True)
    return not words or any(term not in asked for term in words)


def _person(sentence: str, asked: Set[str], common: Set[str]) -> float:
    for match in _CAPITALISED.finditer(sentence):
        name = match[0].casefold().removesuffix("'s").removesuffix("’s")
        is_first = not sentence[: match.start()].strip("\"'“‘([ ")
        if not (_NO_NAME.fullmatch(name) or (is_first and name in common)) and _is_new(name, asked):
            return 1.0
    return (
        0.6 if any(_is_new(match[0], asked) for match in _PERSON_NOUN.finditer(sentence)) else 0.0
    )


def _number(sentence: str, asked: Set[str], counted: Set[str]) -> float:
    best = 0.0
    for match in _NUMBER.finditer(sentence):
        if not _is_new(match[0], asked):
            continue
        if not counted.isdisjoint(terms(sentence[match.end() : match.end() + 60])[:5]):
            return 1.0
        best = max(best, 0.3 if re.fullmatch(YEAR, match[0]) else 0.7)
    return best or (0.2 if _LOOSE_NUMBER.search(sentence) else 0.0)
