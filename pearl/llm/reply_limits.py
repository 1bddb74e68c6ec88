"""Task → maximum tokens of its reply, hidden reasoning included, from the setting or the kind of task; three quarters of the window are left for the prompt."""

from __future__ import annotations

from typing import assert_never

from pearl.documents.tokens import Counter
from pearl.dsl.checker import MAX_STEPS
from pearl.llm import (
    ActionTask,
    CheckTask,
    ChooseTask,
    ItemsTask,
    LookupTask,
    MineTask,
    PlanTask,
    RefineTask,
    Task,
)
from pearl.replies.items import MAX_ITEM_TOKENS, NOT_STATED, label_line

REASONING_TOKENS = 4_096  # For hidden reasoning
READING_TOKENS = 4_096  # For the reply to a step, or the merged reply to its parts
FRAME_TOKENS = 512  # For new actions, headings and remarks around a plan or a library
# For a step of a plan with its explanation: those of the shipped plans have 20 to 50.
LINE_TOKENS = 64
DRAFT_TOKENS = 96  # For an action with its definition and the numbers of its drafts
ID_TOKENS = 8  # For the number of an item, the marks around it and its value, and blanks
PICKS_TOKENS = 12  # For the marks around the numbers of chosen items
VERDICT_TOKENS = 24  # For the number of a claim, its verdict, and the marks around them
NAME_TOKENS = 8  # For longer numbers, and the first words of some items
QUOTE_TOKENS = 32  # For the words that decide about an item, and their key


def reply_limit(
    task: Task,
    window: int | None,
    max_output_tokens: int | None = None,
    *,
    max_steps: int = MAX_STEPS,
) -> int:
    """Maximum tokens of a reply, hidden reasoning included."""
    match task:
        case PlanTask() | MineTask():
            shown = FRAME_TOKENS + LINE_TOKENS * max_steps
        case RefineTask():
            shown = FRAME_TOKENS + DRAFT_TOKENS * len(task.drafts)
        case CheckTask():
            shown = FRAME_TOKENS + VERDICT_TOKENS * len(task.claims)
        case ItemsTask():
            shown = FRAME_TOKENS + items_limit(task, Counter())
        case ActionTask() | LookupTask() | ChooseTask():
            return reading_limit(window, max_output_tokens)
        case _:
            assert_never(task)
    return _limit(shown, window, max_output_tokens)


def reading_limit(window: int | None, max_output_tokens: int | None = None) -> int:
    """The `reply_limit` of tasks that read a document."""
    return _limit(READING_TOKENS, window, max_output_tokens)


def items_limit(task: ItemsTask, counter: Counter) -> int:
    """Maximum tokens of a well-formed reply about items, without hidden reasoning."""
    most = 0
    match task.kind:
        case "yes_no":
            values: tuple[str, ...] = ("yes", "no", NOT_STATED)
        case "label":
            values = tuple(map(label_line, task.labels))
        case "pick":
            number = counter.count(str(len(task.items))) + 1
            return PICKS_TOKENS + task.n_picks * (number + QUOTE_TOKENS * task.is_quoted)
        case "line":
            values, most = (), MAX_ITEM_TOKENS
    most = max(map(counter.count, values), default=most)
    more = NAME_TOKENS * task.is_named + QUOTE_TOKENS * task.is_quoted
    return len(task.items) * (most + ID_TOKENS + more)


def _limit(shown: int, window: int | None, max_output_tokens: int | None) -> int:
    most = REASONING_TOKENS + shown
    return max_output_tokens or (most if window is None else min(most, window // 4))
