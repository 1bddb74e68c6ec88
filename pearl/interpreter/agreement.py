"""Answers of independent plans → the most frequent answer, and how many plans agree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

from pearl.actions.arithmetic.matching import are_same_number
from pearl.actions.values import Scalar, Value, as_text, items_of
from pearl.documents.dates import read_period
from pearl.documents.english import SCALES
from pearl.documents.evidence.finding import negations
from pearl.documents.numbers import is_bound
from pearl.documents.rows import Rows, shortened
from pearl.documents.words import shared_words, words
from pearl.errors.patterns import lazy_pattern
from pearl.trace import AnswerStatus

MIN_SHARED = 0.8
"""Minimum token F1 at which two answers are equal if one only has additional words (`the old boat of Ada`, `the boat of
Ada`); 0.8 allows a third of the words to be left out.

Replaced or reordered words make another answer: *sold in May* is not *sold in June*. So a rephrased
sentence counts as different.
"""

_VERDICT = lazy_pattern(r"\W*(yes|no|true|false)\s*(?:[,.;:!–—-]|\Z)", re.IGNORECASE)
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
    """Whether two equal numbers have the same qualifier: `9 % higher` is not `9 % lower`, `> 5` is not `5`."""
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
    """The parts that decide a statement: numbers, signs and negations."""
    return (
        sorted(word for word in words(text) if not word.isalpha()),
        sorted(negation.casefold() for negation in negations(text)),
    )


MAX_SHOWN = 100
"""Maximum characters of an answer in a line that lists several answers."""


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The outcome of one of several different plans."""

    plan: str
    written: tuple[int, ...]
    status: AnswerStatus | Literal["failed"]
    text: str
    value: Value | None = None

    @property
    def is_answer(self) -> bool:
        """Whether other plans can confirm it; "nothing found" can be confirmed, too."""
        return self.status in ("answered", "nothing_found")

    def agrees_with(self, other: PlanAnswer) -> bool:
        """Whether both are answers, and the same one."""
        if not (self.is_answer and other.is_answer) or self.status != other.status:
            return False
        if self.status == "nothing_found":
            return True
        return (
            self.value is not None
            and other.value is not None
            and are_same_answer(self.value, other.value)
        )


@dataclass(frozen=True)
class Agreement:
    """The agreement of the answers of independent plans.

    In a group, every two answers agree. The chosen answer is the first one that all of the largest groups
    contain; without such an answer, the result is undecided.
    """

    n_plans: int
    answers: tuple[PlanAnswer, ...]

    @property
    def n_different(self) -> int:
        """Number of different plans, including those that failed or stayed undecided."""
        return len(self.answers)

    @property
    def n_unwritten(self) -> int:
        """Plans that could not be written."""
        return self.n_plans - sum(len(answer.written) for answer in self.answers)

    @property
    def n_agreeing(self) -> int:
        """Number of different plans that give the answer, or each of the equally frequent answers."""
        return len(self._largest[0]) if self._largest else 0

    @property
    def chosen(self) -> int | None:
        """Index of the chosen answer in `answers`; None if there is no answer or a tie."""
        common = frozenset.intersection(*self._largest) if self._largest else ()
        return min(common, default=None)

    @property
    def is_tied(self) -> bool:
        """Whether different answers are equally frequent, so that none is chosen."""
        return bool(self._largest) and self.chosen is None

    @property
    def confidence(self) -> float | None:
        """The share of the different plans that give the answer, 0 to 1.

        None if only one plan was written, because nothing confirms it, or if no answer was chosen. It is
        a share, not a probability: `pearl.evals.report` measures how well it predicts correctness.

        Source:
            Wang et al., Self-Consistency Improves Chain of Thought Reasoning (2023), section 3.3.
        """
        if self.n_different < 2 or self.chosen is None:
            return None
        return self.n_agreeing / self.n_different

    @property
    def others(self) -> tuple[PlanAnswer, ...]:
        """The plans that do not give the answer; all plans if no answer was chosen."""
        if self.chosen is None:
            return self.answers
        return tuple(each for i, each in enumerate(self.answers) if i not in self._largest[0])

    @property
    def why(self) -> str:
        """Why no answer was chosen: the answers that are equally frequent; "" if one was chosen."""
        if not self.is_tied:
            return ""
        of = f"of {self.n_different} different plans"
        said = [shortened(self.answers[min(group)].text, MAX_SHOWN) for group in self._largest]
        shown = "; ".join(f"{self.n_agreeing} {of}: {text}" for text in dict.fromkeys(said))
        return f"the plans disagree: {shown}"

    def __str__(self) -> str:
        if self.n_different < 2:
            times = f"{len(self.answers[0].written)} times" if self.answers else "never"
            text = f"unknown: one plan was written {times}, so nothing confirms it"
        elif self.is_tied:
            n = len(self._largest)
            text = (
                f"none: {n} answers by {self.n_agreeing} of {self.n_different} different plans each"
            )
        elif self.chosen is None:
            text = f"none of {self.n_different} different plans has an answer"
        else:
            share = self.n_agreeing / self.n_different
            text = f"{self.n_agreeing} of {self.n_different} different plans ({100 * share:.0f} %)"
        if self.n_unwritten:
            text += f"; {self.n_unwritten} of {self.n_plans} plans could not be written"
        return text

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "plans": self.n_plans,
            "different": self.n_different,
            "agreeing": self.n_agreeing,
            "confidence": self.confidence,
            "answers": [
                {
                    "written": list(each.written),
                    "status": each.status,
                    "answer": each.text,
                    "agrees": each not in self.others,
                    "plan": each.plan,
                }
                for each in self.answers
            ],
        }

    @cached_property
    def _largest(self) -> list[frozenset[int]]:
        """The largest groups as indexes of answers, in the order of their first answers."""
        agree = {
            pair: self.answers[pair[0]].agrees_with(self.answers[pair[1]])
            for pair in combinations(range(self.n_different), 2)
        }
        groups: list[frozenset[int]] = []
        for i, answer in enumerate(self.answers):
            if answer.is_answer:
                joined = [frozenset(g for g in group if agree[g, i]) | {i} for group in groups]
                groups = _maximal([*groups, frozenset({i}), *joined])
        size = max(map(len, groups), default=0)
        return sorted((group for group in groups if len(group) == size), key=min)


def _maximal(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """The groups that are not part of another group."""
    different = list(dict.fromkeys(groups))
    return [group for group in different if not any(group < other for other in different)]
