"""Prediction + what is right → 0 to 1. What names no option, and what failed, is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from pearl.evals.log import EvalLog, EvalRecord
from pearl.evals.scorers import EXACT, load_scorer
from pearl.evals.words import words
from pearl.interpreter.choices import read_choice

__all__ = ["reason", "rescored", "right_option", "score"]


def right_option(options: Sequence[str], reference: str) -> int | None:
    """The one option that a right answer in words is; None if it is none of them, or several.

    Example:
        >>> right_option(["a mill", "The boat"], "boat.")
        1
    """
    found = [i for i, option in enumerate(options) if words(option) == words(reference)]
    return found[0] if len(found) == 1 else None


def score(record: EvalRecord, scorer: str = EXACT) -> float:
    """1 where the right option was chosen, else 0; of free text, what the scorer says.

    Raises:
        UsageError: There is no such scorer, or what it needs is not installed.

    Example:
        >>> record = EvalRecord(sample="1", method="mcq", status="answered", question="Who?", gold=1)
        >>> score(record), score(record.model_copy(update={"choice": 1}))
        (0.0, 1.0)
    """
    if record.status == "failed":
        return 0.0
    if record.gold is not None:
        return float(record.choice == record.gold)
    if record.reference is not None:
        return load_scorer(scorer).score(record.answer, record.reference)
    return 0.0


def reason(error: Exception) -> str:
    """What a record says of an error: its type and the first line of its message."""
    first = str(error).partition("\n")[0].encode(errors="backslashreplace").decode()
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def rescored(log: EvalLog, scorer: str | None = None) -> EvalLog:
    """The log with its replies read anew and its records scored anew; no model is called.

    What the records keep of a model is its reply, so a change of how replies are read shows.

    Args:
        log: The log.
        scorer: Of free text; None for the one that the log names.

    Raises:
        UsageError: There is no such scorer, or what it needs is not installed.
    """
    header = log.header.model_copy(update={"scorer": scorer or log.header.scorer})
    return EvalLog(header, tuple(_rescored(record, header.scorer) for record in log.records))


def _rescored(record: EvalRecord, scorer: str) -> EvalRecord:
    if record.status != "failed" and record.options:
        choice = read_choice(record.reply, record.options)
        record = record.model_copy(update={"choice": choice})
    return record.model_copy(update={"score": score(record, scorer)})
