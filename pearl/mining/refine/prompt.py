"""Drafts of actions → messages that request their merging."""

from __future__ import annotations

from pearl.dsl.nodes import print_action
from pearl.llm import Message, RefineTask

_REFINER = """\
You keep the library of actions that plans over long documents are written with. A plan calls \
actions by name; each is carried out later by a reader who sees the document (CTX) and the \
arguments, nothing else. A good library is small, its actions are general, and no two of them do \
the same."""

_RULES = """\
How to refine the drafts:
- Merge drafts that do the same, whatever they are called.
- Fold a draft that is too specific, and one that negates another (FIND_NOT_..., FIND_LEAST_...), \
into a general action that says with its parameters what is wanted.
- Keep opposites apart: a cause is not an effect, the first is not the last.
- Prefer the names and definitions that are there; write a new one only where none fits.
- Drop a draft only if nobody could carry it out.

How to write the reply:
- One action a line, followed by the numbers of all drafts it stands for: \
NAME(CTX, X) : definition [1, 4, 7]
- A draft that stays as it is needs no line.
- A draft to leave out: drop [3] : reason
- Reply with these lines alone."""


def refine_messages(task: RefineTask) -> tuple[Message, ...]:
    """Request fewer, more general actions; the rules come first, as a common prefix."""
    drafts = "\n".join(f"{i}. {print_action(draft)}" for i, draft in enumerate(task.drafts, 1))
    wanted = (
        f"Refine these {len(task.drafts)} drafts. At most {task.max_actions} actions shall be left, "
        f"those that stay as they are included.\n\nDrafts:\n{drafts}"
    )
    return Message("system", _REFINER), Message("user", f"{_RULES}\n\n{wanted}")
