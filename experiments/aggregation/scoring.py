"""OOLONG's score of an answer, and F1 of pairs."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime

from aggregation.queries import Kind

__all__ = ["answers_in", "f1", "normal", "score"]

_DATES = ("%b %d, %Y", "%B %d, %Y", "%Y-%m-%d", "%m/%d/%Y")
_MONTHS = ("%B %Y", "%b %Y", "%Y-%m", "%m/%Y")
_NOTHING = re.compile(r"(?:none|nothing found)\b(?: \(.*\))?", re.I)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def score(kind: Kind, said: str, right: Collection[str]) -> float:
    """What an answer is worth, from 0 to 1.

    Numbers get 0.75 to the power of their distance, pairs their F1, all else is right or wrong. Where
    answers are tied, one of them is right, and so are several; one wrong among them is wrong.

    Args:
        kind: What is asked for.
        said: The reply; its last text after a colon counts.
        right: Every right answer, as `normal` writes it.

    Example:
        >>> score("number", "Answer: 12", {"13"}), score("label", "Label: entity", {"entity", "location"})
        (0.75, 1.0)
    """
    named = answers_in(kind, said)
    if kind == "pairs":
        return f1(named, frozenset(right))
    if kind == "number":
        numbers = [int(each) for each in named if re.fullmatch(r"-?\d+", each)]
        return 0.75 ** abs(numbers[0] - int(next(iter(right)))) if len(numbers) == 1 else 0.0
    return float(bool(named) and named <= set(right))


def answers_in(kind: Kind, said: str) -> frozenset[str]:
    """What a reply names: its last text after a colon, line by line and apart at semicolons.

    Bullets, brackets, quotes and a full stop at the end do not count; "none", why there is none, and "Nothing found." are nothing.
    """
    if kind == "pairs":
        found = re.findall(r"\b(\d+)\s*(?:,|and|-|/|–)\s*(\d+)\b", said)
        return frozenset(f"{one}, {other}" for one, other in found)
    entries = re.split(r"[\n;]", said.rpartition(":")[2])
    bare = (_BULLET.sub("", entry).strip().strip("[]'\"*.").strip() for entry in entries)
    return frozenset(
        normal(kind, entry) for entry in bare if entry and not _NOTHING.fullmatch(entry)
    )


def normal(kind: Kind, answer: str) -> str:
    """An answer as `reference` writes it; as it is if it cannot be read.

    Example:
        >>> normal("month", "June 2023"), normal("date", "06/02/2023"), normal("comparison", "more common than")
        ('2023-06', '2023-06-02', 'more')
    """
    answer = answer.strip()
    match kind:
        case "date":
            return _read(answer, _DATES, "%Y-%m-%d")
        case "month":
            return _read(answer, _MONTHS, "%Y-%m")
        case "comparison":
            words = re.findall(r"\b(more|less|same)\b", answer.lower())
            return words[0] if len(set(words)) == 1 else answer
        case "number":
            return answer.replace(",", "")
        case _:
            return answer.casefold()


def _read(answer: str, forms: Collection[str], written: str) -> str:
    for form in forms:
        try:
            return datetime.strptime(answer, form).strftime(written)
        except ValueError:
            continue
    return answer


def f1(said: frozenset[str], right: frozenset[str]) -> float:
    """F1 of pairs; 1 if there are none and none are named."""
    if not said or not right:
        return float(said == right)
    return 2 * len(said & right) / (len(said) + len(right))
