"""Answers of independent plans → how far they agree."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Agreement"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far answers of independent plans agree.

    Attributes:
        n_plans: Plans that were written and run.
        n_different: Different ones among them: equal plans do not confirm each other.
        n_agreeing: Of these, those that gave the answer.
    """

    n_plans: int
    n_different: int
    n_agreeing: int
