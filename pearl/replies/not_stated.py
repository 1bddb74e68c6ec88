"""Free texts which say that the document does not state the answer: in the form of a reply, null says so."""

from __future__ import annotations

import re

from pearl.errors.patterns import lazy_pattern

MAX_LENGTH = 300  # Maximum characters of such a text; longer ones say more
EDGES = " \t\n*_`\"'“”.:!()[]{}-•–"  # Meaningless marks around a value
_WORDS = frozenset({
    "none", "null", "n/a", "unknown", "unanswerable", "not applicable", "not known", "not stated", "not given",
    "not mentioned", "not specified", "not provided",
})  # fmt: skip
"""Whole replies that mean *not stated*."""
_TEXT = r"(?:the|this) (?:provided |given )?(?:text|document|passage|story|article|context|item)"
_SAYING = r"(?:\w+ly )?(?:stated|mentioned|specified|given|provided|described|explained)"
_SAYS = (
    r"(?:\w+ly )?(?:say|state|mention|specify|tell|give|provide|contain|explain|describe|answer)"
)
_SENTENCES = lazy_pattern(
    rf"{_TEXT} (?:does|do)(?: not|n't) {_SAYS}\b.*"
    rf"|(?:.{{1,80}} is |.{{1,80}} are |it's )?not {_SAYING} (?:in|by) {_TEXT}"
    rf"|(?:there is )?no (?:information|mention)(?: is)?(?: {_SAYING})?(?: (?:in|about|of) .*)?"
    rf"|i (?:cannot|can't|do not|don't|could not) (?:know|tell|(?:find|determine) .* (?:in|from) {_TEXT})",
    re.I,
)
_BUT = lazy_pattern(
    r"\b(?:but|however|except(?:ing)?|although|though|yet|only|unless|save for|apart from|aside from|"
    r"other than|besides|instead|still|otherwise)\b|;",
    re.I,
)
"""Words that qualify it."""
_NOTHING = lazy_pattern(r"nothing(?: was| is)? found(?:[.:;,–—].*)?", re.I)
"""The line for *not stated* in plain text, and usual additions of models on the same line."""


def says_nothing(text: str) -> bool:
    """Whether a text is the "Nothing found." line."""
    return _NOTHING.fullmatch(text.strip(EDGES)) is not None and not _BUT.search(text)


def says_not_stated(text: str) -> bool:
    """Whether a text says in one sentence only that the document does not state the answer."""
    said = text.strip(EDGES).replace("’", "'")
    if says_nothing(said) or is_none(said):
        return True
    return len(said) <= MAX_LENGTH and not _BUT.search(said) and bool(_SENTENCES.fullmatch(said))


def is_none(text: str) -> bool:
    """Whether a whole text is a word for *not stated*."""
    return text.strip(EDGES).casefold() in _WORDS
