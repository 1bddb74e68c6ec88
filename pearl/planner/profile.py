"""Model → what a planner of its size is shown, and how long its plans may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["FULL", "PROFILES", "SMALL", "PlannerProfile", "ProfileName"]

ProfileName = Literal["auto", "full", "small"]
"""`auto` goes by the size and the window of the model."""

PROFILES: tuple[ProfileName, ...] = ("auto", "full", "small")


@dataclass(frozen=True, slots=True)
class PlannerProfile:
    """What a planner is shown.

    Attributes:
        name: As on the command line.
        n_actions: Actions nearest to the question; None for the whole library.
        n_examples: Examples nearest to the question; None for what the settings say.
        max_steps: Of a plan; None for what the settings say.
        is_explained: Whether examples have the explanations of their steps, and replies too.
    """

    name: Literal["full", "small"]
    n_actions: int | None = None
    n_examples: int | None = None
    max_steps: int | None = None
    is_explained: bool = True


FULL = PlannerProfile("full")
SMALL = PlannerProfile("small", n_actions=15, n_examples=6, max_steps=3, is_explained=False)
