"""Kinds of answers, and signs that a sentence contains an answer of a kind, whatever the topic."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Literal

from pearl.documents.english import MONTH, NUMBER_WORD, WEEKDAY, YEAR
from pearl.documents.passages import terms
from pearl.errors.patterns import lazy_pattern

Kind = Literal["advice", "emotion", "number", "person", "reason", "thing", "time"]

_CUES = {
    kind: lazy_pattern(rf"(?<!\w)(?:{pattern})(?!\w)", re.I)
    for kind, pattern in {
        "advice": r"should\w*|ought|must\w*|need(?:s|ed)? to|ha(?:ve|s|d) to|advis\w+|advice|recommend\w+|suggest\w+|stop"
        r"|try|avoid|make sure|do not|don['’]t|instead|keep|let['’]s|follow[ -]?up|at least",
        "emotion": r"feel|feels|felt|feelings?|afraid|fear\w*|ang(?:er|ry)|happy|happiness|glad|joy\w*|sad\w*|grief|sorry"
        r"|regret\w*|ashamed|guilt\w*|proud|pride|jealous\w*|love[ds]?|hat(?:e|es|ed|red)|(?:dis)?like[ds]?|bitter\w*"
        r"|hop(?:e|ed|es)|despair\w*|surpris\w+|worr(?:y|ied|ies)|anxi\w+|relie(?:f|ved)|upset|cr(?:y|ied)|wept|smil\w+",
        "number": rf"\$?\d[\d,]*(?:\.\d+)?|{NUMBER_WORD}",
        "person": r"(?-i:[A-Z])[\w'’-]*\w",
        "reason": r"because|so that|in order (?:to|that)|so as to|since (?!then|(?:the|last|\d))|reasons?|due to|owing to"
        r"|thanks to|on account of|as a result|result of|for fear|lest|caused?|out of (?!the\b)|led (?:to|him|her|them)"
        r"|therefore|hence|that (?:is|was) why|for the sake|in case|thus|made (?:him|her|them|it)|forced|persuaded|prompted",
        "time": rf"{YEAR}s?|{WEEKDAY}s?|\d{{1,2}}:\d\d|\d{{1,2}} ?[ap]\.?m|o['’]clock|noon|midnight|christmas|easter"
        rf"|{MONTH}\.? (?:the )?\d+|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}"
        rf"|(?:in|since|by|until|during|last|this|next|early|late|of|from)[ -](?:early |late |mid-?)?{MONTH}",
    }.items()
}


def sign(kind: Kind, sentence: str, asked: Set[str], common: Set[str]) -> float:
    """How likely a sentence contains an answer of a kind, 0 to 1.

    Example:
        >>> sign("time", "It opened on 4 May 1911.", frozenset(), frozenset())
        1.0
        >>> sign("person", "Ada sold it.", frozenset({"ada"}), frozenset())
        0.0
    """
    if kind == "thing":
        return 0.0
    matches = list(_CUES[kind].finditer(sentence))
    match kind:
        case "advice" | "emotion":  # one word is weak evidence, two words are strong
            return min(1.0, 0.7 * len({match[0].lower() for match in matches}))
        case "reason":
            return float(bool(matches))
        case "person":  # the first word of a sentence is capitalised anyway
            names = [match for match in matches if match.start() or match[0].lower() not in common]
            return float(any(_is_new(match[0].removesuffix("'s"), asked) for match in names))
        case _:
            return float(any(_is_new(match[0], asked) for match in matches))


def _is_new(text: str, asked: Set[str]) -> bool:
    """Whether a phrase has a term that is not in the question."""
    words = terms(text, drop_stop_words=True)
    return not words or any(term not in asked for term in words)
