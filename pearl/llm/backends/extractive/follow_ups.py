"""A question about figures that were asked for before → what is computed from them.

"What is the net change?" after "What were net sales in 2015?" and "... in 2016?". The turns before are
the background of the question (`standalone.asked_with`).
"""

from __future__ import annotations

import re

__all__ = ["follow_up"]

_LEAD = r"(?:and |so |then |now )*(?:what|how much|how many|calculate|compute|find)?(?: (?:is|was|were|are|would be))? ?"
_THESE = r"(?:that|this|these|those|it|them|the two|the two (?:values|figures|numbers|years|amounts)|(?:these|those|the) (?:values|figures|numbers|amounts)|that (?:time|period)|this (?:time|period)|the (?:two )?years|the period)"
_TAIL = rf"(?: (?:in|of|between|over|during|for|from) (?:(?:these|those|the) years|{_THESE}))?"
_MOVE = r"(?:change|increase|decrease|growth|decline|difference|rise|fall|drop)"

_OPERATIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("percentage change", re.compile(
        rf"{_LEAD}(?:the )?(?:(?:percentage|percent|percentual|relative|%) {_MOVE}|{_MOVE} rate|growth rate|rate of (?:change|growth))"
        rf"(?: (?:in|of) (?:that|this|it|the value))?{_TAIL}", re.I)),
    ("percentage change", re.compile(
        rf"(?:and |so )*(?:how much|what) (?:is|was|does|did) (?:that|this|it|the|this|that) ?(?:{_MOVE})? ?(?:represent )?"
        rf"(?:as an? percentage|in percent|in percentage|as a percent)(?: {_MOVE})?", re.I)),
    ("percentage change", re.compile(r"(?:and |so )*(?:what is (?:that|this|it) )?as a percentage(?: change)?", re.I)),
    ("difference", re.compile(
        rf"{_LEAD}(?:the )?(?:net |total |absolute )?{_MOVE}(?: (?:in|of) (?:that|this|it|the value|value))?{_TAIL}", re.I)),
    ("difference", re.compile(
        r"(?:and |so )*(?:by )?how much did (?:that|this|it|they) (?:change|increase|decrease|grow|decline|rise|fall|drop)"
        rf"{_TAIL}", re.I)),
    ("sum", re.compile(rf"{_LEAD}(?:the )?(?:combined )?(?:sum|total)(?: of {_THESE})?", re.I)),
    ("average", re.compile(rf"{_LEAD}(?:the )?(?:average|mean)(?: of {_THESE})?", re.I)),
)  # fmt: skip


def follow_up(question: str, background: str) -> tuple[str, tuple[str, ...]] | None:
    """The operation that a question asks for, and the earlier questions that give its operands.

    Args:
        question: Without its background.
        background: The earlier questions, the first one first, with semicolons between them.

    Returns:
        None where it asks for something else. Earlier questions that only compute from those before them
        are no operands; at any other the search for operands ends.

    Example:
        >>> follow_up("What is the net change?", "sales in 2015; sales in 2016")
        ('difference', ('sales in 2015', 'sales in 2016'))
        >>> follow_up("Why did it change?", "sales in 2015; sales in 2016")
    """
    name = _operation(question)
    if name is None:
        return None
    earlier = [turn.strip() for turn in background.split(";") if turn.strip()]
    return name, tuple(turn for turn in earlier if _operation(turn) is None)


def _operation(question: str) -> str | None:
    asked = " ".join(question.split()).strip(" ?.")
    return next((name for name, pattern in _OPERATIONS if pattern.fullmatch(asked)), None)
