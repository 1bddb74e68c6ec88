"""Model → what a planner of its size is shown, and how long its plans may be.

A small model imitates what it is shown and repeats itself where that is long: SmolLM2-135M ends no
plan after 3,800 tokens of prompt and every plan after 800.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pearl.llm import Model, PlanTask
from pearl.llm.reply_limits import reply_limit
from pearl.llm.size import is_small

ProfileName = Literal["auto", "full", "small"]
"""`auto` goes by the size and the window of the model."""

PROFILES: tuple[ProfileName, ...] = ("auto", "full", "small")

MIN_WINDOW = 8_192
"""Tokens that the full prompt needs: 3,800 to 4,200, the reply, and as much again for a repair."""


@dataclass(frozen=True, slots=True)
class PlannerProfile:
    """What a planner is shown."""

    name: Literal["full", "small"]
    n_actions: int | None = None
    n_examples: int | None = None
    max_steps: int | None = None
    is_explained: bool = True
    max_output_tokens: int | None = None
    reading_tokens: int | None = None

    @property
    def notice(self) -> str:
        """One line for users before its first use, or ""."""
        if self.n_actions is None:
            return ""
        return (
            f"  planned as for a small model: {self.n_actions} actions and {self.n_examples} examples near "
            f"the question, {self.max_steps} steps at most (--profile full shows all)"
        )

    def reply_tokens(
        self, task: PlanTask, window: int | None, max_output_tokens: int | None, max_steps: int
    ) -> int:
        """Maximum tokens of a reply; arguments as of `reply_limit`."""
        most = reply_limit(task, window, max_output_tokens, max_steps=max_steps)
        if max_output_tokens is not None or self.max_output_tokens is None:
            return most
        return min(most, self.max_output_tokens)


FULL = PlannerProfile("full")
SMALL = PlannerProfile(
    "small", n_actions=15, n_examples=6, max_steps=3, is_explained=False, max_output_tokens=1_024,
    reading_tokens=512,
)  # fmt: skip


def profile_for(
    model: Model, name: ProfileName = "auto", window: int | None = None
) -> PlannerProfile:
    """The profile of a model.

    Example:
        >>> from pearl.llm.backends.scripted import Scripted
        >>> model = Scripted(lambda request: "")
        >>> profile_for(model).name, profile_for(model, "small").name
        ('full', 'small')
    """
    if name != "auto":
        return FULL if name == "full" else SMALL
    is_short = window is not None and window < MIN_WINDOW
    return SMALL if model.reads_prompts and (is_short or is_small(model.name)) else FULL
