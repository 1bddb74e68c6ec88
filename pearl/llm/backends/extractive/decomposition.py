"""What a question consists of, by rule."""

from __future__ import annotations

from pearl.llm import DecomposeTask

__all__ = ["decompose"]


def decompose(task: DecomposeTask) -> str:
    """Say what a question consists of."""
    return ""
