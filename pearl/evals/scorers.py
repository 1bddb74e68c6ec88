"""Prediction + what is right → 0 or 1. What names no option, and what failed, is wrong."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pearl.choices import read_choice
from pearl.evals.log import EvalLog, Record

__all__ = ["reason", "rescored", "right_option", "score"]


def right_option(options: Sequence[str], reference: str) -> int | None:
    """The one option that a right answer in words is; None if it is none of them, or several.

    Example:
        >>> right_option(["a mill", "The boat"], "boat.")
        1
    """
    found = [i for i, option in enumerate(options) if _words(option) == _words(reference)]
    return found[0] if len(found) == 1 else None


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

    Where nothing else is there, as in the blood type "A", they do: else no answer would be as right.

    Source:
        Rajpurkar et al., SQuAD (2016), the answer normalisation of its scorer.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().strip()
    words = [word for word in re.findall(r"\w+", folded) if word not in ("a", "an", "the")]
    return words or [folded]
