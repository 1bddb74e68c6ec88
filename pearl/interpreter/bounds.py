"""Lower and upper bounds of what a step costs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from pearl.interpreter.requests import MARK_TOKENS, PROMPT_MARGIN


@dataclass(frozen=True, slots=True)
class Range:
    """A lower and an upper bound; None is unknown."""

    least: float
    most: float | None

    def __add__(self, other: Range) -> Range:
        most = None if self.most is None or other.most is None else self.most + other.most
        return Range(self.least + other.least, most)

    def up_to(self, cap: int | None) -> Range:
        """The same, but nothing above a cap; None for no cap."""
        if cap is None:
            return self
        most = cap if self.most is None else min(cap, self.most)
        return Range(min(self.least, most), most)

    @property
    def or_nothing(self) -> Range:
        """The same upper bound, from 0."""
        return Range(0, self.most)

    @property
    def is_exact(self) -> bool:
        """Whether both bounds are equal."""
        return self.least == self.most

    def to_json(self) -> dict[str, float | None]:
        """As JSON data."""
        return {"least": self.least, "most": self.most}


NONE = Range(0, 0)


@dataclass(frozen=True, slots=True)
class StepCosts:
    """The cost of one step."""

    calls: Range = NONE
    input_tokens: Range = NONE
    output_tokens: Range = NONE
    depth: Range = NONE
    prefixes: tuple[str, ...] = ()

    def then(self, later: StepCosts) -> StepCosts:
        """These costs and those of calls that wait for them."""
        return self._with(later, self.depth + later.depth)

    def beside(self, other: StepCosts) -> StepCosts:
        """These costs and those of calls at the same time."""
        return self._with(other, longer(self.depth, other.depth))

    def _with(self, other: StepCosts, depth: Range) -> StepCosts:
        return StepCosts(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            depth,
            (*self.prefixes, *other.prefixes),
        )

    @property
    def or_nothing(self) -> StepCosts:
        """The same upper bounds, where it may be that nothing is requested."""
        return StepCosts(
            self.calls.or_nothing,
            self.input_tokens.or_nothing,
            self.output_tokens.or_nothing,
            self.depth.or_nothing,
        )


def longer(a: Range, b: Range) -> Range:
    """The longer of two chains of calls."""
    most = None if a.most is None or b.most is None else max(a.most, b.most)
    return Range(max(a.least, b.least), most)


def most_merges(n: int, frame: float, text: float, cap: int | None) -> int:
    """Maximum calls that merge results until one is left."""
    if cap is None:
        return 1
    # So many are certain to fit together.
    sure = int((cap - ceil(frame) - PROMPT_MARGIN) // (text + MARK_TOKENS))
    half = (sure + 1) // 2  # a group that turns out too long is halved
    total = 0
    left = n
    while left > 1:
        if left <= sure:
            return min(total + 1, n - 1)
        if half < 2:
            return n - 1
        groups = min(left // half + 1, left - 1)
        total += groups
        left = groups
    return min(total, n - 1)
