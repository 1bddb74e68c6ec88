"""A question of a conversation, put clearly by rule."""

from __future__ import annotations

from pearl.llm import StandaloneTask

__all__ = ["make_standalone"]


def make_standalone(task: StandaloneTask) -> str:
    """Put a question clearly."""
    return task.question
