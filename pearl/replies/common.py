"""What replies of all types share: the JSON objects in them, and the words by which they say that the document states nothing.

In the form of a reply, null says so; free texts have many words for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from pearl.errors.patterns import lazy_pattern

_START = lazy_pattern(r'\{(?=\s*["}])')


def json_objects(text: str) -> list[dict[str, Any]]:
    """All outer objects of a text, in order; ValueError for a broken one or one with a repeated key."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repeated_keys)
    objects: list[dict[str, Any]] = []
    end = 0
    while start := _START.search(text, end):
        value, end = decoder.raw_decode(text, start.start())
        objects.append(value)
    return objects


def unique_json(text: str) -> Any:
    """The value of a JSON text; ValueError for a broken one or an object with a repeated key."""
    return json.loads(text, object_pairs_hook=_without_repeated_keys)


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key '{key[:60]}' occurs twice in one object")
    return fields


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
