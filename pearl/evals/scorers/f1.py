"""How many words answer and reference have in common, whatever their order."""

from __future__ import annotations

from pearl.documents.words import shared_words

DESCRIPTION = "token F1: the words that answer and reference share, in any order"


def score(answer: str, reference: str) -> float:
    """The harmonic mean of the shares of the answer's and the reference's words that are shared.

    Source:
        Rajpurkar et al., SQuAD (2016), F1.

    Example:
        >>> score("a small red boat", "the boat")
        0.5
    """
    return shared_words(answer, reference)
