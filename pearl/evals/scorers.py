"""Scorers of answers in words, from 0 to 1: the shipped ones and their contract.

A scorer has `DESCRIPTION` (one line) and `score(answer, reference) -> float`. A scorer that needs an extra has
`require()`, which raises a `UsageError` if the extra is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from pearl import plugins
from pearl.errors import UsageError
from pearl.plugins.extras import install_hint, require_extra

# Scorers import on use: the command line lists their names without computing anything.
EXACT = "exact"


class Scorer(Protocol):
    """The contract of a scorer."""

    DESCRIPTION: str

    def score(self, answer: str, reference: str) -> float:
        """Return how well the answer agrees with the reference, 0 to 1."""


CONTRACT = Scorer


def load_scorer(name: str) -> Scorer:
    """The scorer of a name."""
    try:
        scorer: Scorer = plugins.load(__name__, name, "scorer")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the scorer '{name}' needs '{error.name}'", help=install_hint("eval")
        ) from None
    if (require := getattr(scorer, "require", None)) is not None:
        require()
    return scorer


class _ShippedScorer(Struct, frozen=True):
    DESCRIPTION: str
    score: Callable[[str, str], float]
    require: Callable[[], None] | None = None


def exact(answer: str, reference: str) -> float:
    """1 if both have the same words and signs, else 0 (Rajpurkar et al., SQuAD 2016, but signs are kept)."""
    from pearl.documents.words import words

    return float(words(answer) == words(reference))


def f1(answer: str, reference: str) -> float:
    """The harmonic mean of precision and recall of the answer's words (Rajpurkar et al., SQuAD 2016)."""
    from pearl.documents.words import shared_words

    return shared_words(answer, reference)


def rouge_l(answer: str, reference: str) -> float:
    """The F-measure of the longest common subsequence of words, without stemming.

    Source:
        Lin, ROUGE (2004), ROUGE-L with beta 1, as in `rouge-score`, over the words of all scripts.

    Example:
        >>> rouge_l("the old man sold his boat", "his old boat")  # old boat, or his boat
        0.5
    """
    from rapidfuzz.distance import LCSseq

    from pearl.documents.words import words

    said, right = words(answer), words(reference)
    return 2 * LCSseq.similarity(said, right) / (len(said) + len(right))


def numeric(answer: str, reference: str) -> float:
    """1 if they match by a rule other than `Rule.ONE_PERCENT`, else 0.

    Example:
        >>> numeric("It grew by 9.474%.", "9.5%"), numeric("0.0947", "9.5%"), numeric("9.6%", "9.5%")
        (1.0, 1.0, 0.0)
    """
    from pearl.actions.arithmetic.matching import Rule, match

    return float(match(answer, reference) not in (None, Rule.ONE_PERCENT))


PLUGINS = {
    EXACT: _ShippedScorer("1 if answer and reference are the same words, else 0", exact),
    "f1": _ShippedScorer("token F1: the words that answer and reference share, in any order", f1),
    "rouge-l": _ShippedScorer(
        "ROUGE-L: the longest common subsequence of words, for notes and summaries",
        rouge_l,
        require=lambda: require_extra("eval", "the scorer 'rouge-l'", "rapidfuzz"),
    ),
    "numeric": _ShippedScorer(
        "1 if answer and reference are the same number to the digits that are shown; 9.47% is 0.0947",
        numeric,
    ),
}
