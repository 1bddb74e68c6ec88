"""How many words answer and reference have in common, whatever their order."""

from __future__ import annotations

from collections import Counter

from pearl.evals.words import words

DESCRIPTION = "token F1: the words that answer and reference share, in any order"


def score(answer: str, reference: str) -> float:
    """The harmonic mean of the shares of the answer's and the reference's words that are shared.

    Source:
        Rajpurkar et al., SQuAD (2016), F1.

    Example:
        >>> score("a small red boat", "the boat")
        0.5
    """
    said, right = words(answer), words(reference)
    n_shared = (Counter(said) & Counter(right)).total()
    return 2 * n_shared / (len(said) + len(right))
