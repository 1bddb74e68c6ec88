"""The answer is the same number as the reference, by a rule that has a name."""

from __future__ import annotations

from pearl.actions.arithmetic.matching import Rule, match

DESCRIPTION = "1 where answer and reference are the same number as far as it is shown, 9.47% and 0.0947 included"


def score(answer: str, reference: str) -> float:
    """1 where they match by a rule other than `Rule.ONE_PERCENT`, else 0.

    Example:
        >>> score("It grew by 9.474%.", "9.5%"), score("0.0947", "9.5%"), score("9.6%", "9.5%")
        (1.0, 1.0, 0.0)
    """
    return float(match(answer, reference) not in (None, Rule.ONE_PERCENT))
