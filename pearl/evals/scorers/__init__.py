"""How well an answer in words agrees with a right one. Every module of this folder is a scorer.

A scorer module has `DESCRIPTION` (one line) and
`score(answer, reference) -> float`, from 0 to 1. What is a word, all of them ask `pearl.documents.words`.
One that compares something else of a record has `compared(record) -> tuple[str, str] | None`: what is scored, and
what it should be; None, where there is nothing to compare, scores 0.
"""

from __future__ import annotations

from typing import Protocol

from pearl import plugins
from pearl.errors import UsageError
from pearl.plugins.extras import install_hint

__all__ = ["CONTRACT", "EXACT", "Scorer", "load_scorer"]

EXACT = "exact"


class Scorer(Protocol):
    """What a module of this folder looks like to its users."""

    DESCRIPTION: str

    def score(self, answer: str, reference: str) -> float:
        """How well they agree, 0 to 1."""
        ...


CONTRACT = Scorer


def load_scorer(name: str) -> Scorer:
    """The scorer of that name.

    Raises:
        UsageError: There is none, or what it needs is not installed.
    """
    try:
        scorer: Scorer = plugins.load(__name__, name, "scorer")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the scorer '{name}' needs '{error.name}'", help=install_hint("eval")
        ) from None
    return scorer
