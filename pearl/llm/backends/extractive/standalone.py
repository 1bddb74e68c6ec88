"""A question of a conversation, made clear by rule where a rule is sure.

"And in 2009?" after "What were net sales in 2008?" is "What were net sales in 2009?". Where no rule is
sure what is meant, nothing is guessed: the earlier questions stand in brackets beside the question,
and what is searched for has their words, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pearl.data.samples import asked_with
from pearl.documents.passages import terms
from pearl.llm import StandaloneTask

MAX_EARLIER = 6
"""Earlier questions that stand in brackets: the first, and the latest ones."""

MAX_BACKGROUND = 800
"""Characters of them all."""

_YEAR = re.compile(r"(?<![\w.,$€£¥/-])(?:19|20)\d\d(?![\w%/-]|\s?%|[.,]\d)")
_LEAD = re.compile(r"\A(?:(?:and|so|but|or|then|now|ok|okay)\b[\s,]*)+", re.I)
_OF_YEAR = r"(?:fiscal\s+)?(?:(?:the\s+)?(?:(?:previous|prior|next|following|subsequent)\s+)?year\s*,?\s*(?:of\s+|in\s+)?)?(?P<year>(?:19|20)\d\d)"
_BE = r"what(?:\s+(?:is|are|was|were)|['’]s)"
_NOUN = r"(?P<noun>value|amount|figure|number|total|price|rate|balance|cost|percentage)"
_AGAIN = r"(?:\s+(?:again|specifically))?\s*\??\s*\Z"
_SAME_ASKED = [  # the same question of another year
    re.compile(pattern, re.I)
    for pattern in (
        rf"(?:(?:what|how)\s+about\s+)?(?:in|for|during)\s+{_OF_YEAR}{_AGAIN}",
        rf"(?:what|how)\s+about\s+{_OF_YEAR}{_AGAIN}",
        rf"{_BE}\s+(?:it|that|they|those|this|these)\s+(?:in|for|during)\s+{_OF_YEAR}{_AGAIN}",
    )
]
_VALUE_ASKED = [  # the value of another year, perhaps after something was computed from it
    re.compile(pattern, re.I)
    for pattern in (
        rf"(?:{_BE}\s+)?the\s+(?:specific\s+)?{_NOUN}\s+(?:in|for|of|during)\s+{_OF_YEAR}{_AGAIN}",
        rf"(?:{_BE}\s+)?the\s+(?:specific\s+)?{_OF_YEAR}\s+{_NOUN}{_AGAIN}",
    )
]
_PLAIN_NOUNS = ("value", "amount", "figure")
"""They stand for a figure of any kind; the other nouns for one that is called so."""
_DATE = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|quarters?|months?|half|weeks?|days?|date|q[1-4]"
    r"|year\s+(?:before|after)|(?:previous|prior|next|following|subsequent|last|first)\s+(?:\w+\s+)?years?)\b",
    re.I,
)
"""A period that is not a year alone."""
_BEFORE_PERIOD = re.compile(
    r"(?:\b(?:in|for|during|fiscal|year|year\s+of|(?:end|beginning|start|close)\s+of|from|the)\s+|\A)\Z",
    re.I,
)
_NAMED_BY_YEAR = re.compile(
    r"\s+(?:\w+\s+)?(?:notes?|bonds?|debentures?|plans?|programs?|agreements?|acts?|facility|facilities"
    r"|acquisitions?|merger|offering|repurchase|authorization|loan|senior|term|series|restructuring)\b",
    re.I,
)
"""What may be called by a year, which is then no period."""
_OTHER_PERIOD = re.compile(
    r"\b(?:due|matur\w+|expir\w+|after|before|since|until|through|thereafter|beyond|to|than|compared"
    r"|versus|relative|between)\b",
    re.I,
)
_DERIVED = re.compile(
    r"\b(?:chang\w*|differ\w*|variations?|fluctuations?|increas\w*|decreas\w*|declin\w*|reduc\w*|grow\w*"
    r"|ratio|sum|averages?|percent\w*|portion|proportion|represent\w*|less|minus|plus|times|divided"
    r"|product|combined|including|excluding|returns?|between|two)\b",
    re.I,
)
"""What is computed from figures."""
_REFERS = re.compile(
    r"\b(?:it|its|they|them|theirs?|this|that|these|those|such|same|both|former|latter|ones?|he|him|his"
    r"|she|hers?|then|again|also|too|previous|prior|preced\w+|next|following|subsequent|others?|another"
    r"|else|instead|there|two|including|excluding|without)\b",
    re.I,
)
_RESULT = re.compile(
    r"\bthe\s+(?:\w+\s+)?(?:change|sum|difference|total|average|increase|decrease|decline|ratio|product|variation)\b"
    r"(?!\s+(?:in|of|for|between|from|\w+\s+(?:of|in|for)|\w+\s+\w+\s+(?:of|in|for))\b)",
    re.I,
)
"""A result of earlier questions, where nothing says what it is of."""
_ELLIPTIC = re.compile(
    r"\A(?:(?:what|how)\s+about\b|in\b[^,]*\Z|for\b[^,]*\Z|including\b|the\b|why\W*\Z)", re.I
)
_GENERIC = frozenset(
    terms(
        "net total overall specific full value values amount amounts figure figures number numbers year years"
        " period periods time change changes difference variation increase decrease decline reduction growth"
        " growing rate percent percentage ratio sum average mean fraction portion proportion share represent"
        " represents less minus plus times divided product result high highest higher low lowest lower first"
        " last second third million millions billion billions thousand thousands dollar dollars unit units"
        " balance balances beginning begin start end close come comes fraction considering becomes convert converted decimal digits single much many"
    )
)
"""Terms that do not say what a figure is of."""
_TOPIC_ASKED = re.compile(
    r"(?:what|how)\s+about\s+(?P<topic>(?:the\s+)?[a-z][\w&'’-]*(?:\s+[\w&'’-]+){0,6})\s*\??\s*\Z",
    re.I,
)
_ONE_TOPIC = re.compile(
    rf"(?P<head>{_BE}\s+)(?P<topic>(?:the\s+)?[\w&'’-]+(?:\s+[\w&'’-]+){{0,6}}?)"
    r"(?P<tail>\s+(?:in|for|during)\s+(?:19|20)\d\d\s*\??)\s*\Z",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Said:
    """An earlier question."""

    text: str
    is_clear: bool


def make_standalone(task: StandaloneTask) -> str:
    """The question, clear by itself, or with the earlier ones in brackets.

    Example:
        >>> from pearl.data.samples import Turn
        >>> sales = (Turn("What were net sales in 2008?"),)
        >>> make_standalone(StandaloneTask("and in 2009?", sales))
        'What were net sales in 2009?'
        >>> make_standalone(StandaloneTask("How much did that change?", sales))
        'How much did that change? (asked with: What were net sales in 2008)'
    """
    said: list[_Said] = []
    for turn in task.history:
        said.append(_made_clear(" ".join(turn.question.split()), said))
    last = _made_clear(task.question, said)
    return last.text if last.is_clear else asked_with(last.text, _background(said))


def _made_clear(question: str, said: Sequence[_Said]) -> _Said:
    """A question by the rules, after those that were said before it."""
    if not said:
        return _Said(question, True)
    bare = _LEAD.sub("", question)
    if not terms(bare, drop_stop_words=True) and not _YEAR.search(bare):
        return _Said(question, False)
    for patterns, ask in ((_SAME_ASKED, _same_asked), (_VALUE_ASKED, _value_asked)):
        for pattern in patterns:
            if match := pattern.match(bare):
                earlier = ask(match, said)
                text = earlier and _with_year(earlier, match["year"])
                return _Said(text or question, bool(text))
    if text := _of_other_topic(bare, said[-1]):
        return _Said(text, True)
    if _is_clear(bare, said):
        return _Said(bare, True)
    return _Said(question, False)


def _same_asked(match: re.Match[str], said: Sequence[_Said]) -> str:
    """The last question, of which the same is asked; "" where it is not clear itself."""
    return said[-1].text if said[-1].is_clear else ""


def _value_asked(match: re.Match[str], said: Sequence[_Said]) -> str:
    """The question for a value: the last one, but for what was computed from it."""
    for earlier in reversed(said):
        if not earlier.is_clear:
            if _DERIVED.search(earlier.text):
                continue
            return ""
        noun = match["noun"].lower()
        is_named = noun in _PLAIN_NOUNS or re.search(rf"\b{noun}s?\b", earlier.text, re.I)
        return earlier.text if is_named and not _DERIVED.search(earlier.text) else ""
    return ""


def _with_year(question: str, year: str) -> str:
    """A question of another year; "" where its period is not one year."""
    years = list(_YEAR.finditer(question))
    if len(years) != 1 or _DATE.search(question) or _OTHER_PERIOD.search(question):
        return ""
    before, after = question[: years[0].start()], question[years[0].end() :]
    if _BEFORE_PERIOD.search(before) is None or _NAMED_BY_YEAR.match(after):
        return ""
    return f"{before}{year}{after}"


def _of_other_topic(question: str, last: _Said) -> str:
    """The last question of another topic that is called by the same noun; "" where that is not sure."""
    match, before = _TOPIC_ASKED.match(question), _ONE_TOPIC.match(last.text)
    if match is None or before is None or not last.is_clear:
        return ""
    topic, old = match["topic"], before["topic"]
    is_plain = not any(_REFERS.search(text) or _DERIVED.search(text) for text in (topic, old))
    noun = topic.split()[-1].lower()
    if not is_plain or noun != old.split()[-1].lower() or set(terms(noun)) <= _GENERIC:
        return ""
    return f"{before['head']}{topic}{before['tail']}"


def _is_clear(question: str, said: Sequence[_Said]) -> bool:
    """Whether a question says itself what it is about, and when, if the others do."""
    if any(_YEAR.search(earlier.text) for earlier in said) and not _YEAR.search(question):
        return False
    texts = [earlier.text for earlier in said]
    return len(_own_terms(question)) > 1 and not may_refer(question, texts)


def may_refer(question: str, earlier: Sequence[str]) -> bool:
    """Whether a question may be about what earlier ones are about, without saying so.

    Example:
        >>> may_refer("What is the net change?", ["What were sales of boats in 2009"])
        True
        >>> may_refer("What were sales of boats in 2010", ["What were sales of boats in 2009"])
        False
    """
    if any(each.search(question) for each in (_REFERS, _RESULT, _ELLIPTIC)):
        return True
    own = _own_terms(question)
    return not own or any(own < _own_terms(text) for text in earlier)


def _own_terms(question: str) -> set[str]:
    """The terms that say what a question is about."""
    found = {term for term in terms(question, drop_stop_words=True) if not term.isdigit()}
    return found - _GENERIC


def _background(said: Sequence[_Said]) -> str:
    """The first question and the latest ones that fit, without brackets, semicolons and question marks."""
    lines = [" ".join(re.sub(r"[()?？;]", " ", each.text).split()) for each in said]
    first, rest = lines[0][: MAX_BACKGROUND // 2], lines[1:][1 - MAX_EARLIER :]
    while sum(map(len, (first, *rest))) > MAX_BACKGROUND and rest:
        rest = rest[1:]
    omitted = ["..."] * (len(rest) < len(lines) - 1)
    return "; ".join(line for line in (first, *omitted, *rest) if line)
