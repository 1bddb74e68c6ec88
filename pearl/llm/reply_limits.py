"""Task → how many tokens its reply may have: as the user says, or by the kind of task.

No request leaves without a limit: a small model that repeats itself would write until its window
is full, for minutes. A limit is generous, since the hidden tokens of a model that reasons count
as well, and leaves three quarters of the window to the prompt.
"""

from __future__ import annotations

from typing import assert_never

from pearl.dsl.checker import MAX_STEPS
from pearl.llm import ActionTask, ChooseTask, CombineTask, MineTask, PlanTask, RefineTask, Task

__all__ = ["READING_TOKENS", "reading_limit", "reply_limit"]

REASONING_TOKENS = 4_096
"""For what a model thinks and does not show."""

READING_TOKENS = 4_096
"""For what a step, or the merging of its parts, says about a document."""

FRAME_TOKENS = 512
"""For new actions, headings and remarks around a plan or a library."""

LINE_TOKENS = 64
"""For a step of a plan with its explanation: those of the shipped plans have 20 to 50."""

DRAFT_TOKENS = 96
"""For an action with its definition and the drafts that it stands for."""


def reply_limit(
    task: Task,
    window: int | None,
    max_output_tokens: int | None = None,
    *,
    max_steps: int = MAX_STEPS,
) -> int:
    """Tokens of a reply at most, hidden ones included.

    Args:
        task: What is asked for.
        window: Tokens of the model's window; None for no limit.
        max_output_tokens: What the user says; None for a limit by the kind of task.
        max_steps: Steps that a plan may have.

    Example:
        >>> from pearl.dsl.signatures import ActionLibrary
        >>> task = PlanTask("Who?", ActionLibrary("none", []))
        >>> reply_limit(task, 128_000), reply_limit(task, 8_192), reply_limit(task, 8_192, 9)
        (7168, 2048, 9)
    """
    match task:
        case PlanTask() | MineTask():
            shown = FRAME_TOKENS + LINE_TOKENS * max_steps
        case RefineTask():
            shown = FRAME_TOKENS + DRAFT_TOKENS * len(task.drafts)
        case ActionTask() | CombineTask() | ChooseTask():
            return reading_limit(window, max_output_tokens)
        case _:
            assert_never(task)
    return _limit(shown, window, max_output_tokens)


def reading_limit(window: int | None, max_output_tokens: int | None = None) -> int:
    """Tokens of a reply at most to whatever is asked of a document.

    Args:
        window: Tokens of the model's window; None for no limit.
        max_output_tokens: As in `reply_limit`.

    Example:
        >>> reading_limit(None), reading_limit(128_000), reading_limit(16_384)
        (8192, 8192, 4096)
    """
    return _limit(READING_TOKENS, window, max_output_tokens)


def _limit(shown: int, window: int | None, max_output_tokens: int | None) -> int:
    most = REASONING_TOKENS + shown
    return max_output_tokens or (most if window is None else min(most, window // 4))
