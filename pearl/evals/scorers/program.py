"""The plan carried out the arithmetic that is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pearl.evals.programs import is_same

if TYPE_CHECKING:
    from pearl.evals.log import EvalRecord

DESCRIPTION = "1 where the plan carried out the gold program, up to the order of what is added"


def compared(record: EvalRecord) -> tuple[str, str] | None:
    """The program that the plan carried out, and the gold one."""
    is_known = bool(record.program and record.gold_program)
    return (record.program, record.gold_program) if is_known else None


def score(answer: str, reference: str) -> float:
    """1 where both programs compute the same in the same way, or are the same text.

    Source:
        Chen et al., FinQA (2021), program accuracy; without algebra: `(a - b) / b` is not `a / b - 1`.

    Example:
        >>> score("add(1, 2)", "add(2, 1.0)"), score("subtract(1, 2)", "subtract(2, 1)")
        (1.0, 0.0)
    """
    return float(answer == reference or is_same(answer, reference))
