"""`Turn`: what was asked and answered in a conversation."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation.

    Attributes:
        question: As it was asked.
        answer: What was answered; "" if that is not known.
    """

    question: str
    answer: str = ""
