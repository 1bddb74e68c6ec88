"""Answers of independent plans → the one that most of them give, and how far they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

from pearl.actions.values import Value
from pearl.documents.rows import shortened
from pearl.interpreter.same_answer import are_same_answer
from pearl.trace import AnswerStatus

MAX_SHOWN = 100
"""Characters of an answer in a line that lists several."""


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """What one of several different plans came to."""

    plan: str
    written: tuple[int, ...]
    status: AnswerStatus | Literal["failed"]
    text: str
    value: Value | None = None

    @property
    def is_answer(self) -> bool:
        """Whether it says something that others can confirm, be it that there is nothing."""
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
    """How far the answers of independent plans agree.

    A group are answers that all agree with one another. The answer is the first that all of the largest
    groups have in common; where they have none in common, there is none, and it is undecided.
    """

    n_plans: int
    answers: tuple[PlanAnswer, ...]

    @property
    def n_different(self) -> int:
        """Different plans, those that failed or stay undecided included."""
        return len(self.answers)

    @property
    def n_unwritten(self) -> int:
        """Plans that could not be written."""
        return self.n_plans - sum(len(answer.written) for answer in self.answers)

    @property
    def n_agreeing(self) -> int:
        """Different plans that give the answer, or each of the answers that are equally frequent."""
        return len(self._largest[0]) if self._largest else 0

    @property
    def chosen(self) -> int | None:
        """Which of `answers` is the answer; None if none is, or several are equally frequent."""
        common = frozenset.intersection(*self._largest) if self._largest else ()
        return min(common, default=None)

    @property
    def is_tied(self) -> bool:
        """Whether different answers are equally frequent, so that none is the answer."""
        return bool(self._largest) and self.chosen is None

    @property
    def confidence(self) -> float | None:
        """The share of the different plans that give the answer, 0 to 1.

        None where only one plan was written, which nothing confirms, and where there is no answer. It is
        a share, not a probability: `pearl.evals.report` measures what it is worth.

        Source:
            Wang et al., Self-Consistency Improves Chain of Thought Reasoning (2023), section 3.3.
        """
        if self.n_different < 2 or self.chosen is None:
            return None
        return self.n_agreeing / self.n_different

    @property
    def others(self) -> tuple[PlanAnswer, ...]:
        """The plans that do not give the answer; all of them where there is none."""
        if self.chosen is None:
            return self.answers
        return tuple(each for i, each in enumerate(self.answers) if i not in self._largest[0])

    @property
    def why(self) -> str:
        """Why there is no answer: which ones are equally frequent; "" where there is one."""
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

    def to_json(self) -> dict[str, Any]:
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
        """The largest groups, by the places of their answers, in order of their first."""
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
    """The groups that are no part of another one."""
    different = list(dict.fromkeys(groups))
    return [group for group in different if not any(group < other for other in different)]
