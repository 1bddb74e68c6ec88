"""Prediction + what is right → 0 or 1. What names no option, and what failed, is wrong."""

from __future__ import annotations

import re
import unicodedata

from pearl.choices import read_choice
from pearl.evals.log import EvalLog, Record

__all__ = ["is_scorable", "reason", "rescored", "score"]


def is_scorable(gold: int | None, reference: str | None) -> bool:
    """Whether the data says what is right."""
    return gold is not None or reference is not None


def score(record: Record) -> float:
    """1 where the right option was chosen, or the answer is the reference word for word.

    Example:
        >>> record = Record(sample="1", method="mcq", status="answered", question="Who?", gold=1)
        >>> score(record), score(record.model_copy(update={"choice": 1}))
        (0.0, 1.0)
    """
    if record.status == "failed":
        return 0.0
    if record.gold is not None:
        return float(record.choice == record.gold)
    if record.reference is not None:
        return float(_words(record.answer) == _words(record.reference))
    return 0.0


def reason(error: Exception) -> str:
    """What a record says of an error: its type and the first line of its message."""
    first = str(error).partition("\n")[0].encode(errors="backslashreplace").decode()
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def rescored(log: EvalLog) -> EvalLog:
    """The log with its replies read anew and its records scored anew; no model is called.

    What the records keep of a model is its reply, so a change of how replies are read shows.
    """
    return EvalLog(log.header, tuple(_rescored(record) for record in log.records))


def _rescored(record: Record) -> Record:
    if record.status != "failed" and record.options:
        choice = read_choice(record.reply, record.options)
        record = record.model_copy(update={"choice": choice})
    return record.model_copy(update={"score": score(record)})


def _words(text: str) -> list[str]:
    """What an exact match compares: case, articles, blanks and marks do not count.

    Source:
        Rajpurkar et al., SQuAD (2016), the answer normalisation of its scorer.
    """
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    return [word for word in words if word not in ("a", "an", "the")]
