"""Lower and upper bounds of what a step costs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NONE", "Range", "StepCosts", "longer"]


@dataclass(frozen=True, slots=True)
class Range:
    """A lower and an upper bound; None is unknown."""

    least: float
    most: float | None

    def __add__(self, other: Range) -> Range:
        most = None if self.most is None or other.most is None else self.most + other.most
        return Range(self.least + other.least, most)

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
    """The cost of one step.

    Attributes:
        calls: Model calls.
        input_tokens: Tokens of all prompts.
        output_tokens: Tokens of all replies.
        depth: Calls on the longest dependent chain.
        prefixes: Known prompt prefixes that contain text of the document.
    """

    calls: Range = NONE
    input_tokens: Range = NONE
    output_tokens: Range = NONE
    depth: Range = NONE
    prefixes: tuple[str, ...] = ()


def longer(a: Range, b: Range) -> Range:
    """The longer of two chains of calls."""
    most = None if a.most is None or b.most is None else max(a.most, b.most)
    return Range(max(a.least, b.least), most)
