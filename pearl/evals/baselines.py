"""Records of multiple choice → what is right without reading anything, and how a method's letters are spread.

A method that is no better than the longest option has not shown that it reads. Both are made of what records say already:
no model is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pearl.data.samples import letter
from pearl.evals.log import EvalRecord

LONGEST = "longest"
MAJORITY = "majority"
BASELINES = (LONGEST, MAJORITY)

MOSTLY = 0.5
"""Share of the replies from which one letter is remarkable."""


def baseline_records(records: Iterable[EvalRecord]) -> tuple[EvalRecord, ...]:
    """Records of the baselines for the samples of others; empty unless all of these have options.

    `longest` is the option of the most characters. `majority` is the most frequent letter of their
    right options, which nobody knows beforehand: it may be a little too high. Of equal ones each counts in part.

    Example:
        >>> known = {"status": "answered", "question": "Who?", "options": ("I", "the miller"), "method": "mcq"}
        >>> records = [EvalRecord(sample=str(i), gold=1, **known) for i in range(3)]
        >>> [(each.method, each.score) for each in baseline_records(records)][::3]
        [('longest', 1.0), ('majority', 1.0)]
    """
    samples = {record.sample: record for record in records}
    if not samples or not all(r.options and r.gold is not None for r in samples.values()):
        return ()
    golds = Counter(record.gold for record in samples.values())
    made: list[EvalRecord] = []
    for name in BASELINES:
        for record in samples.values():
            sizes = [len(option) for option in record.options]
            if name == MAJORITY:
                sizes = [golds[i] for i in range(len(record.options))]
            best = [i for i, size in enumerate(sizes) if size == max(sizes)]
            made.append(
                EvalRecord(
                    sample=record.sample, method=name, status="answered", question=record.question,
                    document=record.document, subsets=record.subsets, options=record.options,
                    gold=record.gold, choice=best[0], rotation_of=record.rotation_of,
                    score=(record.gold in best) / len(best),
                )
            )  # fmt: skip
    return tuple(made)


@dataclass(frozen=True, slots=True)
class LetterUse:
    """Which letters a method replied."""

    method: str
    chosen: tuple[int, ...]
    gold: tuple[int, ...]
    right: tuple[int, ...]
    n: int
    n_rotated: int
    n_consistent: int

    @property
    def is_biased(self) -> bool:
        """Whether one letter has more than half of the replies, and more than twice what is right."""
        top = max(range(len(self.chosen)), key=lambda i: self.chosen[i], default=0)
        return self.n > 0 and (
            self.chosen[top] > MOSTLY * self.n
            and self.chosen[top] * sum(self.gold) > 2 * self.gold[top] * self.n
        )

    def __str__(self) -> str:
        shares = ", ".join(
            f"{letter(i)} {n:,} ({right:,}/{gold:,})"
            for i, (n, gold, right) in enumerate(
                zip(self.chosen, self.gold, self.right, strict=True)
            )
        )
        same = f"; the same under every rotation: {self.n_consistent:,} of {self.n_rotated:,}"
        return f"{shares}{same if self.n_rotated else ''}"


def letter_use(records: Sequence[EvalRecord]) -> list[LetterUse]:
    """How the letters of each method are spread; empty unless all records have options."""
    if not records or not all(r.options and r.gold is not None for r in records):
        return []
    return [
        _use(method, [record for record in records if record.method == method])
        for method in dict.fromkeys(record.method for record in records)
    ]


def _use(method: str, records: Sequence[EvalRecord]) -> LetterUse:
    letters = range(max(len(record.options) for record in records))
    chosen = Counter(record.choice for record in records)
    gold = Counter(record.gold for record in records)
    right = Counter(record.gold for record in records if record.choice == record.gold)
    rotated: dict[tuple[str, int], list[EvalRecord]] = {}
    for record in records:
        if record.rotation_of:
            rotated.setdefault((record.rotation_of, record.seed), []).append(record)
    whole = [
        {None if r.choice is None else r.options[r.choice] for r in group}
        for group in rotated.values()
        if len(group) == len(group[0].options)
    ]
    known = [options for options in whole if None not in options]
    return LetterUse(
        method,
        tuple(chosen[i] for i in letters),
        tuple(gold[i] for i in letters),
        tuple(right[i] for i in letters),
        sum(chosen[i] for i in letters),
        len(known),
        sum(len(options) == 1 for options in known),
    )
