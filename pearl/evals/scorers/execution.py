"""What the plan's arithmetic comes to is the reference, to 5 decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.actions.arithmetic.evaluation import PLACES
from pearl.documents.words import words
from pearl.evals.programs import executed, figure

if TYPE_CHECKING:
    from pearl.evals.log import EvalRecord

DESCRIPTION = "1 where answer and reference are the same number to 5 decimals, as ConvFinQA counts"


def compared(record: EvalRecord) -> tuple[str, str] | None:
    """What the program that was carried out comes to, or the answer where there is none."""
    if record.reference is None:
        return None
    result = executed(record.program) if record.program else None
    return (record.answer if result is None else result), record.reference


def score(answer: str, reference: str) -> float:
    """1 where both are the same number to 5 decimals; a percentage counts as a share.

    Source:
        Chen et al., ConvFinQA (2022), execution accuracy.

    Example:
        >>> score("0.094741", "0.09474"), score("9.474%", "0.09474"), score("9.5%", "0.09474")
        (1.0, 1.0, 0.0)
    """
    said, right = figure(answer), figure(reference)
    if said is None or right is None:
        return float(words(answer) == words(reference))
    numbers = (round(float(each.amount), PLACES) for each in (said, right))
    return float(len(set(numbers)) == 1)
