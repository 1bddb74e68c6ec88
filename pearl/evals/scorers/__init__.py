"""How well an answer in words agrees with a right one. Every module of this folder is a scorer.

A scorer module, `_` in its name read as `-`, has `DESCRIPTION` (one line) and
`score(answer, reference) -> float`, from 0 to 1. What is a word, all of them ask `pearl.evals.words`.
"""

from __future__ import annotations

from typing import Protocol

from pearl import plugins
from pearl.errors import UsageError, did_you_mean
from pearl.plugins.extras import install_hint

__all__ = ["EXACT", "Scorer", "load_scorer", "scorer_names"]

EXACT = "exact"


class Scorer(Protocol):
    """What a module of this folder looks like to its users."""

    DESCRIPTION: str

    def score(self, answer: str, reference: str) -> float:
        """How well they agree, 0 to 1."""
        ...


def scorer_names() -> tuple[str, ...]:
    """Every scorer there is."""
    return tuple(name.replace("_", "-") for name in plugins.names(__name__))


def load_scorer(name: str) -> Scorer:
    """The scorer of that name.

    Raises:
        UsageError: There is none, or what it needs is not installed.
    """
    if name not in scorer_names():
        close = did_you_mean(name, scorer_names())
        known = ", ".join(scorer_names())
        raise UsageError(
            f"unknown scorer '{name}'",
            help=f"did you mean '{close}'?" if close else f"scorers: {known}",
        )
    try:
        scorer: Scorer = plugins.load(__name__, name.replace("-", "_"))
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the scorer '{name}' needs '{error.name}'", help=install_hint("eval")
        ) from None
    return scorer
