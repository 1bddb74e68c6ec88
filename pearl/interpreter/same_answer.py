"""Two answers to one question → whether they are the same, as far as that can be told without a model.

What cannot be told counts as different: answers that seem to confirm each other and do not are worse
than answers that do and are not seen to.
"""

from __future__ import annotations

import re

from pearl.actions.arithmetic.matching import are_same_number
from pearl.actions.values import Scalar, Value, as_text, items_of
from pearl.documents.dates import read_period
from pearl.documents.english import SCALES
from pearl.documents.evidence.finding import negations
from pearl.documents.numbers import is_bound
from pearl.documents.rows import Rows
from pearl.documents.words import shared_words, words

MIN_SHARED = 0.8
"""Token F1 from which a text is the same as one with some words more, as `the old boat of Ada` in place of
`the boat of Ada`: with at most a third of its words left out.

Words that are replaced or change places make another text: *sold in May* is not *sold in June*. So a
sentence that is rephrased counts as different.
"""

_VERDICT = re.compile(r"\W*(yes|no|true|false)\s*(?:[,.;:!–—-]|\Z)", re.IGNORECASE)
_TRUE = ("yes", "true")


def are_same_answer(one: Value, other: Value) -> bool:
    r"""Whether two values answer a question alike; symmetric.

    Lists and rows are compared as sets of entries. Of texts, the first rule that fits both decides:
    yes or no; dates and periods; numbers (`pearl.actions.arithmetic.matching.are_same_number`);
    else their words.

    Example:
        >>> are_same_answer("9.5%", 0.0947), are_same_answer("Yes, by 9 %.", "yes")
        (True, True)
        >>> are_same_answer(["Oslo", "Bergen"], "- bergen\n- Oslo"), are_same_answer("1 May 2023", "2023-05-01")
        (True, True)
        >>> are_same_answer("He paid Ada 5 dollars.", "He paid Ada 6 dollars.")
        False
    """
    one, other = (each.value if isinstance(each, Scalar) else each for each in (one, other))
    if isinstance(one, list | Rows) or isinstance(other, list | Rows):
        return _entries(one) == _entries(other)
    first, second = as_text(one).strip(), as_text(other).strip()
    verdicts = _VERDICT.match(first), _VERDICT.match(second)
    if verdicts[0] and verdicts[1]:
        return (verdicts[0][1].casefold() in _TRUE) == (verdicts[1][1].casefold() in _TRUE)
    periods = [read_period(text.rstrip(".")) for text in (first, second)]
    if all(period is not None and not doubt for period, doubt in periods):
        return periods[0][0] == periods[1][0]
    if (is_same := are_same_number(first, second)) is not None:
        return is_same and _are_qualified_alike(first, second)
    return _says_the_same(first, second)


def _are_qualified_alike(one: str, other: str) -> bool:
    """Whether what is said of one number is said of the other: `9 % higher` is not `9 % lower`, `> 5` not `5`."""
    if is_bound(one) or is_bound(other) or negations(one) != negations(other):
        return _says_the_same(one, other)
    first, second = ({*filter(str.isalpha, words(text))} - {*SCALES} for text in (one, other))
    return first <= second or second <= first


def _entries(value: Value) -> frozenset[tuple[str, ...]]:
    """The entries of a list, or of a text that is one; of rows, their lines."""
    items = as_text(value).split("\n") if isinstance(value, Rows) else items_of(value)
    return frozenset(tuple(words(item)) for item in items)


def _says_the_same(one: str, other: str) -> bool:
    shorter, longer = sorted((words(one), words(other)), key=len)
    if shorter == longer:
        return True
    if shared_words(one, other) < MIN_SHARED or _decisive(one) != _decisive(other):
        return False
    left = iter(longer)
    return all(word in left for word in shorter)


def _decisive(text: str) -> tuple[list[str], list[str]]:
    """What reverses or replaces a statement: its numbers and signs, and its negations."""
    return (
        sorted(word for word in words(text) if not word.isalpha()),
        sorted(negation.casefold() for negation in negations(text)),
    )
