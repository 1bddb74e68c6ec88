"""A question of a conversation → the same question, clear without the turns before it."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.data.turns import Turn
from pearl.llm import Model
from pearl.trace import Trace

__all__ = ["make_standalone"]


async def make_standalone(
    question: str, history: Sequence[Turn], model: Model, *, trace: Trace | None = None
) -> str:
    """Say what pronouns and left out words of a question stand for.

    Raises:
        ModelError: The model gave no usable reply.
    """
    return question
