"""`ActionTask`, `CombineTask` → messages: one step of a plan, read over a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pearl.llm import ActionTask, Message

__all__ = ["action_messages", "combine_messages"]

_READER = """\
You carry out one instruction at a time over a text. Use only what the text and the inputs say; \
where they say nothing about it, say so. Reply with the result alone, without preamble. \
Support what you say by copying the decisive passages word for word, each on a line of its own \
that begins with "> "."""


def action_messages(task: ActionTask) -> tuple[Message, ...]:
    """Ask for the result of one step."""
    parts: list[str] = []
    if task.document is not None:
        parts.append(f"<text>\n{task.document}\n</text>")
    parts.append(f"Instruction {task.action.signature}: {task.action.definition}")
    if task.arguments:
        parts.append("where")
        parts += [
            f"{name} =\n<input>\n{value}\n</input>" if name in task.inputs or "\n" in value
            else f'{name} = "{value}"'
            for name, value in task.arguments
        ]  # fmt: skip
    if task.explanation:
        parts.append(f"Purpose of this step: {task.explanation}")
    return Message("system", _READER), Message("user", "\n\n".join(parts))


def combine_messages(task: ActionTask, parts: Sequence[str]) -> tuple[Message, ...]:
    """Ask for one result out of the results over several parts of a text."""
    bare = action_messages(
        replace(task, document=None)
    )  # fmt: skip
    results = "\n\n".join(
        f"<part {i}>\n{part}\n</part {i}>" for i, part in enumerate(parts, start=1)
    )
    return (
        bare[0],
        Message(
            "user",
            f"{bare[1].content}\n\nThe text was read in {len(parts)} parts, in order, with these results:"
            f"\n\n{results}\n\nMerge them into the one result for the whole text. Keep the copied "
            'passages that matter as they are, on lines that begin with "> "; leave out parts that '
            "found nothing, unless all of them did.",
        ),
    )
