"""Lower and upper bounds of the cost of a step."""

from __future__ import annotations

from math import inf

from msgspec import Struct


class Range(Struct, frozen=True):
    """A lower and an upper bound; `upper` is infinity if there is no upper bound."""

    least: float
    upper: float

    @property
    def most(self) -> float | None:
        """The upper bound; None if it is infinite."""
        return None if self.upper == inf else self.upper

    def __add__(self, other: Range) -> Range:
        return Range(self.least + other.least, self.upper + other.upper)

    def up_to(self, cap: int | None) -> Range:
        """Limit both bounds by a cap; None for no cap."""
        return self if cap is None else Range(min(self.least, cap), min(self.upper, cap))

    def to_dict(self) -> dict[str, float | None]:
        """As JSON data."""
        return {"least": self.least, "most": self.most}


NONE, ONE, ANY = Range(0, 0), Range(1, 1), Range(0, inf)


class StepCosts(Struct):
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
        """The same upper bounds with lower bounds of 0, for calls that may not be made."""
        ranges = (self.calls, self.input_tokens, self.output_tokens)
        return StepCosts(*(Range(0, each.upper) for each in ranges))
