"""Lower and upper bounds of the cost of a step."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Range:
    """A lower and an upper bound; None or infinity for no upper bound."""

    least: float
    most: float | None

    def __post_init__(self) -> None:
        if self.most == inf:
            object.__setattr__(self, "most", None)

    @property
    def upper(self) -> float:
        """The upper bound; infinity for none."""
        return inf if self.most is None else self.most

    def __add__(self, other: Range) -> Range:
        return Range(self.least + other.least, self.upper + other.upper)

    def up_to(self, cap: int | None) -> Range:
        """These bounds, limited by a cap; None for no cap."""
        upper = self.upper if cap is None else min(cap, self.upper)
        return Range(min(self.least, upper), upper)

    @property
    def or_nothing(self) -> Range:
        """These bounds with a lower bound of 0."""
        return Range(0, self.most)

    def to_dict(self) -> dict[str, float | None]:
        """As JSON data."""
        return {"least": self.least, "most": self.most}


NONE, ONE, ANY = Range(0, 0), Range(1, 1), Range(0, None)


@dataclass(slots=True)
class StepCosts:
    """The cost of one step."""

    calls: Range = NONE
    input_tokens: Range = NONE
    output_tokens: Range = NONE

    def __add__(self, other: StepCosts) -> StepCosts:
        return StepCosts(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    @property
    def or_nothing(self) -> StepCosts:
        """These costs with lower bounds of 0."""
        return StepCosts(
            self.calls.or_nothing, self.input_tokens.or_nothing, self.output_tokens.or_nothing
        )
