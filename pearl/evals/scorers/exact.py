"""The answer is the reference, word for word."""

from __future__ import annotations

from pearl.documents.words import words

DESCRIPTION = "1 where answer and reference are the same words, else 0"


def score(answer: str, reference: str) -> float:
    """1 where the words and signs are the same.

    Source:
        Rajpurkar et al., SQuAD (2016), exact match; without dropping signs.

    Example:
        >>> score("The boat.", "boat"), score("> 5 mg", "< 5 mg")
        (1.0, 0.0)
    """
    return float(words(answer) == words(reference))
