"""How long the longest sequence of words is that answer and reference have in common."""

from __future__ import annotations

from rapidfuzz.distance import LCSseq

from pearl.documents.words import words

DESCRIPTION = "ROUGE-L: the longest common subsequence of words, for notes and summaries"


def score(answer: str, reference: str) -> float:
    """The F-measure of the longest common subsequence of words, without stemming.

    Source:
        Lin, ROUGE (2004), ROUGE-L with beta 1, as `rouge-score` has it, over the words of all scripts.

    Example:
        >>> score("the old man sold his boat", "his old boat")  # old boat, or his boat
        0.5
    """
    said, right = words(answer), words(reference)
    return 2 * LCSseq.similarity(said, right) / (len(said) + len(right))
