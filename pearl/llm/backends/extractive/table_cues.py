"""Words of a question that say how rows are compared, ordered and counted, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NUMBER = r"[$€£¥₪]?\d[\d,]*(?:\.\d+)?%?"
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_TIME = r"\d{1,2}(?:[:.]\d\d)?\s*(?:[ap]\.?m\b\.?)?"

_OPERATORS = {
    "before": r"less\s+than|fewer\s+than|lower\s+than|smaller\s+than|shorter\s+than|cheaper\s+than|"
    r"earlier\s+than|older\s+than|under|below|before",
    "after": r"more\s+than|greater\s+than|higher\s+than|larger\s+than|longer\s+than|later\s+than|"
    r"newer\s+than|over|above|exceeding|after",
    "at least": r"at\s+least|no\s+less\s+than|not\s+less\s+than|no\s+fewer\s+than|since|from",
    "at most": r"at\s+most|no\s+more\s+than|not\s+more\s+than|up\s+to|until",
    "is": r"exactly|in|during|on|of|equal\s+to",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?,?\s+(?P<year>(?:1[6-9]|20)\d\d)"
_DATE = r"\d{4}-\d\d(?:-\d\d)?|(?:1[6-9]|20)\d\d"
_COMPARISON = re.compile(
    rf"\b(?:between\s+(?P<low>{_DATE}|{_NUMBER})\s+and\s+(?P<high>{_DATE}|{_NUMBER})|(?:"
    + "|".join(f"(?P<o{i}>{words})" for i, words in enumerate(_OPERATORS.values()))
    + rf")\s+(?:the\s+(?:year\s+)?)?(?P<value>{_MONTH}|{_DATE}|{_NUMBER}))(?![\w:])",
    re.I,
)
_MOMENT = re.compile(
    rf"\b(?P<not>not\s+)?(?P<how>open(?:s|ed)?|closed)\b(?P<between>[^,;?]*?)\b(?:on\s+|every\s+)?(?P<day>{_DAY})s?\b"
    rf"(?P<part>\s+(?:morning|afternoon|evening|night|noon|midday)s?)?"
    rf"(?:\s*,?\s*(?:at\s+|from\s+|between\s+)(?P<from>{_TIME})(?:\s*(?:-|–|to|until|and)\s*(?P<to>{_TIME}))?)?",
    re.I,
)

_CUES = {
    "count": r"how\s+many|(?:what\s+is\s+)?the\s+number\s+of|count(?:\s+the|\s+of)?",
    "mean": r"on\s+average|average|mean",
    "sum": r"in\s+total|total|sum(?:\s+of)?|altogether|combined",
    "most": r"(?:the\s+)?(?:most|highest|largest|biggest|greatest|longest|maximum|maximal)",
    "least": r"(?:the\s+)?(?:least|fewest|lowest|smallest|shortest|minimum|minimal)",
    "last": r"(?:the\s+)?(?:latest|newest|most\s+recent(?:ly)?)",
    "first": r"(?:the\s+)?(?:earliest|oldest)",
    "each": r"per|(?:in|of|for|by)\s+each|each|by",
}
_CUE = re.compile(
    "|".join(rf"(?P<{name}>\b(?:{words})\b)" for name, words in sorted(_CUES.items(), key=lambda each: each[0] not in ("last", "count"))), re.I
)  # fmt: skip

LOGICAL = re.compile(
    r"\b(?:no|not|non|nor|neither|never|none|without|except|excluding|other|or|either|than|more|most|less|least|"
    r"fewer|fewest|before|after|since|until|between|over|under|above|below|only|both|all|every|same|also|besides)\b"
    r"|n['’]t\b",
    re.I,
)
"""Words that turn conditions round, join them otherwise than by `and`, or compare."""
VAGUE = re.compile(
    r"\b(?:now|today|tonight|tomorrow|yesterday|currently|at\s+the\s+moment|near(?:by|est)?|close(?:st)?\s+to|"
    r"near\s+me|soon|recently|this\s+(?:week|month|year)|last\s+(?:week|month|year)|change[ds]?|difference|"
    r"compared?|ratio|percent(?:age)?|share|why|if)\b",
    re.I,
)
"""What no column says, or no query computes."""
FRAME = frozenset((
    "list", "show", "name", "give", "tell", "find", "there", "which", "what", "who", "where",
    "when", "many", "number", "row", "entry", "record", "item", "one", "thing", "place", "see",
    "get", "visit", "go", "have", "has", "had", "do", "does", "did", "is", "are", "was", "were",
    "be", "can", "could", "will", "would", "should", "offer", "provide", "available", "exist",
    "located", "situated", "please", "me", "all", "any", "some", "their", "its", "detail",
    "information", "know", "need", "want", "look", "work", "looking", "search", "with", "that",
    "those", "these", "of", "table", "data", "file", "long", "much",
))  # fmt: skip
"""Words that say nothing of rows."""
GENERIC = ("row", "record", "entry", "item", "line", "one", "place", "result")
"""Nouns for whatever a row is of."""


@dataclass(frozen=True, slots=True)
class Cue:
    """Words with a meaning of their own."""

    start: int
    end: int
    name: str
    value: str = ""
    high: str = ""


def find(question: str) -> Iterator[Cue]:
    """What is counted, averaged or ordered.

    Example:
        >>> [cue.name for cue in find("How many per city, and which has the most recent?")]
        ['count', 'each', 'last']
    """
    for match in _CUE.finditer(question):
        yield Cue(match.start(), match.end(), match.lastgroup or "")


def comparisons(question: str) -> Iterator[Cue]:
    """Comparisons with a number, a year, a month or a date.

    Example:
        >>> [(cue.name, cue.value) for cue in comparisons("under $5,000 and after 2015")]
        [('before', '$5,000'), ('after', '2015')]
    """
    for match in _COMPARISON.finditer(question):
        if match["low"]:
            yield Cue(match.start(), match.end(), "between", match["low"], match["high"])
        else:
            name = next(op for i, op in enumerate(_OPERATORS) if match[f"o{i}"])
            value = match["value"].rstrip(",")
            if match["month"]:
                value = f"{match['year']}-{_MONTHS.index(match['month'].lower()) + 1:02}"
            yield Cue(match.start(), match.end(), name, value)


def moments(question: str) -> Iterator[tuple[Cue, ...]]:
    """Times at which something is to be open, or not: what it says, and which words are of it.

    A part of a day is of no certain hours, and its cue has no value.

    Example:
        >>> [[(cue.name, cue.value) for cue in each] for each in moments("Who is open on Friday at 11:30?")]
        [[('open', 'Friday 11:30'), ('day', '')]]
    """
    for match in _MOMENT.finditer(question):
        value = match["day"]
        if match["from"]:
            value += f" {match['from'].strip()}"
        if match["to"]:
            value += f"-{match['to'].strip()}"
        is_open = match["how"].lower().startswith("open") != bool(match["not"])
        name = "open" if is_open else "no open"
        opened = Cue(match.start(), match.end("how"), name, "" if match["part"] else value)
        yield opened, Cue(match.end("between"), match.end(), "day")
